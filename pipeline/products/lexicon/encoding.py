"""Encodes pairs as word numbers: tokens, their counts and ranks by frequency, sentences as sorted ranks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.base.errors import reading
from paraforge.base.files import atomic_path, read_json_or_none, write_json
from paraforge.base.shards.groups import scratch_database
from paraforge.base.shards.schema import TEXT_COLUMNS
from paraforge.corpus.publication.datasets import HeldOut
from paraforge.products.lexicon.pair_sources import Piece, classify, select_pairs
from paraforge.products.lexicon.parameters import LexiconParameters

Words = npt.NDArray[np.uint32]
Counts = npt.NDArray[np.int64]
Sentences = tuple[npt.NDArray[np.int32], Words]
"""Offsets and word ids. The ids of a sentence are distinct and ascending, and ids are ranks by frequency: 0
is the most frequent word."""
PairTable = tuple[Sentences, Sentences, Sentences]
"""The sentences of pairs: the references, the translations, and the words that both have."""

_SENTENCES = (*TEXT_COLUMNS, "both")
_VOCABULARY = "vocabulary.arrow"
# A word in a sentence is one number, so that sorting orders sentences, and the words of each.
_WORD_BITS = 32
_WORD_MASK = (1 << _WORD_BITS) - 1
# Equally frequent words are ordered by name, so that ranks do not depend on how the input is divided.
_RANKED = """
    SELECT word, sum(reference)::BIGINT AS reference, sum(translation)::BIGINT AS translation
    FROM words GROUP BY word HAVING sum(reference + translation) >= greatest(1, ?)
    ORDER BY sum(reference + translation) DESC, word
