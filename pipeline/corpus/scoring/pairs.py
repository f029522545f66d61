"""The pairs of a shard for scorers: texts, tokens and shared n-grams, each computed once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.base.shards.schema import TEXT_COLUMNS
from paraforge.base.text.ragged import IntArray
from paraforge.base.text.tokens import TokenColumn, tokenize_columns

HIGHEST_ORDER = 3
LETTER = r"\p{L}"


def by_source(sources: Any) -> Iterator[tuple[str, IntArray]]:
    """Yield the rows of each source in a string column; a null is the source ``''``."""
    codes = pa.chunked_array(sources).combine_chunks().fill_null("").dictionary_encode()
    sources, of_row = codes.dictionary.to_pylist(), codes.indices.to_numpy()
    ends = np.cumsum(np.bincount(of_row, minlength=len(sources)))
    yield from zip(sources, np.split(np.argsort(of_row, kind="stable"), ends[:-1]), strict=False)


def log_length_ratios(reference: Any, translation: Any) -> npt.NDArray[np.float64]:
    """Return ln((translation's characters + 1) / (reference's characters + 1)), (rows,)."""
    references, translations = (pc.utf8_length(texts).to_numpy() + 1.0 for texts in (reference, translation))
    return np.asarray(np.log(translations / references))


@dataclass
class Pairs:
    """Pairs that can be scored: no null on either side.

    reference, translation: pyarrow string arrays of the same length.
    reference_tokens, translation_tokens: their tokens, over one vocabulary.
    source: name of each pair's source, a pyarrow string array, null if it has none.
    source_text: the foreign side, a pyarrow string array, null if it is missing.
    scores: the columns of earlier scorers.
    unknown: the unknown words of translations, once a scorer has looked for them; all scorers of the pairs
        have the same corpus.
    """

    reference: Any
    translation: Any
    reference_tokens: TokenColumn
    translation_tokens: TokenColumn
    source: Any
    source_text: Any
    scores: dict[str, Any] = field(default_factory=dict)
    unknown: tuple[IntArray, IntArray] | None = None

    @classmethod
    def of(cls, reference: Any, translation: Any, source: Any = None, source_text: Any = None) -> Pairs:
        """Tokenize two string arrays (pyarrow, chunked or not, without nulls).

        source, source_text: string arrays of the same length; None if all are null.
        """
        reference, translation, source, source_text = (
            pa.nulls(len(reference), pa.string())
            if texts is None
            else pa.chunked_array(texts).combine_chunks()
            for texts in (reference, translation, source, source_text)
        )
        first, second = tokenize_columns(reference, translation)
        return cls(reference, translation, first, second, source, source_text)

    def __len__(self) -> int:
        return len(self.reference_tokens)

    @cached_property
    def shared(self) -> IntArray:
        """The number of n-grams of each length that both sides share: 3 x pairs."""
        from paraforge.base.text.ngrams import shared_ngrams  # numba takes time to import

        return shared_ngrams(self.reference_tokens, self.translation_tokens, HIGHEST_ORDER)

    @cached_property
    def vocabulary(self) -> Any:
        """The distinct tokens of both sides, a pyarrow string array."""
        return pa.array(self.reference_tokens.vocabulary, pa.string())

    @cached_property
    def is_word(self) -> npt.NDArray[np.bool_]:
        """Whether each distinct token has a letter."""
        return pc.match_substring_regex(self.vocabulary, LETTER).to_numpy(zero_copy_only=False)

    @cached_property
    def translation_words(self) -> IntArray:
        """The number of words (tokens with a letter) in each translation."""
        tokens = self.translation_tokens
        return np.bincount(tokens.row_numbers[self.is_word[tokens.ids]], minlength=len(self))

    def unknown_words(self, known: npt.NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
        """Return the words of translations that are neither known nor in their own reference, as rows and
        vocabulary numbers.

        known: whether each word of the vocabulary is.
        """
        unknown = self.is_word & ~known
        size = len(unknown)
        keys, own = (
            (tokens.row_numbers * size + tokens.ids)[unknown[tokens.ids]]
            for tokens in (self.translation_tokens, self.reference_tokens)
        )
        row, word = np.divmod(keys[~np.isin(keys, own)], max(size, 1))
        return row, word


def pairs_of_translations(rows: pa.Table) -> tuple[npt.NDArray[np.int64], Pairs, Pairs] | None:
    """Return the indices of the pairs of two translations among the rows, and each translation with the
    reference that both were made from; None if there are none."""
    if "original" not in rows.column_names or rows["original"].null_count == rows.num_rows:
        return None
    places = np.flatnonzero(rows["original"].is_valid().to_numpy())
    pairs = rows.take(pa.array(places))
    names = [name.partition("/") for name in pairs["source"].to_pylist()]
    sides = zip((0, 2), TEXT_COLUMNS, ("source_text", "translation_source_text"), strict=True)
    first, second = (
        Pairs.of(pairs["original"], pairs[text], pa.array([name[part] for name in names]), pairs[foreign])
        for part, text, foreign in sides
    )
    return places, first, second
