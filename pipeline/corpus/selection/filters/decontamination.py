"""Filter ``decontamination``: rejects test sentences, and pairs that share word n-grams with them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, model_validator

from paraforge.base.section import Section
from paraforge.base.text.normalisation import normalise
from paraforge.base.text.paths import FilePath, expand
from paraforge.corpus.selection.filters import (
    AcceptedPairs,
    Filter,
    FilterParameters,
    Mask,
    Verdicts,
)
from paraforge.corpus.selection.held_out import read_test_sentences

SIDES = ("reference", "translation")
ORIGINAL = "original"


class WordNgrams:
    """A set of word n-grams, stored as a chain of sorted tables so that look-up is exact and vectorized.

    Words have numbers. The table of step k lists pairs (number of a k-gram's first k - 1 words, number of its
    last word), and a pair's index in the table is the number of the k-gram.
    """

    def __init__(self, sentences: pa.Array, order: int) -> None:
        """Collect the n-grams.

        sentences: normalised sentences, words separated by one space. order: n, at least 1.
        """
        if order < 1:
            raise ValueError("an n-gram has at least one word")
        self.order = order
        words = _split(sentences)
        self.vocabulary = pc.unique(pc.drop_null(pc.list_flatten(words)))
        self._tables: list[npt.NDArray[np.int64]] = []
        numbers = self._numbers(words)
        starts = np.flatnonzero(numbers >= 0)
        codes = numbers[starts]
        for step in range(1, order):
            starts, pairs = self._extend(numbers, codes, starts, step)
            self._tables.append(np.unique(pairs))
            codes = np.searchsorted(self._tables[-1], pairs)
        self._sieve_bits = max(10, (16 * len(starts)).bit_length())
        self._sieve = np.zeros(1 << self._sieve_bits, bool)
        self._sieve[self._sieve_places(numbers)[starts]] = True

    def __len__(self) -> int:
        return len(self._tables[-1]) if self._tables else len(self.vocabulary)

    def _numbers(self, words: Any) -> npt.NDArray[np.int64]:
        """Return the number of each word of all sentences, -1 for unknown words and after each sentence."""
        flat = pc.index_in(pc.list_flatten(words), value_set=self.vocabulary)
        known = pc.fill_null(flat, -1).to_numpy(zero_copy_only=False)
        lengths = _lengths(words)
        # The separator after each sentence prevents n-grams across sentences.
        numbers = np.full(len(known) + len(lengths) + self.order, -1, np.int64)
        numbers[np.arange(len(known)) + np.repeat(np.arange(len(lengths)), lengths)] = known
        return numbers

    def _sieve_places(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        """Return a hash of the n words from each position, which rules out nearly every position without an
        n-gram."""
        words = numbers.view(np.uint64)
        places = len(numbers) - self.order + 1
        hashes = words[:places].copy()
        for step in range(1, self.order):
            hashes *= np.uint64(0x9E3779B97F4A7C15)
            hashes += words[step : step + places]
        hashes ^= hashes >> np.uint64(32)
        hashes *= np.uint64(0x94D049BB133111EB)
        return hashes >> np.uint64(64 - self._sieve_bits)

    def _extend(
        self,
        numbers: npt.NDArray[np.int64],
        codes: npt.NDArray[np.int64],
        starts: npt.NDArray[np.int64],
        step: int,
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Extend each running k-gram by the next word, and drop those that cannot be extended."""
        following = numbers[starts + step]
        known = following >= 0
        return starts[known], codes[known] * len(self.vocabulary) + following[known]

    def found_in(self, sentences: pa.Array) -> Mask:
        """Return which normalized sentences contain one of the n-grams."""
        words = _split(sentences)
        numbers = self._numbers(words)
        starts = np.flatnonzero(self._sieve[self._sieve_places(numbers)])
        starts = starts[numbers[starts] >= 0]
        codes = numbers[starts]
        for step, table in enumerate(self._tables, start=1):
            starts, pairs = self._extend(numbers, codes, starts, step)
            codes = np.searchsorted(table, pairs)
            hit = codes < len(table)
            hit[hit] = table[codes[hit]] == pairs[hit]
            codes, starts = codes[hit], starts[hit]
        ends = np.cumsum(_lengths(words) + 1)  # of each sentence, including its separator
        found = np.zeros(len(ends), bool)
        found[np.searchsorted(ends, starts, side="right")] = True
        return found


def _split(sentences: pa.Array) -> Any:
    """Return the words of each sentence. An empty sentence becomes null, because Arrow would split it into
    one empty word."""
    return pc.utf8_split_whitespace(pc.if_else(pc.equal(sentences, ""), None, sentences))


