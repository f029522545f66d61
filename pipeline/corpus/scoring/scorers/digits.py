"""Whether both sides have the same numbers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.corpus.scorer import Column, Scorer

if TYPE_CHECKING:
    from paraforge.corpus.scoring.pairs import Pairs

_DIGITS: Final = re.compile(r"\d+")
# Every text with a decimal digit of any script, and some others.
_MAY_HAVE_DIGITS: Final = r"[0-9]|[^\x00-\x7f]"


class DigitMismatch(Scorer):
    """True where the multisets of the two sides' digit strings differ.

    A digit string is a maximal run of decimal digits (of any script) in the unchanged text, so "5,300" has
    "5" and "300", and "5300" is something else. "two" has none.
    """

    columns = (
        Column(
            "digit_mismatch",
            pa.bool_(),
            "the two sides do not have the same numbers",
            label="different numbers",
        ),
    )
    place = 50

    def __call__(self, pairs: Pairs) -> dict[str, Any]:
        """bool, never null."""
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
    """The maximal runs of decimal digits of a text, sorted."""
    return sorted(_DIGITS.findall(text))


def _may_have_digits(texts: Any) -> npt.NDArray[np.bool_]:
    return pc.match_substring_regex(texts, _MAY_HAVE_DIGITS).to_numpy(zero_copy_only=False)
