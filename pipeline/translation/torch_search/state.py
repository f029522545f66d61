"""The rules of a search, its state for a batch (tensors that a step changes in place, and their memory), and
the finished hypotheses in it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True)
class Rules:
    """Rules of a search.

    beam: hypotheses of a sentence that are followed at a time.
    length_penalty: a hypothesis' score is its log-probability / length ** length_penalty.
    start: the decoder's first input. end: end-of-sentence. banned: types that are never generated.
    free: number of first tokens of a forced prefix (language tags) that do not count in score and length.
    """

    beam: int
    length_penalty: float
    start: int
    end: int
    banned: tuple[int, ...]
    free: int = 0

    @property
    def shortest(self) -> int:
        """The least number of tokens before end-of-sentence; as in fairseq, a hypothesis must not be
        empty."""
        return self.free + 1


# Memory that is too small is replaced by more than is needed now, so that this is rare.
_GROWTH = 1.25


class Arena:
    """One block of memory for each tensor of a state.

    A recorded step uses fixed addresses. The states of all shapes share this memory, which is as large as the
    largest of them; a state can have gigabytes.

    generation: number of times that memory was replaced; addresses of earlier generations are invalid.
    """

    def __init__(self, device: torch.device, dtype: torch.dtype) -> None:
        """Prepare memory on a device, without allocating any.

        dtype: of keys and values.
        """
        self._device, self._dtype = device, dtype
        self._stretches: dict[str, Tensor] = {}
        self.generation = 0

    def state(self, shape: Shape) -> SearchState:
        """Return a state of a shape, for :func:`~paraforge.translation.torch_search.state.blank` or
        ``resized``. It uses the memory of the previous one, whose content may still be in it."""
        tensors = {}
        for name, (sizes, kind) in layout(shape, self._dtype).items():
            tensors[name] = self._stretch(name, math.prod(sizes), kind).view(sizes)
        return SearchState(shape, **tensors)

    def _stretch(self, name: str, count: int, kind: torch.dtype) -> Tensor:
        stretch = self._stretches.get(name)
        if stretch is None or len(stretch) < count:
            size = count if stretch is None else max(count, int(_GROWTH * len(stretch)))
            self._stretches[name] = stretch = torch.empty(size, dtype=kind, device=self._device)
            self.generation += 1
        return stretch[:count]

    def free(self) -> None:
        """Release the memory."""
        self._stretches.clear()


# Values of empty elements in tensors; 0 except for these.
_NOTHING: dict[str, float] = {"total": -math.inf, "done_score": -math.inf, "origin": -1}


@dataclass(frozen=True)
class Shape:
    """The sizes of a state.

    batch: sentences. beam: hypotheses per sentence. source: source positions.
    capacity: target positions. prefix: target positions that can be forced.
    layers, heads, head_width: sizes of the decoder.
    """

    batch: int
    beam: int
    source: int
    capacity: int
    prefix: int
    layers: int
    heads: int
    head_width: int


@dataclass
class SearchState:
    """The state of a batch between two steps.

    memory: layers x 2 x batch x heads x source x head width, keys and values of the encoder's output.
    memory_mask: batch x 1 x 1 x source, added to attention logits.
    cache: layers x 2 x batch x heads x capacity x beam x head width; written once per position.
    origin: batch x beam x capacity, beam index at which each position of a hypothesis was written; -1 if
        none.
    tokens, parents: batch x capacity x beam, appended tokens and the hypotheses that they extend.
    position: 1, position of the next token. previous: batch x beam, last token.
    total: batch x beam, sum of log-probabilities; minus infinity for no hypothesis.
    cap: batch, most tokens of a hypothesis.
    prefix, prefix_length: batch x prefix, batch: forced first tokens.
    done_score: batch x (beam + 1), scores of finished hypotheses in the order of finding; the last place is
        for discarded ones.
    done_slot, done_length, done_ended: same shape; beam index of the last token before end-of-sentence,
        number of tokens before it, and whether it was generated.
    done_count: batch. finished: batch, whether a sentence needs no more steps.
    non_finite: batch, whether a probability of a sentence was NaN.
    """

    shape: Shape
    memory: Tensor
    memory_mask: Tensor
    cache: Tensor
    origin: Tensor
    tokens: Tensor
    parents: Tensor
    position: Tensor
    previous: Tensor
    total: Tensor
    cap: Tensor
    prefix: Tensor
    prefix_length: Tensor
    done_score: Tensor
    done_slot: Tensor
    done_length: Tensor
    done_ended: Tensor
    done_count: Tensor
    finished: Tensor
    non_finite: Tensor

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors by name."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "shape"}


Allocate = Callable[[Shape], SearchState]


def layout(shape: Shape, dtype: torch.dtype) -> dict[str, tuple[tuple[int, ...], torch.dtype]]:
    """Return the sizes and type of each tensor of a state.

    shape: sizes of the state. dtype: type of keys and values.
    """
    batch, beam, capacity, places = shape.batch, shape.beam, shape.capacity, shape.beam + 1
    integer, real, flag = torch.int64, torch.float32, torch.bool
    keys = (shape.layers, 2, batch, shape.heads)
    return {
        "memory": ((*keys, shape.source, shape.head_width), dtype),
        "memory_mask": ((batch, 1, 1, shape.source), dtype),
        "cache": ((*keys, capacity, beam, shape.head_width), dtype),
        "origin": ((batch, beam, capacity), integer),
        "tokens": ((batch, capacity, beam), integer),
        "parents": ((batch, capacity, beam), integer),
        "position": ((1,), integer),
        "previous": ((batch, beam), integer),
        "total": ((batch, beam), real),
        "cap": ((batch,), integer),
        "prefix": ((batch, max(1, shape.prefix)), integer),
        "prefix_length": ((batch,), integer),
        "done_score": ((batch, places), real),
        "done_slot": ((batch, places), integer),
        "done_length": ((batch, places), integer),
        "done_ended": ((batch, places), flag),
        "done_count": ((batch,), integer),
        "finished": ((batch,), flag),
        "non_finite": ((batch,), flag),
    }


_ONE = Shape(batch=1, beam=1, source=1, capacity=1, prefix=1, layers=1, heads=1, head_width=1)


def _growing(larger: Shape) -> dict[str, int]:
    """Return for each tensor the dimension that grows in a larger shape than :data:`_ONE`, if any."""
    sizes = {name: size for name, (size, _) in layout(_ONE, torch.float32).items()}
    return {
        name: place
        for name, (size, _) in layout(larger, torch.float32).items()
        for place in range(len(size))
        if size[place] > sizes[name][place]
    }


# The dimensions that count sentences and target positions.
_SENTENCES, _POSITIONS = _growing(replace(_ONE, batch=2)), _growing(replace(_ONE, capacity=2))


def new_state(shape: Shape, device: torch.device, dtype: torch.dtype) -> SearchState:
    """Return a new empty state.

    dtype: of keys and values.
    """
    tensors = {
        name: torch.empty(sizes, dtype=kind, device=device)
        for name, (sizes, kind) in layout(shape, dtype).items()
    }
    return blank(SearchState(shape, **tensors))


def blank(state: SearchState) -> SearchState:
    """Reset a used state to an empty one."""
    for name, tensor in state.tensors().items():
        # Zeros instead of arbitrary memory in empty positions, because 0 times NaN is NaN.
        tensor.fill_(_NOTHING.get(name, 0))
    return state


def resized(state: SearchState, rows: Tensor | None, shape: Shape, allocate: Allocate) -> SearchState:
    """Return a state with chosen sentences and another capacity, otherwise unchanged.

    state: the source; unchanged, unless ``allocate`` returns the same memory.
    rows: the sentences to keep, one for each of ``shape.batch``; None for all.
    shape: shape of the new state, with at least the same capacity.
    allocate: returns a state of that shape, which is overwritten. It can be in ``state``'s memory if each of
        its tensors begins where the tensor of the same name begins.
    """
    other = allocate(shape)
    for name, source in state.tensors().items():
        sentences, positions = _SENTENCES.get(name), _POSITIONS.get(name)
        target = getattr(other, name)
        if rows is not None and sentences is not None:
            source = source.index_select(sentences, rows)
        elif source.data_ptr() == target.data_ptr():
            if source.shape == target.shape:
                continue
            source = source.clone()
        if positions is not None:
            if target.shape[positions] > source.shape[positions]:
                target.fill_(_NOTHING.get(name, 0))
            target = target.narrow(positions, 0, source.shape[positions])
        target.copy_(source)
    return other


_NAMES = ("done_score", "done_slot", "done_length", "done_ended", "non_finite", "tokens", "parents")


@dataclass(frozen=True)
class Found:
    """A finished hypothesis.

    tokens: without end-of-sentence, language tags included.
    score: log-probability / length ** length penalty.
    ended: whether it ended with end-of-sentence, not at the cap.
    """

    tokens: tuple[int, ...]
    score: float
    ended: bool


class Harvest:
    """Finished sentences that are being copied from the device asynchronously."""

    def __init__(self, state: SearchState, rows: Tensor, owners: list[int], steps: int) -> None:
        """Start to copy.

        state: the state with the sentences. rows: their indices in the batch.
        owners: their numbers outside of the batch. steps: number of written positions.
        """
        self.owners = owners
        self._arrays: dict[str, Tensor] = {}
        for name in _NAMES:
            chosen = getattr(state, name).index_select(0, rows)
            if name in ("tokens", "parents"):
                chosen = chosen[:, :steps].to(torch.int32)
            self._arrays[name] = to_host(chosen)
        self._arrived: torch.cuda.Event | None = None
        if state.tokens.is_cuda:
            self._arrived = torch.cuda.Event()
            # Not just the current stream, which could be on another device.
            self._arrived.record(torch.cuda.current_stream(state.tokens.device))

    def wait(self) -> None:
        """Wait for the copies to finish, before anything is read."""
        if self._arrived is not None:
            self._arrived.synchronize()
            self._arrived = None

    def non_finite(self) -> list[bool]:
        """Return for each sentence whether a probability was NaN."""
        return [bool(flag) for flag in self._arrays["non_finite"].tolist()]

    def results(self, most: int | None = None) -> list[list[Found]]:
        """Return the hypotheses of each sentence by descending score, at most ``most``."""
        arrays = {name: tensor.numpy() for name, tensor in self._arrays.items()}
        # The last place is for discarded hypotheses.
        places = np.argsort(-arrays["done_score"][:, :-1], axis=1, kind="stable")[:, :most]
        scores, slots, lengths, ended = (
            np.take_along_axis(arrays[name], places, 1)
            for name in ("done_score", "done_slot", "done_length", "done_ended")
        )
        bodies = _bodies(arrays["tokens"], arrays["parents"], lengths, slots)
        return [
            [
                Found(tuple(body[:length].tolist()), score, end)
                for body, length, score, end in zip(*row, strict=True)
                if score > -np.inf
            ]
            for row in zip(bodies, lengths.tolist(), scores.tolist(), ended.tolist(), strict=True)
        ]


class Findings:
    """The results of a search for a batch, copied to the host, and converted to hypotheses on demand.

    The conversion takes a large part of the search's time, so the consumer does it, and the thread that feeds
    the device continues.
    """

    def __init__(self, harvests: Sequence[Harvest]) -> None:
        """Wait for all copies."""
        self._harvests = harvests
        for harvest in harvests:
            harvest.wait()

    def replaced(self, numbers: Sequence[int], better: Findings) -> Findings:
        """Return the same results, with those of another search for some sentences.

        numbers: numbers of these sentences. better: their new results, in this order; it is used up.
        """
        for harvest in better._harvests:
            harvest.owners = [numbers[owner] for owner in harvest.owners]
        return Findings([*self._harvests, *better._harvests])

    def non_finite(self) -> list[int]:
        """Return the numbers of the sentences with a probability that was NaN."""
        return sorted(
            owner
            for harvest in self._harvests
            for owner, bad in zip(harvest.owners, harvest.non_finite(), strict=True)
            if bad
        )

    def results(self, most: int | None = None) -> list[list[Found]]:
        """Return the hypotheses of each sentence, in order, by descending score, at most ``most`` each."""
        # Of a sentence that was searched twice, the later result.
        arrays = {
            owner: result
            for harvest in self._harvests
            for owner, result in zip(harvest.owners, harvest.results(most), strict=True)
        }
        return [arrays[number] for number in range(len(arrays))]


def to_host(tensor: Tensor) -> Tensor:
    """Return a copy in the host's memory; from a GPU, it is pinned and can still be in progress."""
    if not tensor.is_cuda:
        return tensor
    host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    return host.copy_(tensor, non_blocking=True)


def _bodies(
    tokens: NDArray[np.int32],
    parents: NDArray[np.int32],
    lengths: NDArray[np.int64],
    slots: NDArray[np.int64],
) -> NDArray[np.int32]:
    """Return the tokens of hypotheses, sentences x hypotheses x longest, by following parents back from each
    last token.

    tokens, parents: sentences x positions x beam, appended tokens and the hypotheses that they extend.
    lengths: sentences x hypotheses, number of tokens.
    slots: sentences x hypotheses, beam index of the last token.
    """
    longest = tokens.shape[1]
    bodies = np.zeros((*lengths.shape, longest), np.int32)
    rows = np.arange(len(tokens))[:, None]
    for position in reversed(range(longest)):
        inside = lengths > position
        bodies[:, :, position] = np.where(inside, tokens[rows, position, slots], 0)
        slots = np.where(inside, parents[rows, position, slots], slots)
    return bodies
