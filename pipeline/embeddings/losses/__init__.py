"""Losses of sentence embeddings, one per file. `training.loss` names the file, which defines a `LOSS`.
Another package registers its module as an entry point of the group `paraforge.losses`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from paraforge.base.plugins import found_modules, import_found

if TYPE_CHECKING:
    from torch import Tensor

    from paraforge.embeddings.trainer.negatives import ForbiddenCandidates
    from paraforge.embeddings.trainer.parameters import TrainingParameters


@dataclass(frozen=True)
class Batch:
    """A mini-batch for a loss.

    embeddings: (sides * pairs, dimension): all left sides, all right sides, and with `mega_batches` the
        negatives of the left and, two-sided, of the right sides.
    forbidden: sentences that must not be compared. parameters: parameters of the training.
    teacher: the teacher's vectors of both sides, (2 * pairs, its dimension); None without a teacher.
    """

    embeddings: Tensor
    pairs: int
    forbidden: ForbiddenCandidates
    parameters: TrainingParameters
    teacher: Tensor | None = None


@dataclass(frozen=True)
class Loss:
    """A loss over a mini-batch of pairs.

    mega_batches: whether pairs have negatives that are chosen over a mega-batch.
    compute: returns a scalar, the mean over the pairs.
    teacher: whether it needs a teacher's vectors.
    """

    mega_batches: bool
    compute: Callable[[Batch], Tensor]
    teacher: bool = False


_USUAL = {"margin": True, "softmax": False}
"""Whether these losses have mega-batches, so that parameters can be checked without importing torch."""


def loss_names() -> list[str]:
    """Return the allowed values of `training.loss`."""
    return sorted(found_modules(__name__))


def loss_named(name: str) -> Loss:
    """Return a loss by its name, one of `loss_names`."""
    loss: Loss = import_found(found_modules(__name__)[name]).LOSS
    return loss


def has_mega_batches(name: str) -> bool:
    """Return whether this loss has negatives of a mega-batch."""
    return _USUAL[name] if name in _USUAL else loss_named(name).mega_batches


def needs_teacher(name: str) -> bool:
    """Return whether this loss needs a teacher's vectors."""
    return name not in _USUAL and loss_named(name).teacher
