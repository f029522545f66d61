"""Scores from the words of a pair (lengths, shared n-grams, numbers) and from the counts of its corpus."""

from __future__ import annotations

import re
from math import inf
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.corpus.scorer import SHARES, Column, Scale, Scorer, ScorerChoice
from paraforge.corpus.scoring.word_scorer import WordScorer

if TYPE_CHECKING:
    from paraforge.corpus.scoring.corpus_counts import CorpusCounts
    from paraforge.corpus.scoring.lexical_table import LexicalTable
    from paraforge.corpus.scoring.pairs import Pairs

_DIGITS: Final = re.compile(r"\d+")
# Matches every text with a decimal digit of any script, and some others: Unicode has ASCII's digits, and none
# below U+0660 or among the punctuation and symbols from U+2000 to U+2FFF.
_MAY_HAVE_DIGITS: Final = r"[0-9\x{0660}-\x{1fff}\x{3000}-\x{10ffff}]"
FEWEST_WORDS = 1000
"""Without the general scorer, the references need this many distinct words to show which words exist."""


class Lengths(Scorer):
    """The number of tokens of the reference and of the translation."""

    columns = (
        Column(
            "reference_tokens",
            pa.int32(),
            "Moses tokens of the reference",
            label="tokens of the reference",
            scale=Scale(0, 101, 101),
            limits=(0, inf),
        ),
        Column(
            "translation_tokens",
            pa.int32(),
            "Moses tokens of the translation",
            label="tokens of the translation",
            scale=Scale(0, 101, 101),
            limits=(0, inf),
        ),
    )
    place = 10

    def __call__(self, pairs: Pairs) -> dict[str, Any]:
        """Return int32 columns."""
        return {
            "reference_tokens": pa.array(pairs.reference_tokens.lengths.astype(np.int32)),
            "translation_tokens": pa.array(pairs.translation_tokens.lengths.astype(np.int32)),
        }


class Overlap(Scorer):
    """The size of the multiset intersection of both sides' n-grams / the smaller side's number of n-grams. 0
    if a side has no n-gram; 1 if the other side contains all n-grams of the smaller one."""

    columns = (
        Column(
            "overlap_1",
            pa.float32(),
            "unigram overlap: multiset intersection / the smaller total",
            label="unigram overlap",
            scale=SHARES,
        ),
        Column("overlap_2", pa.float32(), "bigram overlap", label="bigram overlap", scale=SHARES),
        Column("overlap_3", pa.float32(), "trigram overlap", label="trigram overlap", scale=SHARES),
    )
    place = 30

    def __call__(self, pairs: Pairs) -> dict[str, Any]:
        """Return float32, 0 to 1."""
        from paraforge.base.text.ngrams import totals

        result = {}
        for order, name in enumerate(self.names, start=1):
            smaller = np.minimum(
                totals(pairs.reference_tokens, order), totals(pairs.translation_tokens, order)
            )
            # Nothing is shared if the smaller total is 0.
            overlap = pairs.shared[order - 1] / np.maximum(smaller, 1)
            result[name] = pa.array(overlap.astype(np.float32))
        return result


class CopyRate(Scorer):
    """The share of the translation's tokens that are also in the reference, each at most as often as there.

    Size of the multiset intersection of both sides' tokens / tokens of the translation. It differs from the
    unigram overlap if the translation is longer than its reference: a reference contained in a long
    translation has overlap 1 and a lower copy rate. 0 if the translation has no token.
    """

    columns = (
        Column(
            "copy_rate",
            pa.float32(),
            "share of the translation's tokens that the reference also has (multiset)",
            scale=SHARES,
        ),
    )
    place = 40

    def __call__(self, pairs: Pairs) -> dict[str, Any]:
        """Return float32, 0 to 1."""
        rate = pairs.shared[0] / np.maximum(pairs.translation_tokens.lengths, 1)
        return {"copy_rate": pa.array(rate.astype(np.float32))}