"""


def write_arrow(table: pa.Table, path: Path) -> None:
    """Write a table atomically as one uncompressed Arrow file, which can be read without copying."""
    with (
        atomic_path(path) as temporary,
        pa.OSFile(str(temporary), "wb") as sink,
        pa.ipc.new_file(sink, table.schema) as writer,
    ):
        writer.write_table(table)


def read_arrow(path: Path) -> pa.Table:
    """Map an Arrow file into memory. Raises InputError if it is damaged."""
    with reading(path), pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).read_all()


def file_of(directory: Path, what: str, number: int, ending: str = "arrow") -> Path:
    """Return the path of a piece's file: `words` with their sentence counts, `reference` and `translation`
    until words are ranked, `report`; then `ids` (sentences as ranks) and `increments` of each row."""
    return directory / f"{what}-{number:06d}.{ending}"


def encode_piece(
    piece: Piece,
    index: int,
    columns: tuple[str, ...],
    parameters: LexiconParameters,
    directory: Path,
    held_out: HeldOut | None = None,
) -> dict[str, int]:
    """Tokenize a piece and count the sentences of its words. Returns the number of counted rows, and of
    dropped rows by reason. A finished piece is reused."""
    report_path = file_of(directory, "report", index, "json")
    if done := read_json_or_none(report_path):
        return done
    selected, dropped = select_pairs(piece.read(columns), parameters.filters, held_out)
    sides = classify(selected, parameters.classes, parameters.language)
    words = pa.table({"word": pa.array(sides[0].vocabulary, pa.string())})
    for name, side in zip(TEXT_COLUMNS, sides, strict=True):
        distinct = np.sort(side.row_numbers << _WORD_BITS | side.ids)
        distinct = distinct[np.diff(distinct, prepend=-1) > 0]
        counts = np.bincount(distinct & _WORD_MASK, minlength=words.num_rows)
        words = words.append_column(name, pa.array(counts))
        write_arrow(pa.table({"word": distinct}), file_of(directory, name, index))
    write_arrow(words, file_of(directory, "words", index))
    report = {"counted": len(sides[0]), **dropped}
    write_json(report_path, report)
    return report


def merge_vocabulary(directory: Path, pieces: int, minimum: int) -> pa.Table:
    """Add up the words of all pieces, and write them by descending frequency, so that a word's row is its
    rank. Returns each ``word``, and the number of sentences with it: ``reference`` and ``translation``.

    A word in fewer than ``minimum`` sentences is left out. No pair of words with it can reach ``minimum``, so
    all counts that matter stay exact.
    """
    with scratch_database(directory) as connection:
        connection.execute("CREATE TABLE words (word VARCHAR, reference BIGINT, translation BIGINT)")
        for piece in range(pieces):
            connection.register("piece", read_arrow(file_of(directory, "words", piece)))
            connection.execute("INSERT INTO words FROM piece")
        table = connection.sql(_RANKED, params=[minimum]).to_arrow_table()
    write_arrow(table, directory / _VOCABULARY)
    return table


def rank_piece(directory: Path, index: int, pairs: int) -> Counts:
    """Write a piece's sentences as distinct ascending ranks. Returns the increments of each row of the
    counts.

    pairs: number of counted pairs. Needs the vocabulary that :func:`merge_vocabulary` wrote. The piece's
    unranked words are removed at the end.
    """
    path = file_of(directory, "increments", index)
    if not path.is_file():
        vocabulary = read_arrow(directory / _VOCABULARY)["word"]
        ranks = pc.index_in(read_arrow(file_of(directory, "words", index))["word"], vocabulary)
        ranks = pc.fill_null(ranks, -1).to_numpy().astype(np.int64)
        sides = [
            _to_ranks(read_arrow(file_of(directory, name, index))["word"].to_numpy(), ranks)
            for name in TEXT_COLUMNS
        ]
        sides.append(np.intersect1d(sides[0], sides[1], assume_unique=True))
        offsets = [np.searchsorted(side, np.arange(pairs + 1) << _WORD_BITS) for side in sides]
        lists = [
            pa.ListArray.from_arrays(pa.array(starts, pa.int32()), pa.array(side & _WORD_MASK, pa.uint32()))
            for starts, side in zip(offsets, sides, strict=True)
        ]
        write_arrow(pa.table(lists, list(_SENTENCES)), file_of(directory, "ids", index))
        increments = count_increments(sides, offsets, len(vocabulary))
        write_arrow(pa.table({"rows": increments}), path)
    for name in TEXT_COLUMNS:
        file_of(directory, name, index).unlink(missing_ok=True)
    return read_arrow(path)["rows"].to_numpy()


def _to_ranks(words: Counts, ranks: Counts) -> Counts:
    """Replace word numbers by ranks, in ascending order; words of rank -1 are left out."""
    word_ranks = ranks[words & _WORD_MASK]
    return np.sort((words >> _WORD_BITS << _WORD_BITS | word_ranks)[word_ranks >= 0])


def count_increments(sides: list[Counts], offsets: list[Counts], words: int) -> Counts:
    """Return the number of increments in each row of the counts.

    sides: words of references, of translations, and of both, each a pair's number and a rank, ascending.
    offsets: where each pair begins. words: words of the vocabulary.
    """
    total = np.zeros(words, np.int64)
    for side, others in ((0, (0, 1)), (1, (1, 0)), (2, (2,))):
        own = sides[side]
        # A row's columns are the more frequent words of each sentence.
        columns = sum(
            np.searchsorted(sides[other], own) - offsets[other][own >> _WORD_BITS] for other in others
        )
        total += np.bincount(own & _WORD_MASK, columns, words).astype(np.int64)
    return total


def read_ids(path: Path) -> PairTable:
    """Return a piece's pair table without copying."""
    table = read_arrow(path)
    reference, translation, both = (_sentences(table[name].combine_chunks()) for name in _SENTENCES)
    return reference, translation, both


def _sentences(lists: pa.ListArray) -> Sentences:
    if not len(lists):
        return np.zeros(1, np.int32), np.zeros(0, np.uint32)
    return lists.offsets.to_numpy(), lists.values.to_numpy()
