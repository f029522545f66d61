"""The pairs of a shard as scorers see them: texts, tokens and shared n-grams, each worked out once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from paraforge.scoring.ngrams import IntArray, shared_ngrams
from paraforge.text.tokens import TokenColumn, tokenize_columns

HIGHEST_ORDER = 3


@dataclass(frozen=True)
class Pairs:
    """Pairs that can be scored: no null on either side.

    reference, translation: pyarrow string arrays of the same length.
    reference_tokens, translation_tokens: their tokens, over one vocabulary.
    """

    reference: Any
    translation: Any
    reference_tokens: TokenColumn
    translation_tokens: TokenColumn

    @classmethod
    def of(cls, reference: Any, translation: Any) -> Pairs:
        """Tokenise two string arrays (pyarrow, chunked or not, without nulls)."""
        reference = pa.chunked_array(reference).combine_chunks()
        translation = pa.chunked_array(translation).combine_chunks()
        return cls(reference, translation, *tokenize_columns(reference, translation))

    def __len__(self) -> int:
        return len(self.reference_tokens)

    @cached_property
    def shared(self) -> IntArray:
        """How many n-grams of each length both sides share: 3 x pairs; see :func:`shared_ngrams`."""
        return shared_ngrams(self.reference_tokens, self.translation_tokens, HIGHEST_ORDER)
