"""The mean of a training's parameters over its later updates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import torch
from torch import Tensor

AVERAGE_EVERY: Final = 100
"""Updates between two parameters that enter the mean: those of neighbouring updates hardly differ."""


class ParameterAverage:
    """Running mean of parameters (Polyak and Juditsky 1992): it lacks the noise of the last updates.

    Attributes:
        count: how many have entered.
        means: by parameter name; zeros until the first one enters.
    """

    def __init__(self, parameters: Mapping[str, Tensor]) -> None:
        """Of parameters of these shapes."""
        self.count = 0
        self.means = {name: torch.zeros_like(value) for name, value in parameters.items()}
        self._parameters = dict(parameters)

    def add(self) -> None:
        """Let the parameters enter as they are now."""
        self.count += 1
        for name, mean in self.means.items():
            mean.lerp_(self._parameters[name], 1.0 / self.count)

    @contextmanager
    def in_place_of_the_last(self) -> Iterator[None]:
        """The parameters are the mean inside, where any have entered, and as they were afterwards."""
        if not self.count:
            yield
            return
        last = {name: value.clone() for name, value in self._parameters.items()}
        self.settle()
        try:
            yield
        finally:
            for name, value in last.items():
                self._parameters[name].copy_(value)

    def settle(self) -> None:
        """Make the parameters the mean, where any have entered."""
        if self.count:
            for name, mean in self.means.items():
                self._parameters[name].copy_(mean)
