"""The margin loss of Wieting 2016 Eq. 11 and ParaNMT-50M Eq. 1, with its gradient in closed form."""

from typing import Any

import torch
from torch import Tensor

from paraforge.embeddings.losses import Loss


def _finite_norms(embeddings: Tensor) -> Tensor:
    """Return norms, (rows, 1); NaN if a norm overflows, so that the loss does not look like that of a zero
    vector."""
    norms = embeddings.norm(dim=1, keepdim=True)
    return torch.where(norms.isfinite(), norms, torch.full_like(norms, torch.nan))


def unit_vectors(embeddings: Tensor) -> Tensor:
    """Scale the rows to length 1; a zero vector stays zero, and an overflowing norm gives NaN."""
    norms = _finite_norms(embeddings)
    absent = norms == 0
    return torch.where(absent, 0, embeddings / torch.where(absent, torch.ones_like(norms), norms))


class _MarginLoss(torch.autograd.Function):
    """Mean hinge over the pairs; the gradient is written out, which saves a third of a Word model's time."""

    @staticmethod
    def forward(ctx: Any, embeddings: Tensor, pairs: int, margin: float) -> Tensor:
        two_sided = len(embeddings) == 4 * pairs
        norms = _finite_norms(embeddings)
        # A zero vector has no direction: its cosines and its gradient are 0.
        inverse = torch.where(norms == 0, torch.zeros_like(norms), norms.reciprocal())
        unit = embeddings * inverse
        left, right, negative_left = unit[:pairs], unit[pairs : 2 * pairs], unit[2 * pairs : 3 * pairs]
        positive = (left * right).sum(1)
        hinge = (margin - positive + (left * negative_left).sum(1)).clamp_(min=0)
        terms = [hinge]
        if two_sided:
            terms.append((margin - positive + (right * unit[3 * pairs :]).sum(1)).clamp_(min=0))
        ctx.save_for_backward(unit, inverse, *terms)
        ctx.pairs = pairs
        return torch.stack(terms).sum() / pairs

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        unit, inverse, *terms = ctx.saved_tensors
        pairs: int = ctx.pairs
        scale = gradients[0] / pairs
        active = [(term > 0).to(unit.dtype).mul_(scale).unsqueeze(1) for term in terms]
        left, right, negative_left = unit[:pairs], unit[pairs : 2 * pairs], unit[2 * pairs : 3 * pairs]
        both = active[0] if len(active) == 1 else active[0] + active[1]
        d_unit = torch.empty_like(unit)
        torch.mul(left, active[0], out=d_unit[2 * pairs : 3 * pairs])
        torch.mul(negative_left, active[0], out=d_unit[:pairs]).sub_(right * both)
        torch.mul(left, both, out=d_unit[pairs : 2 * pairs]).neg_()
        if len(active) == 2:
            torch.mul(right, active[1], out=d_unit[3 * pairs :])
            d_unit[pairs : 2 * pairs].add_(unit[3 * pairs :] * active[1])
        # d cos(x, y) / d x = (y/|y| - cos x/|x|) / |x|
        radial = (unit * d_unit).sum(1, keepdim=True)
        return d_unit.sub_(unit * radial).mul_(inverse), None, None


def margin_loss(embeddings: Tensor, pairs: int, margin: float) -> Tensor:
    """Return the mean over pairs of `max(0, d - cos(s,s') + cos(s,t))`, and if two-sided plus `max(0, d -
    cos(s,s') + cos(s',t'))`.

    embeddings: (3 * pairs, dimension) or, two-sided, (4 * pairs, dimension): all s, all s', all negatives t
        of s, all t' of s'. Any scale; a zero vector has cosine 0 to everything.
    margin: d, at least 0.

    Returns a scalar. Differentiable once; where a hinge is exactly 0 its gradient is 0.
    """
    return _MarginLoss.apply(embeddings, pairs, margin)  # type: ignore[no-untyped-call]  # of torch


LOSS = Loss(
    mega_batches=True,
    compute=lambda batch: margin_loss(batch.embeddings, batch.pairs, batch.parameters.margin),
)
