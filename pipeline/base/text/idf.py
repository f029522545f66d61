"""Inverse document frequency of words over the sentences of a background corpus."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.base.compiled import compiled
from paraforge.base.errors import InputError
from paraforge.base.text.lines import numbered_lines
from paraforge.base.text.tokens import TokenColumn, tokenize_column

logger = logging.getLogger(__name__)

_SENTENCES_AT_ONCE = 50_000
_MISSING = 0.01
"""If more than this share of a text's words have no count, the list probably lacks whole kinds of words."""
_WARNED: set[str] = set()


@dataclass(frozen=True)
class Background:
    """The number of sentences that contain each word, or how often each word occurs.

    name: where the counts come from. documents: number of sentences, or of words.
    counts: sentences with each word, or its occurrences; words without any are not included.
    partial: a list of words from elsewhere, which may lack whole kinds of words. Lists of Wikipedia's words
        often have no punctuation and no clitics, a fifth of a novel's tokens.
    """

    name: str
    documents: int
    counts: Mapping[str, int]
    partial: bool = False

    def missing(self, text: Mapping[str, int]) -> dict[str, int]:
        """Return the words of a text that a partial list lacks, with their counts in the text. If they are at
        most 1% of the text, returns none; otherwise warns, once per list."""
        lacking = {word: count for word, count in text.items() if word not in self.counts}
        share = sum(lacking.values()) / max(1, sum(text.values()))
        if not self.partial or share <= _MISSING:
            return {}
        if self.name not in _WARNED:
            _WARNED.add(self.name)
            most = sorted(lacking, key=lambda word: (-lacking[word], word))[:5]
            message = "%s has no count for %.0f%% of the words in the text, such as %s"
            logger.warning(message, self.name, 100 * share, " ".join(most))
        return lacking

    def completed(self, tokens: TokenColumn) -> Background:
        """Return this with counts for the words that :meth:`missing` finds, estimated from a text in
        proportion to the known words."""
        text = tokens.occurrences()
        lacking = self.missing(text)
        if not lacking:
            return self
        known = sum(text.values()) - sum(lacking.values()) or sum(text.values())
        estimates = {word: max(1, round(self.documents * count / known)) for word, count in lacking.items()}
        documents = self.documents + sum(estimates.values())
        return replace(self, documents=documents, counts={**self.counts, **estimates}, partial=False)

    def idf(self, words: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return ``ln(N / #(u))`` of each word; a word that the background lacks counts as in one
        sentence."""
        counts = self.counts
        documents = np.fromiter((counts.get(word, 1) for word in words), np.float64, len(words))
        return np.log(self.documents) - np.log(np.minimum(documents, self.documents))


def sentence_means(tokens: TokenColumn, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the mean value of each sentence's tokens, repeats included; NaN for a sentence without tokens.

    tokens: sentences over a vocabulary. values: one per word of the vocabulary.
    """
    totals = np.bincount(tokens.row_numbers, weights=values[tokens.ids], minlength=len(tokens))
    lengths = tokens.lengths
    means = np.full(len(tokens), np.nan)
    np.divide(totals, lengths, out=means, where=lengths > 0)
    return means


def count_documents(tokens: TokenColumn) -> dict[str, int]:
    """Return the number of sentences that contain each word."""
    counts = sentence_counts(tokens.ids, tokens.offsets, len(tokens.vocabulary))
    return {tokens.vocabulary[word]: int(counts[word]) for word in np.flatnonzero(counts).tolist()}


def background_of_sentences(path: Path) -> Background:
    """Count a file of sentences, one per line, plain or compressed. Memory grows only with the vocabulary.
    Raises InputError if the file cannot be read, is not UTF-8, or has no sentence."""
    counts: Counter[str] = Counter()
    documents = 0
    texts = (text for _, text in numbered_lines(path))
    while batch := list(islice(texts, _SENTENCES_AT_ONCE)):
        counts.update(count_documents(tokenize_column(pa.array(batch, pa.string()))))
        documents += len(batch)
    if not documents:
        raise InputError("the file has no sentences", path)
    return Background(path.name, documents, counts)


def background_of_frequencies(path: Path) -> Background:
    """Read words and how often they occur, one per line, e.g. ``the 167485604``, from a file, plain or
    compressed. Words are lower-cased and their counts added.

    Raises InputError, with file and line, if a line is not a word and a positive whole number.
    """
    counts: Counter[str] = Counter()
    for number, text in numbered_lines(path):
        fields = text.split("\t") if "\t" in text else text.split()
        if len(fields) != 2 or not fields[1].isdecimal() or int(fields[1]) < 1:
            raise InputError("expected a word and its count", path, number)
        counts[fields[0].lower()] += int(fields[1])
    if not counts:
        raise InputError("the file has no words", path)
    return Background(path.name, sum(counts.values()), counts, partial=True)


def entropy(counts: Iterable[int]) -> float:
    """Return the entropy in nats of the distribution with these counts; 0 for no counts."""
    values = np.fromiter(counts, np.float64)
    total = float(values.sum())
    if not total:
        return 0.0
    shares = values[values > 0] / total
    # A single outcome would give -0.0.
    return abs(math.fsum((-shares * np.log(shares)).tolist()))


Counts = npt.NDArray[np.int64]


@compiled
def sentence_counts(ids: npt.NDArray[np.int32], offsets: Counts, words: int) -> Counts:
    """Return the number of sentences with each of `words` words; a word counts once per sentence."""
    counts = np.zeros(words, np.int64)
    last = np.full(words, -1, np.int64)
    for sentence in range(len(offsets) - 1):
        for position in range(offsets[sentence], offsets[sentence + 1]):
            word = ids[position]
            if last[word] != sentence:
                last[word] = sentence
                counts[word] += 1
    return counts