def _lengths(words: Any) -> npt.NDArray[np.int64]:
    return pc.fill_null(pc.list_value_length(words), 0).to_numpy(zero_copy_only=False).astype(np.int64)


@dataclass(frozen=True)
class Decontamination(Filter):
    """Rejects a pair if either side, or the reference behind a pair of two translations, is a test sentence
    or shares an n-gram with one.

    sentences: distinct normalized test sentences, sorted. ngrams: the test sentences' n-grams, or None.
    """

    sentences: Any = None
    ngrams: WordNgrams | None = None

    def verdicts(self, rows: pa.Table, shard: int) -> Verdicts:
        """See :class:`~paraforge.corpus.selection.filters.Filter`."""
        refused = np.zeros(rows.num_rows, bool)
        for side in self.columns:
            texts = rows.column(side).combine_chunks()
            if isinstance(texts, pa.ChunkedArray):
                texts = pa.concat_arrays(texts.chunks)
            normalised = normalise(texts if side in SIDES else pc.fill_null(texts, ""))
            refused |= pc.is_in(normalised, value_set=self.sentences).to_numpy(zero_copy_only=False)
            if self.ngrams is not None:
                refused |= self.ngrams.found_in(normalised)
        return refused.astype(np.uint8)


def build_decontamination(name: str, sentences: Iterable[str], ngram: int | None = None) -> Decontamination:
    """Build the filter from test sentences. Memory grows with the test files, not with the corpus.

    name: the filter's name, which is the reason of the pairs it rejects.
    sentences: test sentences, not normalised.
    ngram: also reject pairs that share this many words in a row with a test sentence.
    """
    normalised = pc.unique(normalise(pa.array(list(sentences), pa.string())))
    normalised = normalised.filter(pc.not_equal(normalised, ""))
    normalised = normalised.take(pc.array_sort_indices(normalised))
    digest = hashlib.sha256()
    for sentence in normalised.to_pylist():
        digest.update(sentence.encode("utf-8") + b"\n")
    ngrams = WordNgrams(normalised, ngram) if ngram else None
    return Decontamination(name, SIDES, digest.hexdigest(), normalised, ngrams)


class TestFileParameters(Section):
    """A file of sentences that must not be in the corpus."""

    __test__ = False  # not a test class, despite its name

    path: FilePath = Field(
        min_length=1, description="plain or compressed file; environment variables are expanded"
    )
    format: Literal["plain", "tsv", "sts"] = "plain"
    columns: list[int | str] = Field(
        default_factory=list,
        description="columns of a TSV, by number from 0 or by name in the header; sts has 1 and 2",
    )
    header: bool = False

    @model_validator(mode="after")
    def _columns_fit(self) -> TestFileParameters:
        if self.format == "plain" and self.columns:
            raise ValueError("a plain file has no columns: set format: tsv")
        if self.format == "tsv" and not self.columns:
            raise ValueError("name the columns of the TSV that contain sentences")
        if any(isinstance(column, int) and column < 0 for column in self.columns):
            raise ValueError("columns are numbers from 0")
        return self

    def location(self) -> Path:
        """Return the path with environment variables and ``~`` expanded."""
        return Path(expand(self.path))


class DecontaminationParameters(FilterParameters):
    """Rejects pairs with a side that is a test sentence or shares an n-gram with one."""

    kind: Literal["decontamination"]
    files: list[TestFileParameters] = Field(min_length=1)
    ngram: int | None = Field(
        None,
        ge=1,
        le=100,
        description="length in words of the sequences that must not be shared either; null: only whole "
        "sentences count",
    )

    removed: ClassVar[Mapping[str, str]] = {"exact": "whole sentences are always looked for"}

    def columns(self) -> tuple[str, ...]:
        """Both sides of the pair."""
        return SIDES

    def refusal(self) -> str:
        """``shares text with a test file``."""
        return "shares text with a test file"

    def signature(self, fingerprint: str | None = None) -> tuple[str, str]:
        """E.g. ``decon:exact+8gram:3fa9c1d2``."""
        rules = ["exact"] + [f"{self.ngram}gram"] * (self.ngram is not None)
        return "decon", f"{'+'.join(rules)}:{(fingerprint or 'none')[:8]}"

    def prepare(self, pairs: AcceptedPairs) -> Filter:
        """Read the test files."""
        sentences = (
            sentence
            for file in self.files
            for sentence in read_test_sentences(file.location(), file.format, file.columns, file.header)
        )
        built = build_decontamination(self.reason, sentences, self.ngram)
        return replace(built, columns=(*SIDES, ORIGINAL)) if ORIGINAL in pairs.column_names else built
