"""Weights of words in a sentence's average: smooth inverse frequency (Arora 2017) and inverse document
frequency."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.base.errors import InputError
from paraforge.base.interrupts import check_interrupt
from paraforge.base.text.idf import Background, background_of_frequencies, count_documents
from paraforge.base.text.pair_blocks import PairBlock, read_corpus_pairs
from paraforge.base.text.tokens import tokenize_column, tokenize_columns

SIF_A = 1e-3
"""a of Arora 2017 in all of its tables."""


class Weighting(Protocol):
    """Gives each word a weight."""

    @property
    def kind(self) -> str:
        """How files name it."""

    @property
    def background(self) -> Background:
        """The counts that the weights come from."""

    def weights(self, words: Sequence[str]) -> npt.NDArray[np.float64]:
        """One weight a word, (words,) float64, not negative."""


@dataclass(frozen=True)
class SmoothInverseFrequency:
    """a / (a + p(w)); a word that the counts lack has p = 0 and so the weight 1. Lists without whole kinds of
    words are first completed from a text, see `Background.completed`.

    background: running words: `documents` is their number, `counts` how often each occurs.
    """

    background: Background
    a: float = SIF_A
    kind: ClassVar[str] = "sif"

    def __post_init__(self) -> None:
        if not 0 < self.a < np.inf:
            raise InputError(f"a is {self.a}; it has to be greater than 0")

    def weights(self, words: Sequence[str]) -> npt.NDArray[np.float64]:
        """0 to 1."""
        return self.a / (self.a + _counts(self.background, words) / self.background.documents)


@dataclass(frozen=True)
class InverseDocumentFrequency:
    """ln((1 + N) / (1 + N_w)) of N sentences (Arora 2017, Eq. 7).

    background: sentences: `documents` is their number, `counts` how many have each word.
    """

    background: Background
    kind: ClassVar[str] = "idf"

    def weights(self, words: Sequence[str]) -> npt.NDArray[np.float64]:
        """0 for a word in every sentence."""
        return np.log((1 + self.background.documents) / (1 + _counts(self.background, words)))


def _counts(background: Background, words: Sequence[str]) -> npt.NDArray[np.float64]:
    get = background.counts.get
    return np.fromiter((get(word, 0) for word in words), np.float64, len(words))


def word_counts(path: Path) -> Background:
    """How often words occur: from a file of words and counts (`the 167485604`), or on both sides of the pairs
    of a corpus' shards that are neither rejected nor failed.

    Raises InputError with file and line where there is no word, or not a word and a positive whole number.
    """
    if path.is_file():
        return background_of_frequencies(path, sentences=None)
    return count_pairs(read_corpus_pairs(path), path.name)


def count_pairs(blocks: Iterable[PairBlock], name: str) -> Background:
    """How often each word occurs on either side of pairs; InputError without any. Memory grows with the
    vocabulary."""
    counts: dict[str, int] = {}
    for block in blocks:
        check_interrupt()
        for side in tokenize_columns(block.left, block.right):
            for token, count in side.occurrences().items():
                counts[token] = counts.get(token, 0) + count
    total = sum(counts.values())
    if not total:
        raise InputError(f"not a word to count in {name}")
    return Background(name, total, counts)


def sentence_counts(texts: Sequence[str], name: str) -> Background:
    """How many of these sentences contain each word, for an inverse document frequency."""
    return Background(name, len(texts), count_documents(tokenize_column(pa.array(texts, pa.string()))))


def completed_from(weighting: Weighting | None, texts: Sequence[str]) -> Weighting | None:
    """The weighting with p(w) of words that its list lacks estimated from texts (`Background.completed`)."""
    if not isinstance(weighting, SmoothInverseFrequency) or not weighting.background.partial:
        return weighting
    column = tokenize_column(pa.array(texts, pa.string()))
    return replace(weighting, background=weighting.background.completed(column))
