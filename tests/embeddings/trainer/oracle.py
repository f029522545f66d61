"""Slow, plain versions of the loss, the choice of negatives and the training loop."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from paraforge.embeddings.trainer.parameters import TrainingParameters

MegaBatches = Iterable[list[list[int]]]
"""Of each mega-batch the mini-batches, each the numbers of its pairs."""


def schedule(
    pairs: int,
    *,
    epochs: int,
    batch_size: int,
    mega_batch: int,
    anneal: int,
    seed: int,
    sources: Sequence[int] | None = None,
) -> MegaBatches:
    """ParaNMT-50M section 4: every epoch in a new random order, cut into mini-batches, M of which are a
    mega-batch. M is 1 for the first `anneal` mini-batches, 2 for the next, ..., and never above
    `mega_batch`; without `anneal` it is always `mega_batch`. A single left-over pair goes with the others.
    """
    begun = 0
    for epoch in range(epochs):
        left = _order(pairs, batch_size, seed, epoch, sources)
        while left:
            wanted = min(mega_batch, 1 + begun // anneal) if anneal else mega_batch
            size = batch_size * wanted
            if len(left) == size + 1:
                size += 1
            members, left = left[:size], left[size:]
            yield [members[first : first + batch_size] for first in range(0, len(members), batch_size)]
            begun += -(-len(members) // batch_size)


def _order(pairs: int, batch_size: int, seed: int, epoch: int, sources: Sequence[int] | None) -> list[int]:
    """A random permutation; with sources whole mini-batches of one source each, then what is left over."""
    generator = np.random.default_rng([seed, 0, epoch])
    order: list[int] = generator.permutation(pairs).tolist()
    if sources is None:
        return order
    batches = []
    for source in sorted(set(sources)):
        own = [pair for pair in order if sources[pair] == source]
        batches += [own[last - batch_size : last] for last in range(batch_size, len(own) + 1, batch_size)]
    place = generator.permutation(len(batches))
    shuffled = [pair for number in np.argsort(place) for pair in batches[number]]
    taken = set(shuffled)
    return shuffled + [pair for pair in order if pair not in taken]


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
    parameters: Sequence[Tensor],
    embed: Callable[[list[int]], Tensor],
    texts: Sequence[object],
    mega_batches: MegaBatches,
    settings: TrainingParameters,
    penalty: Callable[[], Tensor] | None = None,
    choose: Callable[[Tensor, Sequence[object]], list[int]] | None = None,
) -> list[float]:
    """ParaNMT-50M section 4 with an ordinary dense optimizer over the whole objective; returns the loss of
    every mini-batch. A pair without a candidate is passed over. The loss softmax is over each mega-batch.

    embed: gives the vectors of pairs, left sides first. texts: of all pairs, left sides first.
    choose: gives the negatives of a mega-batch by all vectors and texts, left sides first; None: MAX."""
    rate, two_sided = settings.learning_rate, settings.two_sided
    optimizer: torch.optim.Optimizer = torch.optim.Adagrad(parameters, lr=rate)
    if settings.optimizer == "adam":
        optimizer = torch.optim.Adam(parameters, lr=rate, eps=1e-30)
    softmax_loss = settings.loss == "softmax"
    losses = []
    for mini_batches in mega_batches:
        members = [pair for mini_batch in mini_batches for pair in mini_batch]
        pairs = len(members)
        here = [texts[k] for k in members] + [texts[len(texts) // 2 + k] for k in members]
        with torch.no_grad():
            embeddings = embed(members)
        if choose is None:
            negatives = max_negatives(embeddings, pairs, two_sided, here)
        else:
            negatives = choose(embeddings, here)
        first = 0
        for mini_batch in [members] if softmax_loss else mini_batches:
            last = first + len(mini_batch)
            part = [
                k for k in range(first, last) if negatives[k] >= 0 and negatives[k - pairs * two_sided] >= 0
            ]
            first = last
            if not part:
                continue
            embeddings = embed(members)
            value = (
                softmax(embeddings, pairs, settings.scale, two_sided, here)
                if softmax_loss
                else loss(
                    [embeddings[k] for k in part],
                    [embeddings[pairs + k] for k in part],
                    [embeddings[negatives[k]] for k in part],
                    [embeddings[negatives[pairs + k]] for k in part] if two_sided else None,
                    settings.margin,
                )
            )
            losses.append(value.item())
            objective = value if penalty is None else value + penalty()
            optimizer.zero_grad()
            objective.backward()
            if settings.clip is not None:
                gradients = [value.grad for value in parameters if value.grad is not None]
                norm = float(torch.stack([gradient.norm() for gradient in gradients]).norm())
                for gradient in gradients:
                    gradient *= min(1.0, settings.clip / norm)
            optimizer.step()
    return losses
