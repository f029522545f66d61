"""Choosing the next token of each hypothesis, and separating those that have ended."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from paraforge.translation.torch_search.scores import best_candidates, draw, uniform
from paraforge.translation.torch_search.state import Rules, SearchState


@dataclass(frozen=True)
class Choice:
    """What is chosen at a step, batch x beam each.

    total: sum of log-probabilities of the hypotheses that continue; minus infinity where there is none.
    token: the next one of each. parent: which hypotheses they continue.
    ended_total: sum of log-probabilities, end-of-sentence included, of those that end; minus infinity where
        none does. By falling sums in each group.
    ended_parent: which hypotheses these are.
    """

    total: Tensor
    token: Tensor
    parent: Tensor
    ended_total: Tensor
    ended_parent: Tensor


def choose(log_probabilities: Tensor, state: SearchState, rules: Rules) -> Choice:
    """Beam search with its groups, or sampling.

    log_probabilities: batch x beam x vocabulary, changed where there are groups. state: before the step.
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
    """One group's choice.

    log_probabilities: batch x width x vocabulary. total: batch x width.
    taken: batch x n, tokens that the groups before have chosen at this step.
    first: place of the group's first hypothesis in the beam.
    """
    width = total.shape[1]
    if taken is not None:
        # A penalty decides who is chosen, and is taken back from the sums of those who are.
        index = taken.unsqueeze(1).expand(-1, width, -1)
        penalties = torch.full(index.shape, -rules.settings.diversity, device=total.device)
        log_probabilities = log_probabilities.scatter_add(2, index, penalties)
    # Half of twice the width may be ends of sentences; the other half continues.
    sums, hypotheses, tokens = best_candidates(log_probabilities, total, 2 * width)
    if taken is not None:
        repeated = (tokens.unsqueeze(2) == taken.unsqueeze(1)).sum(2)
        sums = sums + rules.settings.diversity * repeated
    ends = (tokens == rules.end) & (sums > -math.inf)
    # The first of the candidates that do not end, in their order.
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
    # Rows that are not numbers draw anything; they are marked elsewhere.
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
    """Note the hypotheses that end at this step, and which sentences need no more steps.

    A group takes as many as it has places, in the order of their finding; then, as in fairseq, it has
    finished. At the cap the hypotheses that are left take the places that are left.
    """
    length = state.position + 1  # tokens after this step
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
    """Write hypotheses into the places that are left for them.

    state: its ``done_...`` are changed. counted: batch x groups x width, which hypotheses are meant.
    sums: batch x groups x width, their log-probabilities.
    slots: batch x beam, places of the beam where their last tokens are.
    body: 1, their tokens without end-of-sentence. ended: whether end-of-sentence came.
    """
    batch, _, width = counted.shape
    place = state.done_count.unsqueeze(2) + counted.cumsum(2) - 1
    fits = counted & (place < width)
    offset = torch.arange(0, rules.beam, width, device=place.device)[:, None]
    # What does not fit goes to the last place, which nobody reads.
    target = torch.where(fits, place + offset, rules.beam).view(batch, -1)
    length = (body + ended - rules.free).clamp(min=1).to(torch.float32)
    state.done_score.scatter_(1, target, (sums / length**rules.length_penalty).view(batch, -1))
    state.done_slot.scatter_(1, target, slots)
    state.done_length.scatter_(1, target, body.expand_as(target))
    state.done_ended.scatter_(1, target, torch.full_like(target, ended, dtype=torch.bool))
    state.done_count.add_(fits.sum(2))
