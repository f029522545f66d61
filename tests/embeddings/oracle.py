"""Slow and plain versions of the loss, the choice of negatives and the training loop, straight from the
definitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from paraforge.embeddings.schedule import Schedule


def cosine(first: Tensor, second: Tensor) -> Tensor:
    return (first @ second) / (first.norm() * second.norm())


def loss(
    left: Sequence[Tensor],
    right: Sequence[Tensor],
    negative_left: Sequence[Tensor],
    negative_right: Sequence[Tensor] | None,
    margin: float,
) -> Tensor:
    """Definitions, 'Loss', one pair after the other."""
    total = torch.zeros((), dtype=left[0].dtype)
    for k in range(len(left)):
        positive = cosine(left[k], right[k])
        total = total + torch.clamp(margin - positive + cosine(left[k], negative_left[k]), min=0)
        if negative_right is not None:
            total = total + torch.clamp(margin - positive + cosine(right[k], negative_right[k]), min=0)
    return total / len(left)


def softmax(
    embeddings: Tensor, pairs: int, scale: float, two_sided: bool, texts: Sequence[object] | None = None
) -> Tensor:
    """Cross-entropy of a side's other side among it and the candidates on that side, one after the other."""
    anchors = 2 * pairs if two_sided else pairs
    total = torch.zeros((), dtype=embeddings.dtype)
    for anchor in range(anchors):
        positive = torch.exp(scale * cosine(embeddings[anchor], embeddings[(anchor + pairs) % (2 * pairs)]))
        others = [
            torch.exp(scale * cosine(embeddings[anchor], embeddings[candidate]))
            for candidate in candidates(anchor, pairs, texts)
            if (candidate < pairs) != (anchor < pairs)
        ]
        total = total - torch.log(positive / (positive + sum(others)))
    return total / anchors


def candidates(anchor: int, pairs: int, texts: Sequence[object] | None = None) -> list[int]:
    """Both sides of all other pairs; with texts, but for those that the anchor is a paraphrase of."""
    partner = (anchor + pairs) % (2 * pairs)
    found = []
    for candidate in range(2 * pairs):
        if candidate in (anchor, partner):
            continue
        if texts is not None:
            candidates_partner = texts[(candidate + pairs) % (2 * pairs)]
            if texts[candidate] in (texts[anchor], texts[partner]) or candidates_partner == texts[anchor]:
                continue
        found.append(candidate)
    return found


def max_negatives(
    embeddings: Tensor, pairs: int, two_sided: bool, texts: Sequence[object] | None = None
) -> list[int]:
    """Definitions, 'Negatives', MAX: every candidate is looked at. With texts, identical ones are no
    candidates."""
    chosen = []
    for anchor in range(2 * pairs if two_sided else pairs):
        best, best_cosine = -1, -np.inf
        for candidate in candidates(anchor, pairs, texts):
            similarity = float(cosine(embeddings[anchor], embeddings[candidate]))
            if similarity > best_cosine:
                best, best_cosine = candidate, similarity
        chosen.append(best)
    return chosen


def train(
    table: Tensor,
    embed: Callable[[Tensor, Sequence[int]], Tensor],
    left: Sequence[Sequence[int]],
    right: Sequence[Sequence[int]],
    schedule: Schedule,
    epochs: int,
    margin: float,
    two_sided: bool,
    make_optimiser: Callable[[list[Tensor]], torch.optim.Optimizer],
    penalty: Callable[[Tensor], Tensor] | None = None,
    clip: float | None = None,
    exclude_identical: bool = False,
    softmax_scale: float | None = None,
) -> tuple[Tensor, list[float]]:
    """ParaNMT-50M section 4 with an ordinary dense optimiser; returns the table and the loss of every
    mini-batch. With `exclude_identical` a pair without a candidate is passed over. With `softmax_scale` the
    loss is a softmax over each mega-batch, which is a mini-batch."""
    parameter = table.clone().requires_grad_()
    optimiser = make_optimiser([parameter])
    losses = []
    place = 0
    for epoch in range(epochs):
        order = schedule.order(epoch)
        position = 0
        while (mega := schedule.following(epoch, position, place)) is not None:
            members = order[mega.first : mega.last]
            pairs = len(members)
            sentences = [left[k] for k in members] + [right[k] for k in members]
            with torch.no_grad():
                embeddings = torch.stack([embed(parameter, sentence) for sentence in sentences])
            texts = [tuple(sentence) for sentence in sentences] if exclude_identical else None
            negatives = max_negatives(embeddings, pairs, two_sided, texts)
            whole = [(0, pairs)]
            for first, last in mega.mini_batches(schedule.batch_size) if softmax_scale is None else whole:
                place += 1
                part = [
                    k
                    for k in range(first, last)
                    if negatives[k] >= 0 and negatives[k - pairs * two_sided] >= 0
                ]
                if not part:
                    continue
                value = loss(
                    [embed(parameter, sentences[k]) for k in part],
                    [embed(parameter, sentences[pairs + k]) for k in part],
                    [embed(parameter, sentences[negatives[k]]) for k in part],
                    [embed(parameter, sentences[negatives[pairs + k]]) for k in part] if two_sided else None,
                    margin,
                )
                if softmax_scale is not None:
                    embeddings = torch.stack([embed(parameter, sentence) for sentence in sentences])
                    value = softmax(embeddings, pairs, softmax_scale, two_sided, texts)
                losses.append(value.item())
                objective = value if penalty is None else value + penalty(parameter)
                optimiser.zero_grad()
                objective.backward()
                if clip is not None:
                    assert parameter.grad is not None
                    parameter.grad *= min(1.0, clip / float(parameter.grad.norm()))
                optimiser.step()
            position = mega.last
    return parameter.detach(), losses
