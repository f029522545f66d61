"""Selects the next token of each hypothesis from logits, the best or sampled ones, and the hypotheses that
end."""

import hashlib
import math
from dataclasses import dataclass

import torch
from torch import Tensor

from paraforge.translation.decoding.translator import VarietySettings
from paraforge.translation.torch_search.state import Rules, SearchState

_BITS = 23  # as many bits as a float32 has, so 1 is never reached


def sentence_seed(seed: int, tokens: list[int]) -> int:
    """Return the seed of a sentence from the run's seed and its source tokens, a signed 64-bit number."""
    digest = hashlib.blake2b(f"{seed} {tokens}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def uniform(seed: Tensor, samples: int, position: Tensor) -> Tensor:
    """Return numbers from 0 to below 1, batch x samples: a hash (SplitMix64) of seed, sample and position.

    With torch's own generators, a sentence's numbers would depend on the other sentences of its batch.

    seed: batch. samples: number per sentence. position: 1.
    """
    place = position * samples + torch.arange(samples, device=seed.device)
    state = seed.unsqueeze(1) + (place + 1) * -7046029254386353131  # overflows wrap round
    for shift, factor in ((30, -4658895280553007687), (27, -7723592293110705685)):
        state = (state ^ _shifted(state, shift)) * factor
    state = state ^ _shifted(state, 31)
    return _shifted(state, 64 - _BITS).to(torch.float32) * 2.0**-_BITS


def _shifted(numbers: Tensor, places: int) -> Tensor:
    """Shift right as unsigned numbers."""
    return (numbers >> places) & ((1 << (64 - places)) - 1)


def draw(log_probabilities: Tensor, chances: Tensor, settings: VarietySettings) -> Tensor:
    """Draw a token for each hypothesis.

    log_probabilities: batch x samples x vocabulary; minus infinity is never drawn.
    chances: batch x samples, from 0 to below 1.
    settings: temperature, top_k and top_p; as in other toolkits, top_p is a share of the probability that
        top_k leaves.

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
    """Return where the sum of probabilities first exceeds a chance of their whole sum; batch x samples x
    1."""
    sums = probabilities.cumsum(2)
    found = torch.searchsorted(sums, chances.unsqueeze(2) * sums[..., -1:], right=True)
    return found.clamp(max=probabilities.shape[2] - 1)


# The maxima of chunks of this many types are compared before the types themselves.
_CHUNK = 16


def force(log_probabilities: Tensor, prefix: Tensor, lengths: Tensor, position: Tensor, free: int) -> None:
    """Exclude all but the forced token, in place, if there is one.

    log_probabilities: batch x beam x vocabulary. prefix: batch x positions, tokens.
    lengths: batch, number of prefix tokens. position: 1, position of the next token.
    free: number of first tokens without a score (language tags are not part of the text).
    """
    token = prefix.index_select(1, position.clamp(max=prefix.shape[1] - 1))[:, None]  # batch x 1 x 1
    forced = (position < lengths)[:, None, None]
    is_token = torch.arange(log_probabilities.shape[2], device=token.device) == token
    cost = torch.where(position < free, torch.zeros_like(log_probabilities), log_probabilities)
    log_probabilities.copy_(torch.where(forced, torch.where(is_token, cost, -math.inf), log_probabilities))


def best_candidates(log_probabilities: Tensor, total: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the best continuations of a sentence's hypotheses, the best first.

    The maxima of chunks of the vocabulary are ranked first, then the members of the best ``count`` chunks,
    which contain the best ``count``. On CPUs, this is twice as fast as ranking everything.

    log_probabilities: batch x beam x vocabulary, a multiple of 16.
    total: batch x beam, scores of the hypotheses so far.
    count: number to return, at most beam * vocabulary / 16.

    Returns batch x count: sums of log-probabilities, the hypotheses to continue, and the tokens.
    """
    batch, beam, vocabulary = log_probabilities.shape
    chunks = vocabulary // _CHUNK
    # Chunk j is the types j, j + chunks, j + 2 chunks, ..., so that maxima read memory sequentially.
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


@dataclass(frozen=True)
class Choice:
    """The choice at a step, each batch x beam.

    total: sum of log-probabilities of the hypotheses that continue; minus infinity for none.
    token: their next tokens. parent: the hypotheses that they continue.
    ended_total: sum of log-probabilities, including end-of-sentence, of those that end; minus infinity for
        none; descending in each group.
    ended_parent: the hypotheses that end.
    """

    total: Tensor
    token: Tensor
    parent: Tensor
    ended_total: Tensor
    ended_parent: Tensor


def choose(log_probabilities: Tensor, state: SearchState, rules: Rules) -> Choice:
    """Choose by beam search with groups, or by sampling.

    log_probabilities: batch x beam x vocabulary, modified if there are groups. state: before the step.
    """
    if rules.sampling:
        return _sampled(log_probabilities, state, rules)
    groups = rules.settings.groups
    width = rules.beam // groups
    choices: list[Choice] = []
    for group in range(groups):
        rows = slice(group * width, (group + 1) * width)
        taken = torch.cat([choice.token for choice in choices], 1) if choices else None
        choices.append(_group(log_probabilities[:, rows], state.total[:, rows], taken, group * width, rules))
    if groups == 1:
        return choices[0]
    names = ("total", "token", "parent", "ended_total", "ended_parent")
    return Choice(*(torch.cat([getattr(choice, name) for choice in choices], 1) for name in names))


def _group(
    log_probabilities: Tensor, total: Tensor, taken: Tensor | None, first: int, rules: Rules
) -> Choice:
    """Choose for one group.

    log_probabilities: batch x width x vocabulary. total: batch x width.
    taken: batch x n, tokens chosen by earlier groups at this step.
    first: beam index of the group's first hypothesis.
    """
    width = total.shape[1]
    if taken is not None:
        # The penalty affects the choice, and is then removed from the chosen sums.
        index = taken.unsqueeze(1).expand(-1, width, -1)
        penalties = torch.full(index.shape, -rules.settings.diversity, device=total.device)
        log_probabilities = log_probabilities.scatter_add(2, index, penalties)
    # Of twice the width, half can be ends of sentences, and the other half continues.
    sums, hypotheses, tokens = best_candidates(log_probabilities, total, 2 * width)
    if taken is not None:
        repeated = (tokens.unsqueeze(2) == taken.unsqueeze(1)).sum(2)
        sums = sums + rules.settings.diversity * repeated
    ends = (tokens == rules.end) & (sums > -math.inf)
    # The first candidates that do not end, in order.
    order = torch.arange(2 * width, device=total.device) + ends * (2 * width)
    going = order.topk(width, largest=False).indices
    # As in fairseq, an end counts only among the best `width`.
    ended = torch.where(ends[:, :width], sums[:, :width], -math.inf)
    parents = hypotheses + first
    return Choice(
        total=torch.where(ends.gather(1, going), -math.inf, sums.gather(1, going)),
        token=tokens.gather(1, going),
        parent=parents.gather(1, going),
        ended_total=ended,
        ended_parent=parents[:, :width],
    )


def _sampled(log_probabilities: Tensor, state: SearchState, rules: Rules) -> Choice:
    chances = uniform(state.seed, rules.beam, state.position)
    # Rows with NaN draw arbitrary tokens; they are marked elsewhere.
    token = draw(log_probabilities.nan_to_num(nan=0.0, neginf=-math.inf), chances, rules.settings)
    sums = state.total + log_probabilities.gather(2, token.unsqueeze(2)).squeeze(2)
    sums = sums.nan_to_num(nan=-math.inf, neginf=-math.inf)
    ends = token == rules.end
    own = torch.arange(rules.beam, device=token.device).expand_as(token)
    return Choice(
        total=torch.where(ends, -math.inf, sums),
        token=token,
        parent=own,
        ended_total=torch.where(ends, sums, -math.inf),
        ended_parent=own,
    )


def keep_finished(state: SearchState, choice: Choice, rules: Rules) -> None:
    """Record the hypotheses that end at this step, and the sentences that need no more steps.

    A group accepts hypotheses in the order of finding until its places are full; then, as in fairseq, it has
    finished. At the cap, the remaining hypotheses fill the remaining places.
    """
    length = state.position + 1  # number of tokens after this step
    width = rules.beam // state.shape.groups
    open_sentences = ~state.finished[:, None, None]
    at_cap = (length >= state.cap)[:, None, None]

    ended = choice.ended_total.view(-1, state.shape.groups, width)
    counted = (ended > -math.inf) & open_sentences
    _note(state, counted, ended, choice.ended_parent, length - 1, True, rules)
    left = choice.total.view(-1, state.shape.groups, width)
    counted = (left > -math.inf) & open_sentences & at_cap
    places = torch.arange(rules.beam, device=left.device).expand_as(choice.total)
    _note(state, counted, left, places, length, False, rules)

    full = state.done_count >= width
    nothing_left = (left == -math.inf).all(2)
    state.finished.logical_or_((full | nothing_left | at_cap[:, :, 0]).all(1))


def _note(
    state: SearchState,
    counted: Tensor,
    sums: Tensor,
    slots: Tensor,
    body: Tensor,
    ended: bool,
    rules: Rules,
) -> None:
    """Write hypotheses to their remaining places.

    state: its ``done_...`` tensors change. counted: batch x groups x width, which hypotheses to write.
    sums: batch x groups x width, their log-probabilities.
    slots: batch x beam, beam indices of their last tokens.
    body: 1, their number of tokens without end-of-sentence. ended: whether they ended with end-of-sentence.
    """
    batch, _, width = counted.shape
    place = state.done_count.unsqueeze(2) + counted.cumsum(2) - 1
    fits = counted & (place < width)
    offset = torch.arange(0, rules.beam, width, device=place.device)[:, None]
    # Hypotheses that do not fit go to the last place, which is never read.
    target = torch.where(fits, place + offset, rules.beam).view(batch, -1)
    length = (body + ended - rules.free).clamp(min=1).to(torch.float32)
    state.done_score.scatter_(1, target, (sums / length**rules.length_penalty).view(batch, -1))
    state.done_slot.scatter_(1, target, slots)
    state.done_length.scatter_(1, target, body.expand_as(target))
    state.done_ended.scatter_(1, target, torch.full_like(target, ended, dtype=torch.bool))
    state.done_count.add_(fits.sum(2))
