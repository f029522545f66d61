"""The units of text that have their own vector, in a fixed order, and the unknown unit for all others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from paraforge.base.errors import InputError
from paraforge.base.files import read_json, write_json

Unit = Literal["word", "trigram", "bare_word", "bare_trigram", "word_trigram", "sentencepiece"]
WORD: Final = "word"
WORD_UNITS: Final = (WORD, "bare_word")
"""Units that are words, so that a table of their vectors is a word-vector table."""


UNKNOWN = "UUUNKKK"
"""Name of the unknown unit, as in Wieting's vector files."""


class Vocabulary:
    """Distinct units, the unknown unit among them; a unit's id is its index. Raises ValueError if a unit is
    repeated or there is no unknown unit."""

    def __init__(self, units: Sequence[str], unknown: str = UNKNOWN) -> None:
        self.units = list(units)
        self._ids = {unit: number for number, unit in enumerate(self.units)}
        if len(self._ids) != len(self.units):
            raise ValueError("the vocabulary contains a unit twice")
        if unknown not in self._ids:
            raise ValueError(f"no unknown unit {unknown!r} in the vocabulary")
        self.unknown = unknown
        self.unknown_id = self._ids[unknown]

    def __len__(self) -> int:
        return len(self.units)

    def __contains__(self, unit: str) -> bool:
        return unit in self._ids

    def id_of(self, unit: str) -> int:
        """Return the unit's id, or the unknown unit's."""
        return self._ids.get(unit, self.unknown_id)

    def ids_of(self, units: Iterable[str]) -> npt.NDArray[np.int64]:
        """Return the ids of several units."""
        get, unknown = self._ids.get, self.unknown_id
        return np.fromiter((get(unit, unknown) for unit in units), dtype=np.int64)

    def save(self, path: Path) -> None:
        """Write it as JSON, because units can contain line breaks."""
        write_json(path, {"unknown": self.unknown, "units": self.units})

    @classmethod
    def load(cls, path: Path) -> Vocabulary:
        """Read what `save` wrote. Raises InputError if it is missing, not JSON, or not a vocabulary."""
        content: Any = read_json(path)
        try:
            units, unknown = content["units"], content["unknown"]
            if not all(isinstance(unit, str) for unit in [*units, unknown]):
                raise TypeError("a unit is not text")
            return cls(units, unknown)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"not a vocabulary: {error}", path) from error


def most_frequent(
    units: Sequence[str],
    counts: npt.NDArray[np.int64],
    *,
    minimum_count: int,
    maximum_size: int,
) -> tuple[Vocabulary, npt.NDArray[np.int64]]:
    """Return the most frequent units, by descending count and then by code points, after the unknown unit.

    A text can contain the unknown unit's own name; that is then the unknown unit.

    Returns the vocabulary, and for each of `units` its id in it, int64.
    """
    frequent = [
        number for number in np.flatnonzero(counts >= minimum_count).tolist() if units[number] != UNKNOWN
    ]
    frequent.sort(key=lambda number: (-int(counts[number]), units[number]))
    kept = frequent[:maximum_size]
    ids = np.zeros(len(units), dtype=np.int64)
    ids[kept] = np.arange(1, len(kept) + 1)
    return Vocabulary([UNKNOWN, *(units[number] for number in kept)]), ids
