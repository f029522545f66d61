"""Estimates from its signs how likely a pair has different meanings."""

from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from paraforge.base.files import read_json

WEIGHTS: Final = Path(__file__).parent / "weights.json"
"""A layer of a few units, in the order of :data:`~paraforge.corpus.scoring.meaning.signs.NAMES`; fitted by
``experiments/train_contradiction.py``."""
_DIGITS: Final = 6


@lru_cache(maxsize=1)
def _weights() -> tuple[Any, ...]:
    about = read_json(WEIGHTS)
    return tuple(np.asarray(about[name], np.float64) for name in ("hidden", "hidden_bias", "output", "bias"))


def contradiction(signs: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Combine the signs of each pair, (pairs, signs), into a number from 0 to 1, (pairs,).

    A pair without any sign has 0. The last sign, that other words are left over, does not count alone.
    """
    least = _probability(np.zeros((1, signs.shape[1]), np.float32))[0]
    found = np.where(signs[:, :-1].any(axis=1), (_probability(signs) - least) / (1 - least), 0)
    return np.maximum(found, 0).astype(np.float32)


def _probability(signs: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Add up term by term, because in a matrix product a row's last digits depend on the other rows."""
    hidden, hidden_bias, output, bias = _weights()
    margins = np.full(len(signs), bias)
    for unit in range(len(output)):
        values = np.full(len(signs), hidden_bias[unit])
        for sign in range(signs.shape[1]):
            values += signs[:, sign] * hidden[sign, unit]
        margins += np.maximum(values, 0) * output[unit]
    return np.asarray((1 / (1 + np.exp(-margins))).round(_DIGITS))
