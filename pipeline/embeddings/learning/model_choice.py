"""Chooses the parameters of a training: those of the best evaluation, or the mean over later updates; none if
it diverged."""

import logging
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, nn

from paraforge.base.errors import InputError

logger = logging.getLogger(__name__)


def diverged(what: str, updates: int) -> InputError:
    """Return the error that ends a diverged training; `what` is the reason, e.g. `the loss is nan`."""
    return InputError(
        f"the training diverged: {what} after {updates:,} updates",
        remedy="Lower training.learning_rate, or set training.clip.",
    )


def check_parameters(module: nn.Module, updates: int) -> None:
    """Raise InputError if a parameter has NaN, infinity, or numbers whose squares overflow."""
    for name, value in module.named_parameters():
        if not bool(torch.linalg.vector_norm(value.detach()).isfinite()):
            raise diverged(f"{name} is not finite", updates)


def finite_norms(embeddings: Tensor) -> Tensor:
    """Return norms, (rows, 1); NaN if a norm overflows, so that the loss does not look like that of a zero
    vector."""
    norms = embeddings.norm(dim=1, keepdim=True)
    return torch.where(norms.isfinite(), norms, torch.full_like(norms, torch.nan))


def unit_vectors(embeddings: Tensor) -> Tensor:
    """Scale the rows to length 1; a zero vector stays zero, and an overflowing norm gives NaN."""
    norms = finite_norms(embeddings)
    absent = norms == 0
    return torch.where(absent, 0, embeddings / torch.where(absent, torch.ones_like(norms), norms))


_PREFIX = "best."


@dataclass
class ChoiceState:
    """The state of the evaluations.

    best_updates: number of updates at the best score. without_gain: evaluations since then.
    finished: whether the training is over.
    """

    best_score: float | None = None
    best_updates: int | None = None
    without_gain: int = 0
    finished: bool = False


class BestParameters:
    """A copy of a module's parameters on the CPU, from the highest development score."""

    def __init__(self, module: nn.Module, patience: int | None) -> None:
        """patience: evaluations without improvement after which training ends; None for never."""
        self._module = module
        self._patience = patience
        self._best: dict[str, Tensor] | None = None

    def judge(self, score: float, updates: int, state: ChoiceState) -> float | None:
        """Copy the current parameters if the score is the highest so far. Returns the score. NaN becomes
        None, an evaluation without improvement."""
        found = score if math.isfinite(score) else None
        if found is None:
            logger.warning("the development score is %s: this evaluation is ignored", score)
        if found is not None and (state.best_score is None or found > state.best_score):
            state.best_score, state.best_updates, state.without_gain = found, updates, 0
            self._best = self._copy()
        else:
            state.without_gain += 1
            state.finished = self._patience is not None and state.without_gain >= self._patience
        return found

    def settle(self) -> bool:
        """Load the best parameters into the module. Returns whether there are any."""
        if self._best is None:
            return False
        with torch.no_grad():
            for name, parameter in self._module.named_parameters():
                parameter.copy_(self._best[name])
        return True

    def shaped_like(self) -> dict[str, Tensor]:
        """Return empty tensors with the names and shapes of `tensors`."""
        return {f"{_PREFIX}{name}": value.detach() for name, value in self._module.named_parameters()}

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors for a checkpoint; before the first evaluation, the current parameters."""
        best = self._best or self._copy()
        return {f"{_PREFIX}{name}": value for name, value in best.items()}

    def resume(self, tensors: Mapping[str, Tensor]) -> None:
        """Load the result of `tensors`, if there has been an evaluation."""
        self._best = {name: tensors[f"{_PREFIX}{name}"] for name, _ in self._module.named_parameters()}

    def _copy(self) -> dict[str, Tensor]:
        return {name: value.detach().cpu().clone() for name, value in self._module.named_parameters()}


AVERAGE_EVERY: Final = 100
"""Updates between parameters that are averaged, because those of consecutive updates hardly differ."""


class ParameterAverage:
    """The running mean of parameters (Polyak and Juditsky 1992), which has less noise than the last update.

    count: number of averaged parameters. means: means by parameter name; zeros before the first.
    """

    def __init__(self, parameters: Mapping[str, Tensor]) -> None:
        """Prepare means of parameters with these shapes."""
        self.count = 0
        self.means = {name: torch.zeros_like(value) for name, value in parameters.items()}
        self._parameters = dict(parameters)

    def add(self) -> None:
        """Add the current parameters."""
        self.count += 1
        for name, mean in self.means.items():
            mean.lerp_(self._parameters[name], 1.0 / self.count)

    @contextmanager
    def in_place_of_the_last(self) -> Iterator[None]:
        """Use the mean as parameters inside the block, if there is one, and restore them afterward."""
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
        """Set the parameters to the mean, if there is one."""
        if self.count:
            for name, mean in self.means.items():
                self._parameters[name].copy_(mean)
