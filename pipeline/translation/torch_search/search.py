"""Searches a batch: runs steps on the device, selects the next tokens and the hypotheses that end, and checks
for finished sentences every few steps."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from paraforge.translation.torch_search.state import (
    Allocate,
    Findings,
    Harvest,
    Rules,
    SearchState,
    Shape,
    blank,
    new_state,
    resized,
    to_host,
)
from paraforge.translation.torch_search.transformer import (
    Weights,
    attention_kernels,
    decode_step,
    encode,
    masked,
)

# A step function; its argument is whether a prefix is still being forced.
Step = Callable[[SearchState, bool], None]


@dataclass(frozen=True)
class Request:
    """A sentence to translate.

    tokens: source tokens as the encoder reads them.
    cap: most target tokens, including end-of-sentence, without language tags.
    prefix: tokens at the start of every hypothesis.
    """

    tokens: tuple[int, ...]
    cap: int
    prefix: tuple[int, ...] = ()


@dataclass(frozen=True)
class Pace:
    """How the search runs; results depend on it only by rounding.

    look_every: steps between checks for finished sentences.
    keep: sentences move to a smaller batch when at most this share of it is left.
    room: target positions by which the cache grows; on a GPU it doubles instead.
    batch_sizes: allowed batch sizes, ascending; larger ones continue with the last step. Empty: any. A GPU
        that replays recorded steps needs few.
    source_multiple: source positions are padded to a multiple of this; long sources to a larger multiple, at
        most an eighth of their length. So there are few shapes.
    """

    look_every: int = 1
    keep: float = 0.85
    room: int = 8
    doubling: bool = False
    batch_sizes: tuple[int, ...] = ()
    source_multiple: int = 1

    def batch(self, sentences: int) -> int:
        """Return the batch size for this many sentences."""
        if not self.batch_sizes:
            return sentences
        last, step = self.batch_sizes[-1], self.batch_sizes[-1] - (0, *self.batch_sizes)[-2]
        beyond = last + -(-(sentences - last) // step) * step
        return next((size for size in self.batch_sizes if size >= sentences), beyond)

    def source(self, positions: int, most: int) -> int:
        """Return the padded source positions for this longest sentence, at most ``most``."""
        multiple = self.source_multiple
        while multiple > 1 and 16 * multiple <= positions:
            multiple *= 2
        return max(positions, min(-(-positions // multiple) * multiple, most))

    def capacity(self, positions: int, most: int) -> int:
        """Return the capacity for this many positions, at most about ``most``."""
        room = self.room
        if self.doubling:
            # Not limited to ``most``, because attention on a GPU needs multiples of 8.
            while room < positions:
                room *= 2
            return room
        room = -(-positions // room) * room
        return max(positions, min(room, most))


def advance(weights: Weights, state: SearchState, rules: Rules, forcing: bool) -> None:
    """Run one step of the search: decoder, choice, bookkeeping. Changes ``state`` in place.

    Nothing here depends on a value, so a GPU can record it once and replay it.

    forcing: whether a token can be forced at this position.
    """
    shape, position = state.shape, state.position
    places = torch.arange(rules.beam, device=position.device)
    state.origin.index_copy_(2, position, places[:, None].expand(shape.batch, -1, -1))
    # A key belongs to a hypothesis' past if it was written at the beam index that the hypothesis had then.
    own = (state.origin.unsqueeze(3) == places).view(shape.batch, 1, rules.beam, -1)
    logits = decode_step(
        weights,
        state.previous,
        position,
        state.cache,
        masked(own, weights.dtype),
        state.memory,
        state.memory_mask,
    )
    scores = torch.log_softmax(logits, 2)
    del logits  # as large as the attention scores
    alive = (state.total > -math.inf) & ~state.finished.unsqueeze(1)
    # One NaN or infinite logit makes every score of its row NaN.
    state.non_finite.logical_or_((alive & scores[:, :, rules.end].isnan()).any(1))
    for banned in rules.banned:
        scores[:, :, banned] = -math.inf
    scores[:, :, rules.end].masked_fill_(position < rules.shortest, -math.inf)
    if forcing:
        force(scores, state.prefix, state.prefix_length, position, rules.free)

    choice = choose(scores, state, rules)
    keep_finished(state, choice, rules)
    state.tokens.index_copy_(1, position, choice.token.unsqueeze(1))
    state.parents.index_copy_(1, position, choice.parent.unsqueeze(1))
    state.total.copy_(choice.total)
    state.previous.copy_(choice.token)
    state.origin.copy_(state.origin.gather(1, choice.parent.unsqueeze(2).expand_as(state.origin)))
    position.add_(1)


class Search:
    """Beam search with one model on one device."""

    def __init__(
        self,
        weights: Weights,
        rules: Rules,
        pace: Pace | None = None,
        allocate: Allocate | None = None,
        step: Step | None = None,
    ) -> None:
        """Prepare a search.

        pace: how it runs. allocate: returns a state of a shape; a new one by default.
        step: runs a step; :func:`advance` by default.
        """
        self.weights, self.rules, self.pace = weights, rules, pace or Pace()
        self._allocate = allocate or self.new_state
        self._step = step or self.step

    def new_state(self, shape: Shape) -> SearchState:
        """Return a new state on this search's device."""
        return new_state(shape, self.weights.device, self.weights.dtype)

    def step(self, state: SearchState, forcing: bool) -> None:
        """Run :func:`advance` with this search's weights and rules."""
        advance(self.weights, state, self.rules, forcing)

    @torch.inference_mode()
    def find(self, requests: Sequence[Request]) -> Findings:
        """Find up to ``beam`` hypotheses of each sentence."""
        with attention_kernels(self.weights.device):
            return self._find(requests)

    def _find(self, requests: Sequence[Request]) -> Findings:
        room = len(self.weights.target.positions)
        requests = [replace(one, cap=min(one.cap + self.rules.free, room)) for one in requests]
        most = max(request.cap for request in requests)
        state = self._begin(requests, most)
        owners = list(range(len(requests))) + [-1] * (state.shape.batch - len(requests))
        harvests: list[Harvest] = []
        steps = 0
        while owners:
            for _ in range(min(self.pace.look_every, most - steps)):
                if steps == state.shape.capacity:
                    shape = replace(state.shape, capacity=self.pace.capacity(steps + 1, most))
                    state = resized(state, None, shape, self._allocate)
                self._step(state, steps < state.shape.prefix)
                steps += 1
            finished = to_host(state.finished)
            if state.finished.is_cuda:
                torch.cuda.current_stream(state.finished.device).synchronize()
            over = finished.tolist() if steps < most else [True] * len(owners)
            state, owners = self._compact(state, owners, over, steps, harvests)
        return Findings(harvests)

    def _begin(self, requests: Sequence[Request], most: int) -> SearchState:
        rules, weights, device = self.rules, self.weights, self.weights.device
        longest = max(len(request.tokens) for request in requests)
        longest = self.pace.source(longest, len(weights.source.positions))
        prefix = max(len(request.prefix) for request in requests)
        batch = self.pace.batch(len(requests))
        shape = Shape(
            batch=batch,
            beam=rules.beam,
            source=longest,
            capacity=self.pace.capacity(1, most),
            prefix=prefix,
            layers=len(weights.decoder),
            heads=weights.heads,
            head_width=weights.head_width,
        )
        state = blank(self._allocate(shape))
        # Padding sentences are finished from the start. Their token must be in the source vocabulary, because
        # an invalid index makes a GPU unusable for the process.
        filled = [*requests, *[Request(requests[0].tokens[:1], 1)] * (batch - len(requests))]
        tokens = _table([request.tokens for request in filled], longest)
        lengths = torch.tensor([len(request.tokens) for request in filled])
        state.memory_mask.copy_(
            _sent(masked(torch.arange(longest) < lengths[:, None], weights.dtype)[:, None, None], device)
        )
        state.cap.copy_(_sent(torch.tensor([request.cap for request in filled]), device))
        if prefix:
            state.prefix.copy_(_sent(_table([request.prefix for request in filled], prefix), device))
            lengths = torch.tensor([len(request.prefix) for request in filled])
            state.prefix_length.copy_(_sent(lengths, device))
        state.finished[len(requests) :] = True
        state.previous.fill_(rules.start)
        # At the first step, all hypotheses are equal, so only one is followed.
        state.total[:, 0] = 0.0
        state.memory.copy_(encode(weights, _sent(tokens, device), state.memory_mask))
        return state

    def _compact(
        self,
        state: SearchState,
        owners: list[int],
        over: list[bool],
        steps: int,
        harvests: list[Harvest],
    ) -> tuple[SearchState, list[int]]:
        """Return the state without finished sentences, if enough of them have finished."""
        left = [row for row, owner in enumerate(owners) if owner >= 0 and not over[row]]
        size = self.pace.batch(len(left)) if left else 0
        if left and (size >= len(owners) or len(left) > self.pace.keep * len(owners)):
            return state, owners
        done = [row for row, owner in enumerate(owners) if owner >= 0 and over[row]]
        device = state.tokens.device
        if done:
            rows = _sent(torch.tensor(done), device)
            harvests.append(Harvest(state, rows, [owners[row] for row in done], steps))
        if not left:
            return state, []
        # Padding rows are copies of a finished one, and stay finished.
        fill = next(row for row in range(len(owners)) if over[row])
        chosen = left + [fill] * (size - len(left))
        smaller = resized(
            state, _sent(torch.tensor(chosen), device), replace(state.shape, batch=size), self._allocate
        )
        return smaller, [owners[row] for row in left] + [-1] * (size - len(left))


def _table(rows: Sequence[Sequence[int]], width: int) -> Tensor:
    return torch.tensor([[*row, *[0] * (width - len(row))] for row in rows])


def _sent(tensor: Tensor, device: torch.device) -> Tensor:
    if device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


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
