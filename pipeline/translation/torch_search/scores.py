"""From logits to log-probabilities, what is forbidden in them, and the best candidates among them, or drawn
ones."""

import hashlib
import math

import torch
from torch import Tensor

from paraforge.translation.decoding.translator import VarietySettings

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


def draw(log_probabilities: Tensor, chances: Tensor, settings: VarietySettings) -> Tensor:
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


# The maxima of this many types are compared before the types themselves are.
_CHUNK = 16


def force(log_probabilities: Tensor, prefix: Tensor, lengths: Tensor, position: Tensor, free: int) -> None:
    """Leave, in place, nothing but the forced token where there is one.

    log_probabilities: batch x beam x vocabulary. prefix: batch x places, tokens.
    lengths: batch, how many of them. position: 1, of the next token.
    free: this many first tokens cost nothing (language tags are no part of the text).
    """
    token = prefix.index_select(1, position.clamp(max=prefix.shape[1] - 1))[:, None]  # batch x 1 x 1
    forced = (position < lengths)[:, None, None]
    is_token = torch.arange(log_probabilities.shape[2], device=token.device) == token
    cost = torch.where(position < free, torch.zeros_like(log_probabilities), log_probabilities)
    log_probabilities.copy_(torch.where(forced, torch.where(is_token, cost, -math.inf), log_probabilities))


def best_candidates(log_probabilities: Tensor, total: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """The best continuations of a sentence's hypotheses, the best first.

    First the maxima of chunks of the vocabulary are ranked, then the members of the best ``count`` chunks:
    nothing outside of these can be among the best ``count``. Twice as fast as ranking the whole, on CPUs.

    log_probabilities: batch x beam x vocabulary, a multiple of 16.
    total: batch x beam, of the hypotheses so far. count: how many; at most beam * vocabulary / 16.

    Returns batch x count: their sums of log-probabilities, the hypotheses that they continue, and the tokens.
    """
    batch, beam, vocabulary = log_probabilities.shape
    chunks = vocabulary // _CHUNK
    # Chunk j is the types j, j + chunks, j + 2 chunks, ...: its maximum runs along memory.
    maxima = log_probabilities.view(batch, beam, _CHUNK, chunks).amax(2) + total.unsqueeze(2)
    chosen = maxima.nan_to_num_(nan=-math.inf, neginf=-math.inf).view(batch, -1).topk(count, sorted=False)
    hypothesis = chosen.indices // chunks  # batch x count
    first = hypothesis * vocabulary + chosen.indices % chunks
    members = first.unsqueeze(2) + torch.arange(0, vocabulary, chunks, device=first.device)
    members = members.view(batch, -1)
    values = log_probabilities.view(batch, -1).gather(1, members).view(batch, count, _CHUNK)
    sums = (values + total.gather(1, hypothesis).unsqueeze(2)).nan_to_num_(nan=-math.inf, neginf=-math.inf)
    best = sums.view(batch, -1).topk(count)
    member = members.gather(1, best.indices)
    return best.values, member // vocabulary, member % vocabulary
