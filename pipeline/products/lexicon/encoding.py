"""Encodes pairs as word numbers: tokens, their counts and ranks by frequency, sentences as sorted ranks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.base.files import atomic_path, read_json_or_none, write_json
from paraforge.base.interrupts import check_interrupt
from paraforge.base.shards.work import scratch_database
from paraforge.base.text.idf import sentence_counts
from paraforge.corpus.publication.held_out import HeldOut
from paraforge.products.lexicon import pair_table
from paraforge.products.lexicon.pair_sources import Piece, classify, select_pairs
from paraforge.products.lexicon.parameters import LexiconParameters

SIDES = ("reference", "translation")
_VOCABULARY = "vocabulary.arrow"
# Equally frequent words are ordered by name, so that ranks do not depend on how the input is divided.
_RANKED = """
    SELECT word, sum(reference)::BIGINT AS reference, sum(translation)::BIGINT AS translation
    FROM words GROUP BY word HAVING sum(reference + translation) >= greatest(1, ?)
    ORDER BY sum(reference + translation) DESC, word
"""


@dataclass(frozen=True)
class CountedWords:
    """Words by descending frequency, with the number of sentences that contain each.

    words: distinct words; a word's index is its rank. references: int64, references with the word.
    translations: int64, translations with the word.
    """

    words: list[str]
    references: npt.NDArray[np.int64]
    translations: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.words)

    @property
    def sentences(self) -> npt.NDArray[np.int64]:
        """``#(u)``: the number of sentences with the word, on either side."""
        return self.references + self.translations

    def alphabetical(self) -> npt.NDArray[np.int64]:
        """Return the ranks of the words in alphabetical order."""
        return np.array(sorted(range(len(self)), key=self.words.__getitem__), dtype=np.int64)


def write_arrow(table: pa.Table, path: Path) -> None:
    """Write a table atomically as one uncompressed Arrow file, which can be read without copying."""
    with (
        atomic_path(path) as temporary,
        pa.OSFile(str(temporary), "wb") as sink,
        pa.ipc.new_file(sink, table.schema) as writer,
    ):
        writer.write_table(table)


def read_arrow(path: Path) -> pa.Table:
    """Map an Arrow file into memory."""
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).read_all()


def file_of(directory: Path, what: str, number: int, ending: str = "arrow") -> Path:
    """Return the path of a piece's file: `tokens` until they are numbered, `words` with their sentence
    counts, `ids` (sentences as ranks), `report`."""
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
    selected = select_pairs(piece.read(columns), parameters.filters, held_out)
    both = (selected.references, selected.translations)
    sides = classify(both, parameters.classes, parameters.language)
    vocabulary = sides[0].vocabulary
    counts = [sentence_counts(side.ids, side.offsets, len(vocabulary)) for side in sides]
    words = pa.array(vocabulary, pa.string())
    write_arrow(
        pa.table({"word": words, "reference": counts[0], "translation": counts[1]}),
        file_of(directory, "words", index),
    )
    # Offsets stay 64 bits wide, because a piece can have any size.
    lists = [pa.LargeListArray.from_arrays(pa.array(side.offsets), pa.array(side.ids)) for side in sides]
    write_arrow(pa.table(lists, list(SIDES)), file_of(directory, "tokens", index))
    report = {"counted": len(sides[0]), **selected.dropped}
    write_json(report_path, report)
    return report


def merge_vocabulary(directory: Path, pieces: int, minimum: int) -> CountedWords:
    """Add up the words of all pieces, rank them by frequency, and write them in the order of their ranks.

    A word in fewer than ``minimum`` sentences is left out. No pair of words with it can reach ``minimum``, so
    all counts that matter stay exact.
    """
    with scratch_database(directory) as connection:
        connection.execute("CREATE TABLE words (word VARCHAR, reference BIGINT, translation BIGINT)")
        for piece in range(pieces):
            check_interrupt()
            connection.register("piece", read_arrow(file_of(directory, "words", piece)))
            connection.execute("INSERT INTO words FROM piece")
        table = connection.sql(_RANKED, params=[minimum]).to_arrow_table()
    write_arrow(table, directory / _VOCABULARY)
    return CountedWords(
        table["word"].to_pylist(), table["reference"].to_numpy(), table["translation"].to_numpy()
    )


def rank_piece(directory: Path, index: int, words: int) -> npt.NDArray[np.int64]:
    """Write a piece's sentences as distinct ascending ranks. Returns the increments of each row of the
    counts.

    Needs the vocabulary that :func:`merge_vocabulary` wrote. The piece's tokens are removed at the end.
    """
    ids_path = file_of(directory, "ids", index)
    if not ids_path.is_file():
        own = read_arrow(file_of(directory, "words", index))["word"]
        found = pc.index_in(own, read_arrow(directory / _VOCABULARY)["word"])
        ranks = pc.fill_null(found.cast(pa.uint32()), pair_table.DROPPED).to_numpy()
        table = read_arrow(file_of(directory, "tokens", index))
        sides = []
        for name in SIDES:
            tokens = table[name].combine_chunks()
            offsets, ids = pair_table.distinct_ranks(
                tokens.values.to_numpy(), tokens.offsets.to_numpy(), ranks
            )
            sides.append(pa.ListArray.from_arrays(pa.array(offsets), pa.array(ids)))
        write_arrow(pa.table(dict(zip(SIDES, sides, strict=True))), ids_path)
    file_of(directory, "tokens", index).unlink(missing_ok=True)
    rows = np.zeros(words, np.int64)
    pair_table.count_row_increments(read_ids(ids_path), rows)
    return rows


def read_ids(path: Path) -> pair_table.PairTable:
    """Return a piece's pair table (see :mod:`paraforge.products.lexicon.pair_table`) without copying."""
    table = read_arrow(path)
    reference, translation = (_list_arrays(table[name]) for name in SIDES)
    return (*reference, *translation)


def _list_arrays(column: Any) -> tuple[pair_table.Offsets, pair_table.Words]:
    if column.num_chunks == 0:
        return np.zeros(1, np.int32), np.zeros(0, np.uint32)
    lists = column.combine_chunks()
    return lists.offsets.to_numpy(), lists.values.to_numpy()
