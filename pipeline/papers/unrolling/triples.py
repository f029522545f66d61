"""Reads sentences of documents in order, and stores triples of neighbors as word ids on disk, memory-mapped;
memory does not grow with the corpus."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import torch

from paraforge.base.errors import InputError, describing
from paraforge.base.files import hash_json, read_json, sha256_file, write_json
from paraforge.base.interrupts import check_interrupt
from paraforge.base.progress import progress
from paraforge.base.text.compression import compression_of, refuse_binary
from paraforge.base.text.lines import Reading, line_blocks
from paraforge.base.text.ragged import offsets_of, ranges
from paraforge.base.text.units import Words
from paraforge.base.text.vocabulary import Vocabulary, most_frequent
from paraforge.embeddings.evaluation.leakage import LeakageFilter
from paraforge.embeddings.learning.batches import Bags
from paraforge.embeddings.learning.id_sequences import IdSequences, IdSequencesWriter, map_array
from paraforge.embeddings.trainer.parameters import VocabularyParameters
from paraforge.intake.bitext.block import CODES, Block, reason_codes
from paraforge.intake.bitext.readers.tsv import read_separated

FORMAT = 3
_UNIT = "word"
VOCABULARY = f"{_UNIT}.vocabulary.json"
_INDEX = "triples.json"
_CENTRES = "centres"
_BLOCK_ROWS = 50_000
_TEXT = "sentence"
END: Final = "\n"
"""The end of a sentence as a word of the vocabulary. No token contains white space."""


@dataclass(frozen=True)
class SentenceFile:
    """A file of contiguous sentences, plain, gz, bz2, xz or zst: a TSV with the sentence in the last column
    if its first line has a tab, otherwise one sentence per line.

    document_columns: columns of a TSV, from 0, that identify the document; None for the first one. Without
        such columns, and in plain text, a blank line ends a document.
    """

    path: Path
    document_columns: Sequence[int] | None = None

    def identity(self) -> Any:
        """Return everything that the text depends on, as JSON values. Raises InputError if the file is
        missing."""
        if not self.path.is_file():
            raise InputError("no such file", self.path)
        return [sha256_file(self.path), self.document_columns]


@dataclass(frozen=True)
class SentenceBlock:
    """Consecutive sentences.

    sentences: string array (pyarrow) without nulls; some may be blank.
    documents: number of each sentence's document, int64, ascending.
    held_out: number of sentences that were left out.
    """

    sentences: Any
    documents: npt.NDArray[np.int64]
    held_out: int = 0

    def __len__(self) -> int:
        return len(self.sentences)


def read_sentences(file: SentenceFile, held_out: LeakageFilter | None = None) -> Iterator[SentenceBlock]:
    """Yield the sentences of a file, block by block.

    held_out: sentences to leave out; a document ends at each of them.

    Raises InputError if the file is missing, empty, damaged or lacks a column; with the line number if a line
    is not UTF-8 or does not have as many columns as the first.
    """
    left_out = 0
    for texts, numbers in _read(file):
        held = np.zeros(len(texts), dtype=bool) if held_out is None else held_out.sentences.holds(texts)
        documents = numbers + left_out + np.cumsum(held, dtype=np.int64)
        left_out += int(held.sum())
        yield SentenceBlock(texts.filter(pa.array(~held)), documents[~held], int(held.sum()))


def _read(file: SentenceFile) -> Iterator[tuple[Any, npt.NDArray[np.int64]]]:
    """Yield sentences and their documents' numbers, from 0."""
    compression_of(file.path)
    refuse_binary(file.path)
    columns = _columns(file)
    last: list[str] | None = None
    document = 0
    for block in _rows(file.path, columns):
        _check(block, file.path)
        texts = block.texts[_TEXT]
        keys = [block.texts[name] for name in columns if name != _TEXT]
        if keys:
            changed = np.zeros(len(block), dtype=bool)
            for number, key in enumerate(keys):
                changed[1:] |= pc.not_equal(key[1:], key[:-1]).to_numpy(zero_copy_only=False)
                changed[0] |= last is not None and key[0].as_py() != last[number]
            last = [key[-1].as_py() for key in keys]
        else:
            changed = pc.equal(pc.utf8_trim_whitespace(texts), "").to_numpy(zero_copy_only=False)
        documents = document + np.cumsum(changed, dtype=np.int64)
        document = int(documents[-1])
        if not keys:  # a blank line is not a sentence
            texts, documents = texts.filter(pa.array(~changed)), documents[~changed]
        yield texts, documents


