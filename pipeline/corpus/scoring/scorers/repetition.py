"""What the translation says twice in a row: parts of words, words and phrases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.corpus.scorer import SHARES, Column, Scorer

if TYPE_CHECKING:
    from paraforge.base.text.tokens import TokenColumn
    from paraforge.corpus.scoring.pairs import Pairs


class Repetition(Scorer):
    """Share of the translation's letters and digits that repeat what is just before them.

    Less that share of the reference: "ha, ha, ha" may be right. See :mod:`paraforge.corpus.scoring.repeats`.
    """

    columns = (
        Column(
            "repetition",
            pa.float32(),
            "share of the translation's letters that repeat the letters or words just before them, "
            "where the reference's do not",
            label="share of repeated letters",
            scale=SHARES,
        ),
    )
    place = 52
    is_sign = True

    def __call__(self, pairs: Pairs) -> dict[str, Any]:
        """float32, 0 to 1; never null."""
        from paraforge.corpus.scoring.repeats import repeated_letters, repeated_tokens

        letters = pc.count_substring_regex(pairs.vocabulary, r"[\p{L}\p{N}]").to_numpy()
        within = np.minimum(repeated_letters(pairs.vocabulary), letters)

        def share(tokens: TokenColumn) -> npt.NDArray[np.float64]:
            repeated = np.where(repeated_tokens(tokens), letters[tokens.ids], within[tokens.ids])
            row = tokens.row_numbers
            total = np.bincount(row, weights=letters[tokens.ids], minlength=len(tokens))
            return np.bincount(row, weights=repeated, minlength=len(tokens)) / np.maximum(total, 1)

        excess = np.maximum(share(pairs.translation_tokens) - share(pairs.reference_tokens), 0)
        return {"repetition": pa.array(excess.astype(np.float32))}