class DigitMismatch(Scorer):
    """True if the multisets of the two sides' digit strings differ.

    A digit string is a maximal run of decimal digits (of any script) in the unchanged text, so "5,300" has
    "5" and "300", and "5300" is something else. "two" has none.
    """

    columns = (
        Column(
            "digit_mismatch",
            pa.bool_(),
            "the two sides do not have the same runs of digits: `5,300` has 5 and 300, `two` has none",
            label="different digits",
        ),
    )
    place = 50

    def __call__(self, pairs: Pairs) -> dict[str, Any]:
        """Return bool, never null."""
        mismatch = np.zeros(len(pairs), dtype=bool)
        candidates = np.flatnonzero(_may_have_digits(pairs.reference) | _may_have_digits(pairs.translation))
        rows = pa.array(candidates)
        mismatch[candidates] = [
            digit_strings(reference) != digit_strings(translation)
            for reference, translation in zip(
                pairs.reference.take(rows).to_pylist(), pairs.translation.take(rows).to_pylist(), strict=True
            )
        ]
        return {"digit_mismatch": pa.array(mismatch)}


def digit_strings(text: str) -> list[str]:
    """Return the maximal runs of decimal digits of a text, sorted."""
    return sorted(_DIGITS.findall(text))


def _may_have_digits(texts: Any) -> npt.NDArray[np.bool_]:
    return pc.match_substring_regex(texts, _MAY_HAVE_DIGITS).to_numpy(zero_copy_only=False)


class OfCorpus:
    """Base class of scores that compare a pair with the counts of its corpus; without counts they are left
    out."""

    is_sign = True

    def __init__(self, counts: CorpusCounts, general: WordScorer | None = None) -> None:
        """Set the sources of known words. counts: the corpus' counts. general: a word scorer, which knows
        more words of the language."""
        self._counts = counts
        self._general = general

    @classmethod
    def build(cls, choice: ScorerChoice) -> Any:
        """Return the scorer if the corpus was counted."""
        general = choice.vectors if isinstance(choice.vectors, WordScorer) else None
        return None if choice.counts is None else cls(choice.counts, general)

    @property
    def knows_enough(self) -> bool:
        """Whether unknown words are meaningful; with only a small corpus they are not."""
        return self._general is not None or len(self._counts.words) >= FEWEST_WORDS

    def unknown(self, pairs: Pairs) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the words of translations that neither the corpus, the general scorer nor their own
        reference has, as rows and vocabulary numbers."""
        if pairs.unknown is None:
            pairs.unknown = pairs.unknown_words(self.knows(pairs.vocabulary))
        return pairs.unknown

    def knows(self, words: Any) -> npt.NDArray[np.bool_]:
        """Return which words, a pyarrow string array, the references or the general scorer have."""
        known = pc.is_in(words, value_set=self._counts.words).to_numpy(zero_copy_only=False)
        if self._general is None:
            return known
        others = ~known
        known = known.copy()
        known[others] = self._general.vectors.knows(words.filter(pa.array(others)).to_pylist())
        return known


def _share_of_words(pairs: Pairs, rows: Any) -> npt.NDArray[np.float32]:
    """Return the share of each translation's words among the listed rows; 0 without a word."""
    counts = np.bincount(rows, minlength=len(pairs))
    return (counts / np.maximum(pairs.translation_words, 1)).astype(np.float32)


class UnknownWords(OfCorpus, Scorer):
    """The share of the translation's words that neither the corpus' references nor the built-in scorer have.

    Words are tokens with a letter. A word of the pair's own reference is known. Null without a word, and if
    the corpus has fewer than 1,000 distinct words and is scored by another scorer.
    """

    columns = (
        Column(
            "unknown_words",
            pa.float32(),
            "share of the translation's words that neither the references nor the built-in scorer know",
            label="share of unknown words",
            scale=SHARES,
        ),
    )
    worse = "larger"
    place = 51

    def __call__(self, pairs: Pairs) -> dict[str, Any]:
        """Return float32, 0 to 1; null as described above."""
        row, _ = self.unknown(pairs)
        missing = (pairs.translation_words == 0) | (not self.knows_enough)
        return {"unknown_words": pa.array(_share_of_words(pairs, row), mask=missing)}


