"""Divergence: a training whose numbers overflow stops with what to change, and no model of it is kept."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from paraforge.base.errors import InputError


def diverged(what: str, updates: int) -> InputError:
    """The error that ends such a training; `what` is not finite, e.g. `the loss is nan`."""
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
    """The rows with length 1; a zero vector stays one, NaN where a norm overflows."""
    norms = finite_norms(embeddings)
    absent = norms == 0
    return torch.where(absent, 0, embeddings / torch.where(absent, torch.ones_like(norms), norms))