def _columns(file: SentenceFile) -> dict[str, int]:
    """Return the columns of the sentence and of the document's name; none for plain text."""
    first = next(iter(line_blocks(file.path, Reading(strict=False)))).lines[0].as_py()
    sentence, documents = first.count("\t"), file.document_columns
    if documents is None:
        if not sentence:
            return {}
        documents = (0,)
    if sentence in documents:
        raise InputError(
            f"column {sentence} has the sentences, so it cannot identify documents",
            file.path,
            remedy="Pass other columns with --document-columns.",
        )
    return {_TEXT: sentence, **{f"document {number}": number for number in documents}}


def _rows(path: Path, columns: dict[str, int]) -> Iterator[Block]:
    if columns:
        yield from read_separated(path, columns, Reading(strict=False))
        return
    for lines in line_blocks(path, Reading(strict=False)):
        yield Block(lines.numbers, {_TEXT: lines.lines.cast(pa.string())}, reason_codes(lines))


def _check(block: Block, path: Path) -> None:
    """Raise InputError for a faulty row, because leaving it out would make other sentences neighbors."""
    if not block.codes.any():
        return
    row = int(np.flatnonzero(block.codes)[0])
    reason = next(name for name, code in CODES.items() if code == block.codes[row])
    problem = {
        "malformed": "another number of columns than the first line",
        "invalid_utf8": "not UTF-8 text",
        "overlong_line": "the line is too long for a sentence",
    }.get(reason, reason)
    raise InputError(problem, path, int(block.lines[row]), "Correct the line.")


@dataclass(frozen=True)
class TripleBatch:
    """Sentences with their neighbors, as word ids including their ends; triple k is entry k of all three."""

    previous: Bags
    current: Bags
    following: Bags

    def __len__(self) -> int:
        return len(self.current)

    def to(self, device: torch.device) -> TripleBatch:
        """Return the same on a device."""
        return TripleBatch(self.previous.to(device), self.current.to(device), self.following.to(device))


class TripleStore:
    """A directory with sentences as ids, and which of them have neighbors on both sides.

    sentences, documents: their numbers. skipped: number of sentences without words, which were left out.
    held_out: number of other sentences left out. fingerprint: hash of ids, triples and vocabulary.
    vocabulary: the words.
    """

    def __init__(self, directory: Path) -> None:
        """Open a directory written by `build_triple_store`. Raises InputError if it is missing, damaged, or
        has ids outside the vocabulary."""
        path = directory / _INDEX
        index = read_json(path)
        with describing(path):
            if index["format"] != FORMAT:
                raise InputError(f"format {index['format']}, not {FORMAT}", path)
            self._triples = int(index["triples"])
            self.sentences, self.skipped = int(index["sentences"]), int(index["skipped"])
            self.documents, self.held_out = int(index["documents"]), int(index["held_out"])
            described = dict(index["words"])
        self.directory = directory
        self.fingerprint = hash_json(index)
        self._sequences = IdSequences(directory, _UNIT, self.sentences, described)
        self.vocabulary = self._sequences.vocabulary
        self._centres = map_array(directory / _CENTRES, "int64", (self._triples,))

    def __len__(self) -> int:
        """Return the number of triples."""
        return self._triples

    def batch(self, triples: npt.NDArray[np.int64]) -> TripleBatch:
        """Return the triples with these numbers, in this order."""
        centres = np.asarray(self._centres[triples])
        return TripleBatch(*(self._sequences.select(centres + step) for step in (-1, 0, 1)))


