"""The model that gives `contradiction` of the signs: a layer of a few units, in a text file."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from paraforge.base.compiled import compiled
from paraforge.base.files import read_json
from paraforge.corpus.scoring.meaning.evidence import NAME_SIGNS
from paraforge.corpus.scoring.meaning.signs import NAMES

WEIGHTS: Final = Path(__file__).parent / "weights.json"
SIGNS: Final = (*NAMES, *NAME_SIGNS)
"""The signs that the model reads, in order."""
_AROUND: Final = SIGNS.index("left_over")
_DIGITS: Final = 6


class Contradiction:
    """How likely a pair with these signs is a sentence and one of another meaning."""

    def __init__(self, hidden: Any, hidden_bias: Any, output: Any, bias: float) -> None:
        """hidden: (signs, units). hidden_bias, output: (units,)."""
        self._hidden = np.asarray(hidden, np.float64)
        self._hidden_bias = np.asarray(hidden_bias, np.float64)
        self._output = np.asarray(output, np.float64)
        self._bias = float(bias)
        self._least = float(self._probability(np.zeros((1, len(SIGNS)), np.float32), 0)[0])

    @classmethod
    def open(cls, path: Path = WEIGHTS) -> Contradiction:
        """Read the weights."""
        about = read_json(path)
        return cls(*(about[name] for name in ("hidden", "hidden_bias", "output", "bias")))

    def __call__(self, signs: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """0 to 1 for each pair, (pairs,), of its signs, (pairs, SIGNS); 0 without any sign: that other words
        are left over is none by itself."""
        found = (self._probability(signs, 1) - self._least) / (1 - self._least)
        return np.maximum(found, 0).astype(np.float32)

    def _probability(self, signs: npt.NDArray[np.float32], least: int) -> npt.NDArray[np.float64]:
        margins = np.empty(len(signs))
        _add_up(signs, least, self._hidden, self._hidden_bias, self._output, self._bias, margins)
        return np.asarray((1 / (1 + np.exp(-margins))).round(_DIGITS))


@compiled
def _add_up(
    signs: Any, least: int, hidden: Any, hidden_bias: Any, output: Any, bias: float, margins: Any
) -> None:
    """The layer's output for each row, minus infinity where it has fewer than ``least`` signs besides how
    much is left over.

    It is added term by term: a product of matrices gives a row other last digits among other rows.
    """
    units = np.empty(len(output))
    for row in range(len(signs)):
        for unit in range(len(units)):
            units[unit] = hidden_bias[unit]
        count = 0
        for sign in range(signs.shape[1]):
            if signs[row, sign]:
                count += sign != _AROUND
                for unit in range(len(units)):
                    units[unit] += signs[row, sign] * hidden[sign, unit]
        margins[row] = bias if count >= least else -np.inf
        for unit in range(len(units)):
            margins[row] += max(units[unit], 0.0) * output[unit]
