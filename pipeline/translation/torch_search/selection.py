"""Selects the next token of each hypothesis from logits, and the hypotheses that end."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from paraforge.translation.torch_search.state import Rules, SearchState

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
    ended_total: sum of log-probabilities, including end-of-sentence, of those that end, descending; minus
        infinity for none.
    ended_parent: the hypotheses that end.
    """

    total: Tensor
    token: Tensor
    parent: Tensor
    ended_total: Tensor
    ended_parent: Tensor


def choose(log_probabilities: Tensor, state: SearchState, rules: Rules) -> Choice:
    """Choose by beam search.

    log_probabilities: batch x beam x vocabulary. state: before the step.
    """
    width = rules.beam
    # Of twice the width, half can be ends of sentences, and the other half continues.
    sums, hypotheses, tokens = best_candidates(log_probabilities, state.total, 2 * width)
    ends = tokens == rules.end
    # The first candidates that do not end, in order.
    order = torch.arange(2 * width, device=sums.device) + ends * (2 * width)
    going = order.topk(width, largest=False).indices
    return Choice(
        total=torch.where(ends.gather(1, going), -math.inf, sums.gather(1, going)),
        token=tokens.gather(1, going),
        parent=hypotheses.gather(1, going),
        # As in fairseq, an end counts only among the best `width`.
        ended_total=torch.where(ends[:, :width], sums[:, :width], -math.inf),
        ended_parent=hypotheses[:, :width],
    )


def keep_finished(state: SearchState, choice: Choice, rules: Rules) -> None:
    """Record the hypotheses that end at this step, and the sentences that need no more steps.

    A sentence accepts hypotheses in the order of finding until its places are full; then, as in fairseq, it
    has finished. At the cap, the remaining hypotheses fill the remaining places.
    """
    length = state.position + 1  # number of tokens after this step
    open_sentences = ~state.finished[:, None]
    at_cap = length >= state.cap

    counted = (choice.ended_total > -math.inf) & open_sentences
    _note(state, counted, choice.ended_total, choice.ended_parent, length - 1, True, rules)
    left = choice.total > -math.inf
    places = torch.arange(rules.beam, device=left.device).expand_as(choice.total)
    _note(state, left & open_sentences & at_cap[:, None], choice.total, places, length, False, rules)

    state.finished.logical_or_((state.done_count >= rules.beam) | ~left.any(1) | at_cap)


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

    state: its ``done_...`` tensors change. counted: batch x beam, which hypotheses to write.
    sums: batch x beam, their log-probabilities. slots: batch x beam, beam indices of their last tokens.
    body: 1, their number of tokens without end-of-sentence. ended: whether they ended with end-of-sentence.
    """
    place = state.done_count[:, None] + counted.cumsum(1) - 1
    # Hypotheses that do not fit go to the last place, which is never read.
    target = torch.where(counted, place, rules.beam).clamp(max=rules.beam)
    length = (body + ended - rules.free).clamp(min=1).to(torch.float32)
    state.done_score.scatter_(1, target, sums / length**rules.length_penalty)
    state.done_slot.scatter_(1, target, slots)
    state.done_length.scatter_(1, target, body.expand_as(target))
    state.done_ended.scatter_(1, target, torch.full_like(target, ended, dtype=torch.bool))
    state.done_count.add_(counted.sum(1))
