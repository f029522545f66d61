"""The softmax loss: the cross-entropy of a side's partner among the other sides of a mini-batch's pairs."""

import torch
from torch import Tensor

from paraforge.embeddings.losses import Batch, Loss
from paraforge.embeddings.losses.margin import unit_vectors


def softmax_loss(
    embeddings: Tensor,
    pairs: int,
    forbidden: tuple[Tensor, Tensor],
    scale: float,
    two_sided: bool,
) -> Tensor:
    """Return the mean over pairs of `-ln(exp(c cos(s,s')) / sum_t' exp(c cos(s,t')))`, where t' are the right
    sides of all pairs; if two-sided, the mean of this and the same with the sides exchanged. Known as InfoNCE
    (van den Oord et al. 2018) and multiple negatives ranking (Henderson et al. 2017).

    embeddings: (2 * pairs, dimension): all s, all s'. A zero vector has cosine 0 to everything.
    scale: c, above 0.
    forbidden: (pair of s, pair of s') of the cosines that are left out, int64 (n,) each.

    Returns a scalar. Memory and time grow with the square of `pairs`.
    """
    unit = unit_vectors(embeddings)
    logits = scale * (unit[:pairs] @ unit[pairs:].T)
    logits[forbidden] = -torch.inf
    own = torch.arange(pairs, device=embeddings.device)
    loss = torch.nn.functional.cross_entropy(logits, own)
    return (loss + torch.nn.functional.cross_entropy(logits.T, own)) / 2 if two_sided else loss


def _compute(batch: Batch) -> Tensor:
    sides = batch.forbidden.of_other_sides()
    left, right = (side.to(batch.embeddings.device, non_blocking=True) for side in sides)
    scale, two_sided = batch.parameters.scale, batch.parameters.two_sided
    return softmax_loss(batch.embeddings, batch.pairs, (left, right), scale, two_sided)


LOSS = Loss(mega_batches=False, compute=_compute)
