"""Which parameters a training keeps: those of the best evaluation, or the mean over later updates; none where
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
    """Return the error that ends such a training; `what` is not finite, e.g. `the loss is nan`."""
    return InputError(
        f"the training diverged: {what} after {updates:,} updates",
        remedy="Lower training.learning_rate, or set training.clip.",
    )


def check_parameters(module: nn.Module, updates: int) -> None:
    """Raise InputError where a parameter holds NaN, infinity, or numbers whose squares overflow."""
    for name, value in module.named_parameters():
        if not bool(torch.linalg.vector_norm(value.detach()).isfinite()):
            raise diverged(f"{name} is not finite", updates)


def finite_norms(embeddings: Tensor) -> Tensor:
    """(rows, 1); NaN where a norm overflows, so that the loss does not pass for that of a zero vector."""
    norms = embeddings.norm(dim=1, keepdim=True)
    return torch.where(norms.isfinite(), norms, torch.full_like(norms, torch.nan))


def unit_vectors(embeddings: Tensor) -> Tensor:
    """Return the rows with length 1; a zero vector stays one, NaN where a norm overflows."""
    norms = finite_norms(embeddings)
    absent = norms == 0
    return torch.where(absent, 0, embeddings / torch.where(absent, torch.ones_like(norms), norms))


_PREFIX = "best."


@dataclass
class ChoiceState:
    """What is remembered of the evaluations.

    best_updates: after how many updates the best score was. without_gain: evaluations since then.
    finished: whether the training is over.
    """

    best_score: float | None = None
    best_updates: int | None = None
    without_gain: int = 0
    finished: bool = False


class BestParameters:
    """A copy of a module's parameters on the CPU, taken where the development score was highest."""

    def __init__(self, module: nn.Module, patience: int | None) -> None:
        """patience: evaluations without gain after which training ends; None: never early."""
        self._module = module
        self._patience = patience
        self._best: dict[str, Tensor] | None = None

    def judge(self, score: float, updates: int, state: ChoiceState) -> float | None:
        """Take the parameters as they are now where no score was as high before; returns the score. A score
        that is not a number is None: an evaluation without gain, never the best one."""
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
        """Put the best parameters into the module; whether there are any."""
        if self._best is None:
            return False
        with torch.no_grad():
            for name, parameter in self._module.named_parameters():
                parameter.copy_(self._best[name])
        return True

    def shaped_like(self) -> dict[str, Tensor]:
        """Tensors of the names and shapes of `tensors`."""
        return {f"{_PREFIX}{name}": value.detach() for name, value in self._module.named_parameters()}

    def tensors(self) -> dict[str, Tensor]:
        """Return what a checkpoint keeps; before the first evaluation the parameters as they are."""
        best = self._best or self._copy()
        return {f"{_PREFIX}{name}": value for name, value in best.items()}

    def resume(self, tensors: Mapping[str, Tensor]) -> None:
        """Take what `tensors` gave; only where there has been an evaluation."""
        self._best = {name: tensors[f"{_PREFIX}{name}"] for name, _ in self._module.named_parameters()}

    def _copy(self) -> dict[str, Tensor]:
        return {name: value.detach().cpu().clone() for name, value in self._module.named_parameters()}


AVERAGE_EVERY: Final = 100
"""Updates between two parameters that enter the mean: those of neighbouring updates hardly differ."""


class ParameterAverage:
    """Running mean of parameters (Polyak and Juditsky 1992): it lacks the noise of the last updates.

    count: how many have entered. means: by parameter name; zeros until the first one enters.
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
        """Provide the parameters are the mean inside, where any have entered, and as they were afterwards."""
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
