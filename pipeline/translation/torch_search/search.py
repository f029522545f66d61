"""Searches a batch: runs steps on the device, and checks for finished sentences every few steps."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from paraforge.translation.torch_search.results import Findings, Harvest, to_host
from paraforge.translation.torch_search.selection import choose, force, keep_finished
from paraforge.translation.torch_search.state import (
    Allocate,
    Rules,
    SearchState,
    Shape,
    blank,
    new_state,
    resized,
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
            state, owners = self._compacted(state, owners, over, steps, harvests)
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

    def _compacted(
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
