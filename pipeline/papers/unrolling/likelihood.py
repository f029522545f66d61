"""The loss: minus the log-probability of words under a softmax over the vocabulary (DD Eq. 4, 6, 9, 10)."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from paraforge.embeddings.learning.batches import Bags

_CHUNK_ELEMENTS = 1 << 22
"""Logits that are held at once on a CPU: a batch has tens of millions, and small pieces stay in the cache."""
_CHUNK_ELEMENTS_GPU = 1 << 27
"""The same on a GPU, half a gigabyte in float32."""


def negative_log_likelihood(
    states: Tensor, weight: Tensor, bias: Tensor, words: Bags, products: torch.dtype | None = None
) -> Tensor:
    """Sum over all words w of all rows k of `logsumexp(U h_k + b) - u_w h_k - b_w`, a scalar.

    states: h, (rows, dimension). weight: U, (vocabulary, dimension), the output vectors; bias: b,
        (vocabulary,). words: those that row k predicts. products: type of matrix products, e.g. bfloat16.

    The gradient is computed along with the value, piece by piece, so that the logits are never whole in
    memory.
    """
    result: Tensor = _NegativeLogLikelihood.apply(states, weight, bias, words, products)  # type: ignore[no-untyped-call]  # of torch
    return result


@dataclass(frozen=True)
class SampledWords:
    """The words that a normaliser is estimated from: those that are predicted, and some of the others.

    ids: int64, distinct. correction: what is added to each one's logit, 0 of those that are predicted; of
        the others the logarithm of how many words each of them stands for.
    """

    ids: Tensor
    correction: Tensor

    def numbers(self, ids: Tensor, vocabulary: int) -> Tensor:
        """Where predicted words are in `ids`."""
        place = torch.empty(vocabulary, dtype=torch.int64, device=ids.device)
        place[self.ids] = torch.arange(len(self.ids), device=ids.device)
        return place[ids]


def sample_words(
    predicted: Tensor, vocabulary: int, count: int, generator: np.random.Generator
) -> SampledWords:
    """All predicted words and `count` of the others, drawn uniformly without replacement.

    The sum of the exponentials of their corrected logits has the whole sum as its expectation. With no fewer
    than the others in `count` it is the whole sum.
    """
    wanted = torch.zeros(vocabulary, dtype=torch.bool)
    wanted[predicted.cpu()] = True
    own, others = wanted.nonzero()[:, 0], (~wanted).nonzero()[:, 0]
    drawn = min(count, len(others))
    chosen = (
        others[torch.from_numpy(generator.choice(len(others), drawn, replace=False))] if drawn else others
    )
    correction = torch.zeros(len(own) + drawn)
    if drawn:
        correction[len(own) :] = math.log(len(others) / drawn)
    return SampledWords(torch.cat([own, chosen]).to(predicted.device), correction.to(predicted.device))


class _NegativeLogLikelihood(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, states: Tensor, weight: Tensor, bias: Tensor, words: Bags, products: torch.dtype | None
    ) -> Tensor:
        low = states.dtype if products is None else products
        states_low, weight_low = states.to(low), weight.to(low)
        lengths = words.lengths
        total = states.new_zeros(())
        wanted = any(ctx.needs_input_grad[:3])
        if wanted:
            gradients = (torch.empty_like(states), torch.zeros_like(weight), torch.zeros_like(bias))
        elements = _CHUNK_ELEMENTS if states.device.type == "cpu" else _CHUNK_ELEMENTS_GPU
        rows = max(1, elements // len(weight))
        starts = [*range(0, len(states), rows), len(states)]
        borders = words.offsets[starts].tolist()
        for number, first in enumerate(starts[:-1]):
            chunk = slice(first, starts[number + 1])
            tokens = slice(borders[number], borders[number + 1])
            place = (words.sentences[tokens] - first, words.ids[tokens])
            count = lengths[chunk].to(states.dtype)
            logits = (states_low[chunk] @ weight_low.t()).to(states.dtype).add_(bias)
            normaliser = logits.logsumexp(1)
            total = total + (count * normaliser).sum() - logits[place].sum()
            if not wanted:
                continue
            # d/dlogits: the expected counts of words minus the counts that are there.
            difference = logits.sub_(normaliser.unsqueeze(1)).exp_().mul_(count.unsqueeze(1))
            difference.index_put_(place, difference.new_full((), -1), accumulate=True)
            difference_low = difference.to(low)
            gradients[0][chunk] = difference_low @ weight_low
            gradients[1].add_(difference_low.t() @ states_low[chunk])
            gradients[2].add_(difference.sum(0))
        if wanted:
            ctx.save_for_backward(*gradients)
        return total

    @staticmethod
    def backward(ctx: Any, *output: Tensor) -> tuple[Tensor | None, ...]:
        return (*(gradient * output[0] for gradient in ctx.saved_tensors), None, None)
