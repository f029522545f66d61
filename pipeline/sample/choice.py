"""Reproducible choices, the same on every platform, and a record of the synonyms passed over."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


def pick(generator: random.Random, items: Sequence[Item]) -> Item:
    """One item, uniformly. Only `Random.random` is used: its sequence is promised not to change between
    Python versions."""
    return items[int(generator.random() * len(items))]


class Chooser:
    """Chooses among English alternatives, the same way each time a key returns within a rendering."""

    def __init__(self, generator: random.Random) -> None:
        self._generator = generator
        self._chosen: dict[str, int] = {}
        self.alternatives: list[tuple[str, ...]] = []

    def chance(self, probability: float) -> bool:
        """True with the given probability."""
        return self._generator.random() < probability

    def choose(self, key: str, options: Sequence[str]) -> str:
        """One of the options; what was open is kept in `alternatives`."""
        if len(options) == 1:
            return options[0]
        if key not in self._chosen:
            self._chosen[key] = int(self._generator.random() * len(options))
        self.alternatives.append(tuple(options))
        return options[self._chosen[key]]
