"""From logits to log-probabilities, what is forbidden in them, and the best candidates among them."""

from __future__ import annotations

import math

import torch
from torch import Tensor

# The maxima of this many types are compared before the types themselves are.
_CHUNK = 16


def forbid_repeats(log_probabilities: Tensor, history: Tensor, position: Tensor, size: int) -> None:
    """Forbid, in place, each token that would complete an n-gram which its hypothesis has already.

    log_probabilities: batch x beam x vocabulary.
    history: batch x beam x tokens so far; the rest of it may be anything.
    position: 1, of the next token; ``history[..., : position + 1]`` is set. size: of the n-gram, 1 or more.
    """
    length = history.shape[2]
    starts = length - size + 1
    if starts < 1:
        return
    places = torch.arange(length, device=history.device)
    match = (places[:starts] + size - 1 <= position).expand(*history.shape[:2], starts)
    for offset in range(size - 1):
        # The last size - 1 tokens of the hypothesis, against those of each n-gram.
        last = history.index_select(2, (position - (size - 2) + offset).clamp(min=0))
        match = match & (history[:, :, offset : offset + starts] == last)
    enough = position >= size - 1
    completing = history[:, :, size - 1 :]
    found = log_probabilities.gather(2, completing)
    log_probabilities.scatter_reduce_(
        2, completing, torch.where(match & enough, -math.inf, found), "amin", include_self=True
    )


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
