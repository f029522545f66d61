"""The model that gives `contradiction` of the signs: a layer of a few units, in a text file."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from paraforge.base.files import read_json
from paraforge.corpus.scoring.meaning.evidence import NAME_SIGNS
from paraforge.corpus.scoring.meaning.signs import NAMES

WEIGHTS: Final = Path(__file__).parent / "weights.json"
SIGNS: Final = (*NAMES, *NAME_SIGNS)
"""The signs that the model reads, in order."""
_BLOCK: Final = 4096
_DIGITS: Final = 6


class Contradiction:
    """How likely a pair with these signs is a sentence and one of another meaning."""

    def __init__(self, hidden: Any, hidden_bias: Any, output: Any, bias: float) -> None:
        """hidden: (signs, units). hidden_bias, output: (units,)."""
        self._hidden = np.asarray(hidden, np.float64)
        self._hidden_bias = np.asarray(hidden_bias, np.float64)
        self._output = np.asarray(output, np.float64)
        self._bias = float(bias)
        self._least = 0.0
        self._least = float(self._probability(np.zeros((1, len(SIGNS)), np.float32))[0])

    @classmethod
    def open(cls, path: Path = WEIGHTS) -> Contradiction:
        """Read the weights."""
        about = read_json(path)
        return cls(*(about[name] for name in ("hidden", "hidden_bias", "output", "bias")))

    def __call__(self, signs: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """0 to 1 for each pair, (pairs,), of its signs, (pairs, SIGNS); 0 without any sign."""
        found = np.zeros(len(signs), np.float32)
        rows = np.flatnonzero(signs.any(axis=1))
        for first in range(0, len(rows), _BLOCK):
            block = rows[first : first + _BLOCK]
            found[block] = (self._probability(signs[block]) - self._least) / (1 - self._least)
        return np.maximum(found, 0)

    def _probability(self, signs: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        # Term by term, as a product of matrices gives other last digits for other rows around a row.
        units = np.repeat(self._hidden_bias[None], len(signs), axis=0)
        for sign, weights in zip(signs.T, self._hidden, strict=True):
            units += sign[:, None] * weights
        margin = np.full(len(signs), self._bias)
        for unit, weight in zip(np.maximum(units, 0).T, self._output, strict=True):
            margin += unit * weight
        return np.asarray((1 / (1 + np.exp(-margin))).round(_DIGITS))