def build_triple_store(
    directory: Path,
    blocks: Iterable[SentenceBlock],
    limits: VocabularyParameters,
    maximum_length: int,
) -> TripleStore:
    """Split sentences into words, choose the vocabulary, and write the ids to disk.

    Memory holds one block of sentences and the distinct words. Sentences without words are left out and
    counted. The vocabulary is the unknown word, the most frequent words, and the end of sentence.

    maximum_length: maximum number of words in a sentence, including its end.

    Raises InputError if no sentence has a neighbor on both sides within its document.
    """
    directory.mkdir(parents=True, exist_ok=True)
    (directory / _INDEX).unlink(missing_ok=True)
    writer = _Writer(directory, maximum_length)
    try:
        with progress(total=None, unit="sentences", description="read") as shown:
            for block in blocks:
                writer.held_out += block.held_out
                for first in range(0, len(block), _BLOCK_ROWS):
                    check_interrupt()
                    texts = block.sentences.slice(first, _BLOCK_ROWS)
                    writer.append(texts, block.documents[first : first + _BLOCK_ROWS])
                    shown.update(len(texts))
    finally:
        writer.close()
    if not writer.triples:
        raise InputError(
            f"no triples to train on: {writer.sentences:,} sentences with words in {writer.documents:,} "
            "documents, none with a neighbor on both sides",
            remedy="A document needs at least three sentences. Check the file's format and the column that "
            "identifies documents.",
        )
    writer.finish(limits)
    return TripleStore(directory)


class _Writer:
    def __init__(self, directory: Path, maximum_length: int) -> None:
        self.sentences = self.skipped = self.triples = self.documents = self.held_out = 0
        self._directory = directory
        self._maximum_length = maximum_length
        self._units = Words()
        self._words = IdSequencesWriter(directory, _UNIT, known=[END])
        # The documents of the last two sentences, which can be neighbors of the next ones.
        self._before = np.empty(0, dtype=np.int64)
        self._centres = (directory / _CENTRES).open("wb")
        self._digest = hashlib.sha256()

    def append(self, texts: Any, documents: npt.NDArray[np.int64]) -> None:
        (cut,) = self._units.cut(texts)
        kept = np.flatnonzero(cut.lengths > 0)
        self.skipped += len(cut) - len(kept)
        if not len(kept):
            return
        lookup = self._words.numbers(cut.vocabulary)
        # Sentences without words have no ids, so only their offsets need to be removed.
        offsets = np.append(cut.offsets[kept], cut.offsets[-1])
        ids, offsets = with_ends(lookup[cut.ids], offsets, 0, self._maximum_length)
        self._words.append(ids, offsets[1:])
        self._append_centres(documents[kept])
        self.sentences += len(kept)

    def _append_centres(self, documents: npt.NDArray[np.int64]) -> None:
        joined = np.concatenate([self._before, documents])
        known = self._before[-1:]
        self.documents += int((np.diff(np.concatenate([known, documents])) != 0).sum()) + (not len(known))
        # Documents are contiguous, so a sentence whose neighbors share a document belongs to it.
        inner = np.flatnonzero(joined[2:] == joined[:-2]) + 1
        centres = (inner + self.sentences - len(self._before)).astype(np.int64)
        self._centres.write(centres.tobytes())
        self._digest.update(centres.tobytes())
        self.triples += len(centres)
        self._before = joined[-2:]

    def close(self) -> None:
        self._words.close()
        self._centres.close()

    def finish(self, limits: VocabularyParameters) -> None:
        frequent, numbers = most_frequent(
            self._words.units[1:],
            self._words.counts[1:],
            minimum_count=limits.minimum_count,
            maximum_size=limits.maximum_size,
        )
        vocabulary = Vocabulary([*frequent.units, END])
        words = self._words.finish(vocabulary, np.concatenate([[len(vocabulary) - 1], numbers]))
        write_json(
            self._directory / _INDEX,
            {
                "format": FORMAT,
                "triples": self.triples,
                "sentences": self.sentences,
                "skipped": self.skipped,
                "documents": self.documents,
                "held_out": self.held_out,
                "sha256": self._digest.hexdigest(),
                "words": words,
                "words_sha256": hashlib.sha256("\n".join(vocabulary.units).encode()).hexdigest(),
            },
        )


def with_ends(
    ids: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64], end: int, maximum_length: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Return ids and offsets of sentences cut to `maximum_length` - 1 words and followed by `end`.

    ids, offsets: sentence k has the ids offsets[k] to offsets[k + 1] - 1.
    """
    lengths = np.minimum(np.diff(offsets), maximum_length - 1) + 1
    new_offsets = offsets_of(lengths)
    places = ranges(offsets[:-1], lengths)
    ends = new_offsets[1:] - 1
    places[ends] = 0  # overwritten by the end; any valid position would do
    result = (ids[places] if len(ids) else np.zeros(len(places), dtype=ids.dtype)).copy()
    result[ends] = end
    return result, new_offsets
