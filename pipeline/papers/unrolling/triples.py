"""Reads the sentences of documents in order, and stores them as word ids in memory-mapped files.

It also finds the triples: sentences with a previous and a next sentence in the same document.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import torch

from paraforge.base.errors import InputError
from paraforge.base.logs import counted
from paraforge.base.progress import progress
from paraforge.base.text.lines import BLOCK_BYTES, whole_lines
from paraforge.base.text.normalization import SentenceSet
from paraforge.base.text.ragged import offsets_of, ranges
from paraforge.base.text.tokens import TokenColumn
from paraforge.base.text.units import Units
from paraforge.base.text.vocabulary import WORD, Vocabulary, most_frequent
from paraforge.embeddings.learning.batches import Bags
from paraforge.embeddings.learning.id_sequences import IdSequences, IdSequencesWriter
from paraforge.embeddings.trainer.parameters import VocabularyParameters

END: Final = "\n"
"""End-of-sentence symbol of the vocabulary; it differs from all tokens, which have no white space."""
MAXIMUM_LENGTH: Final = 30
"""Largest number of words in a sentence, including its end symbol (DD 4); the rest is cut off."""


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


def read_sentences(
    path: Path, held_out: SentenceSet | None = None, block_bytes: int = BLOCK_BYTES
) -> Iterator[SentenceBlock]:
    """Yield the sentences of a text file (plain, gz, bz2, xz or zst) in order, block by block.

    If the first line has a tab, the sentence is the last column, and the other columns are the document's
    name: a document ends where they change. Otherwise each line is a sentence, and a blank line ends a
    document.

    held_out: sentences to leave out; a document ends at each of them.

    Raises InputError if the file is missing, empty or damaged; with the line number if a line is not UTF-8 or
    does not have as many columns as the first.
    """
    tabs: int | None = None
    last: str | None = None
    document = 0
    for block in whole_lines(path, block_bytes):
        counts = pc.count_substring(block.lines, "\t").to_numpy()
        if tabs is None:
            tabs = int(counts[0])
        if tabs:
            if (counts != tabs).any():
                wrong = int(np.flatnonzero(counts != tabs)[0])
                # Leaving the line out would make other sentences neighbors.
                problem = f"{counted(int(counts[wrong]) + 1, 'column')}, but the first line has {tabs + 1}"
                raise InputError(problem, path, block.first + wrong, "Correct the line.")
            parts = pc.split_pattern(block.lines, "\t", max_splits=1, reverse=True)
            names, texts = (pc.list_element(parts, side) for side in (0, 1))
            before = pa.concat_arrays([pa.array([names[0].as_py() if last is None else last]), names[:-1]])
            begins = pc.not_equal(names, before).to_numpy(zero_copy_only=False)
            last = names[-1].as_py()
            blank = np.zeros(len(texts), dtype=bool)
        else:
            texts = block.lines
            begins = blank = pc.equal(pc.utf8_trim_whitespace(texts), "").to_numpy(zero_copy_only=False)
        held = blank if held_out is None else held_out.holds(texts) | blank
        documents = document + np.cumsum(begins | held, dtype=np.int64)
        document = int(documents[-1])
        yield SentenceBlock(texts.filter(pa.array(~held)), documents[~held], int((held & ~blank).sum()))


@dataclass(frozen=True)
class TripleBatch:
    """Sentences with their neighbors, as word ids with end symbols; triple k is entry k of all three."""

    previous: Bags
    current: Bags
    following: Bags

    def __len__(self) -> int:
        return len(self.current)

    def to(self, device: torch.device) -> TripleBatch:
        """Return the batch on a device."""
        return TripleBatch(self.previous.to(device), self.current.to(device), self.following.to(device))


@dataclass(frozen=True)
class TripleStore:
    """Sentences as word ids, and the numbers of the sentences with neighbors on both sides.

    centers: numbers of these sentences, int64 (triples,).
    sentences, documents: how many there are. skipped: sentences left out because they have no words.
    held_out: held-out sentences, also left out.
    """

    ids: IdSequences
    centers: npt.NDArray[np.int64]
    sentences: int
    documents: int
    skipped: int
    held_out: int

    def __len__(self) -> int:
        """Return the number of triples."""
        return len(self.centers)

    @property
    def vocabulary(self) -> Vocabulary:
        """The unknown word, the most frequent words, and the end of a sentence."""
        return self.ids.vocabulary

    def batch(self, triples: npt.NDArray[np.int64]) -> TripleBatch:
        """Return the triples with these numbers, in this order."""
        centers = self.centers[triples]
        return TripleBatch(*(self.ids.select(centers + step) for step in (-1, 0, 1)))


def build_triple_store(
    directory: Path, blocks: Iterable[SentenceBlock], limits: VocabularyParameters
) -> TripleStore:
    """Split sentences into words, choose the vocabulary, and write the ids to files in a directory.

    Earlier files are replaced. Memory holds one block of sentences, the distinct words, and at most 10 bytes
    for each sentence. Sentences without words are left out and counted.

    Raises InputError if no sentence has a neighbor on both sides within its document.
    """
    directory.mkdir(parents=True, exist_ok=True)
    units, last = Units(), -1
    skipped = held_out = 0
    begins_document = [np.empty(0, dtype=bool)]  # whether a sentence begins a document
    words = IdSequencesWriter(directory, WORD, known=[END])
    with closing(words), progress(total=None, unit="sentences", description="read") as shown:
        for block in blocks:
            (cut,) = units.cut(block.sentences)
            kept = np.flatnonzero(cut.lengths > 0)
            shown.update(len(cut))
            held_out += block.held_out
            skipped += len(cut) - len(kept)
            if not len(kept):
                continue
            # Sentences without words have no ids, so only their offsets need to be removed.
            offsets = np.append(cut.offsets[kept], cut.offsets[-1])
            ids, offsets = with_ends(cut.ids, offsets, len(cut.vocabulary))
            words.append(TokenColumn(ids, offsets, [*cut.vocabulary, END]))
            documents = block.documents[kept]
            begins_document.append(np.diff(documents, prepend=last) != 0)
            last = int(documents[-1])
    begins = np.concatenate(begins_document)
    centers = np.flatnonzero(~(begins[1:-1] | begins[2:])) + 1
    if not len(centers):
        raise InputError(
            f"no triples to train on: {len(begins):,} sentences with words in {begins.sum():,} documents, "
            "none with a neighbor on both sides",
            remedy="A document needs at least three sentences. Check the file's format: the columns before "
            "the sentence identify its document.",
        )
    frequent, numbers = most_frequent(
        words.units[1:],
        words.counts[1:],
        minimum_count=limits.minimum_count,
        maximum_size=limits.maximum_size,
    )
    vocabulary = Vocabulary([*frequent.units, END])
    described = words.finish(vocabulary, np.concatenate([[len(vocabulary) - 1], numbers]))
    stored = IdSequences(directory, WORD, len(begins), described)
    return TripleStore(stored, centers, len(begins), int(begins.sum()), skipped=skipped, held_out=held_out)


def with_ends(
    ids: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64], end: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Return ids and offsets of sentences cut to `MAXIMUM_LENGTH` - 1 words and followed by `end`.

    ids, offsets: sentence k has the ids offsets[k] to offsets[k + 1] - 1.
    """
    lengths = np.minimum(np.diff(offsets), MAXIMUM_LENGTH - 1) + 1
    new_offsets = offsets_of(lengths)
    places = ranges(offsets[:-1], lengths)
    ends = new_offsets[1:] - 1
    places[ends] = 0  # any valid position; overwritten by the end symbol below
    result = (ids[places] if len(ids) else np.zeros(len(places), dtype=ids.dtype)).copy()
    result[ends] = end
    return result, new_offsets