class LengthSurprise(OfCorpus, Scorer):
    """The standard score of the log ratio of both sides' lengths in characters, within the pair's source.

    Below zero, the translation is shorter than usual. A missing half or an added sentence is 3 to 5
    deviations off.
    """

    columns = (
        Column(
            "length_surprise",
            pa.float32(),
            "log ratio of translation and reference length in characters, "
            "in deviations from the median of the source",
            label="deviations from the usual length",
            scale=Scale(-10, 10, 40),
        ),
    )
    worse = "farther"
    place = 53

    def __call__(self, pairs: Pairs) -> dict[str, Any]:
        """Return float32, never null."""
        from paraforge.corpus.scoring.pairs import by_source, log_length_ratios

        surprise = log_length_ratios(pairs.reference, pairs.translation)
        for source, rows in by_source(pairs.source):
            usual, deviation = self._counts.usual_length(source)
            surprise[rows] = (surprise[rows] - usual) / deviation
        return {"length_surprise": pa.array(surprise.astype(np.float32))}


class CopiedWords(OfCorpus, Scorer):
    """The share of the translation's words that are copied from its foreign side and otherwise unknown.

    Names that some reference has and numbers do not count; see
    :class:`~paraforge.corpus.scoring.scorers.words.UnknownWords`.
    """

    columns = (
        Column(
            "copied_words",
            pa.float32(),
            "share of the translation's words that are also in the foreign side and otherwise unknown",
            label="share of copied foreign words",
            scale=SHARES,
        ),
    )
    worse = "larger"
    place = 55

    def __call__(self, pairs: Pairs) -> dict[str, Any]:
        """Return float32, 0 to 1; null without a foreign side, or if the translation has no word."""
        from paraforge.base.text.tokens import tokenize_column

        row, word = self.unknown(pairs)
        foreign = tokenize_column(pairs.source_text.take(pa.array(rows := np.unique(row))))
        places = pc.index_in(pa.array(foreign.vocabulary, pa.string()), value_set=pairs.vocabulary)
        ids = places.fill_null(-1).to_numpy()[foreign.ids]
        size = len(pairs.vocabulary)
        copied = np.isin(row * size + word, (rows[foreign.row_numbers] * size + ids)[ids >= 0])
        missing = (pairs.translation_words == 0) | ~pairs.source_text.is_valid().to_numpy(
            zero_copy_only=False
        )
        return {"copied_words": pa.array(_share_of_words(pairs, row[copied]), mask=missing)}


class SourceSimilarity(Scorer):
    """The share of the information in the words of reference and foreign side that the other side explains,
    by the lexical table learned from the corpus; see
    :meth:`~paraforge.corpus.scoring.lexical_table.LexicalTable.similarities`."""

    columns = (
        Column(
            "source_similarity",
            pa.float32(),
            "share of the information in each side's words (reference and foreign side) that the other gives",
            label="similarity to the source",
            scale=Scale(-0.4, 1, 28),
            limits=(-inf, 1),
        ),
    )
    worse = "smaller"
    place = 57

    def __init__(self, lexical: LexicalTable) -> None:
        """lexical: table learned from the corpus."""
        self._lexical = lexical

    @classmethod
    def build(cls, choice: ScorerChoice) -> SourceSimilarity | None:
        """Return the scorer if a table was learned."""
        return None if choice.lexical is None else cls(choice.lexical)

    def __call__(self, pairs: Pairs) -> dict[str, Any]:
        """Return float32, at most 1; null without a foreign side, or if a side has no word."""
        from paraforge.corpus.scoring.lexical_table import foreign_units, units_of

        similarities = self._lexical.similarities(
            foreign_units(pairs.source_text), units_of(pairs.reference_tokens)
        )
        return {"source_similarity": pa.array(similarities, from_pandas=True)}
