"""Drawing tokens, with random numbers that depend on sentence, sample and position alone."""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor

from paraforge.translation.torch_search.settings import SearchSettings

_BITS = 23  # as many as a float32 has room for, so 1 is never reached


def sentence_seed(seed: int, tokens: list[int]) -> int:
    """Seed of a sentence, from that of the run and its source tokens; a signed 64-bit number."""
    digest = hashlib.blake2b(f"{seed} {tokens}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def uniform(seed: Tensor, samples: int, position: Tensor) -> Tensor:
    """Numbers from 0 to below 1, batch x samples: a hash (SplitMix64) of seed, sample and position.

    Torch's own generators would give a sentence other numbers with other sentences beside it.

    seed: batch. samples: of each sentence. position: 1.
    """
    place = position * samples + torch.arange(samples, device=seed.device)
    state = seed.unsqueeze(1) + (place + 1) * -7046029254386353131  # overflows wrap round
    for shift, factor in ((30, -4658895280553007687), (27, -7723592293110705685)):
        state = (state ^ _shifted(state, shift)) * factor
    state = state ^ _shifted(state, 31)
    return _shifted(state, 64 - _BITS).to(torch.float32) * 2.0**-_BITS


def _shifted(numbers: Tensor, places: int) -> Tensor:
    """Shifted to the right as unsigned numbers."""
    return (numbers >> places) & ((1 << (64 - places)) - 1)


def draw(log_probabilities: Tensor, chances: Tensor, settings: SearchSettings) -> Tensor:
    """Draw a token for each hypothesis.

    log_probabilities: batch x samples x vocabulary; minus infinity is never drawn.
    chances: batch x samples, from 0 to below 1.
    settings: temperature, top_k and top_p; as in other toolkits, top_p is a share of what top_k leaves.

    Returns batch x samples: tokens.
    """
    scaled = log_probabilities / settings.temperature
    if settings.top_k or settings.top_p < 1:
        count = min(settings.top_k or scaled.shape[2], scaled.shape[2])
        scaled, tokens = scaled.topk(count)
        probabilities = torch.softmax(scaled, 2)
        before = probabilities.cumsum(2) - probabilities
        probabilities = torch.where(before < settings.top_p, probabilities, 0.0)
        return tokens.gather(2, _at(probabilities, chances)).squeeze(2)
    return _at(torch.softmax(scaled, 2), chances).squeeze(2)


def _at(probabilities: Tensor, chances: Tensor) -> Tensor:
    """Where the sum of probabilities first exceeds a chance of their whole sum; batch x samples x 1."""
    sums = probabilities.cumsum(2)
    found = torch.searchsorted(sums, chances.unsqueeze(2) * sums[..., -1:], right=True)
    return found.clamp(max=probabilities.shape[2] - 1)
