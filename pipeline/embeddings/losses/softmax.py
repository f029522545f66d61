"""The softmax over a mini-batch: a side's other side among those of all pairs, by cross-entropy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from paraforge.embeddings.learning.divergence import finite_norms
from paraforge.embeddings.losses import Loss

if TYPE_CHECKING:
    from paraforge.embeddings.trainer.negatives import ForbiddenCandidates
    from paraforge.embeddings.trainer.parameters import TrainingParameters


def softmax_loss(
    embeddings: Tensor,
    pairs: int,
    forbidden: tuple[Tensor, Tensor],
    scale: float = 20.0,
    two_sided: bool = True,
) -> Tensor:
    """Mean over the pairs of `-ln(exp(c cos(s,s')) / sum_t' exp(c cos(s,t')))`, t' the right sides of all
    pairs; two-sided the mean of this and the same the other way round. Known as InfoNCE (van den Oord et al.
    2018) and as multiple negatives ranking (Henderson et al. 2017).

    embeddings: (2 * pairs, dimension): all s, all s'. A zero vector has cosine 0 to everything. scale: c,
        above 0.
    forbidden: (pair of s, pair of s') of the cosines that are left out, int64 (n,) each.

    Returns a scalar. Memory and time grow with the square of `pairs`.
    """
    if len(embeddings) != 2 * pairs or pairs < 1:
        raise ValueError(f"{len(embeddings)} embeddings are not both sides of {pairs} pairs")
    norms = finite_norms(embeddings)
    absent = norms == 0
    unit = torch.where(absent, 0, embeddings / torch.where(absent, torch.ones_like(norms), norms))
    logits = scale * (unit[:pairs] @ unit[pairs:].T)
    logits[forbidden] = -torch.inf
    own = torch.arange(pairs, device=embeddings.device)
    loss = torch.nn.functional.cross_entropy(logits, own)
    return (loss + torch.nn.functional.cross_entropy(logits.T, own)) / 2 if two_sided else loss


def _compute(
    embeddings: Tensor, pairs: int, forbidden: ForbiddenCandidates, parameters: TrainingParameters
) -> Tensor:
    left, right = (side.to(embeddings.device, non_blocking=True) for side in forbidden.of_other_sides())
    return softmax_loss(embeddings, pairs, (left, right), parameters.scale, parameters.two_sided)


LOSS = Loss(mega_batches=False, compute=_compute)
