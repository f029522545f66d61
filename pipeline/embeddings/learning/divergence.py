"""Finds trainings that diverged: parameters, vectors and losses that are not finite."""

import torch
from torch import Tensor, nn

from paraforge.base.errors import InputError


def diverged(what: str, updates: int) -> InputError:
    """Return the error that ends a diverged training; `what` is the reason, e.g. `the loss is nan`."""
    return InputError(
        f"the training diverged: {what} after {updates:,} updates",
        remedy="Lower learning_rate." if updates else "Start from smaller vectors.",
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
