"""The rules of a search, and all that it knows of a batch, as tensors that a step changes in place, and the
memory that they share."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace

import torch
from torch import Tensor

from paraforge.translation.decoding.translator import VarietySettings


@dataclass(frozen=True)
class Rules:
    """Rules of a search.

    beam: hypotheses of a sentence that are followed at a time.
    length_penalty: a hypothesis' score is its log-probability / length ** length_penalty.
    start: the decoder's first input. end: end-of-sentence. banned: types that no hypothesis has.
    free: this many first tokens of a forced prefix (language tags) are no part of score and length.
    settings: what else the user chose.
    """

    beam: int
    length_penalty: float
    start: int
    end: int
    banned: tuple[int, ...]
    free: int = 0
    settings: VarietySettings = field(default_factory=VarietySettings)

    @property
    def shortest(self) -> int:
        """Tokens before end-of-sentence, at least: as in fairseq a hypothesis is more than its end."""
        return self.free + 1

    @property
    def sampling(self) -> bool:
        """Whether hypotheses are drawn."""
        return self.settings.method == "sampling"


# What is too small is replaced by something larger than is needed now, so that it is seldom replaced.
_GROWTH = 1.25


class Arena:
    """One stretch of memory for each tensor of a state.

    A recorded step reads and writes fixed addresses. With a state of its own for each shape, memory would
    grow with the number of shapes, of which each may have gigabytes; here it is that of the largest.

    generation: counts how often memory was replaced: addresses of an earlier one mean nothing.
    """

    def __init__(self, device: torch.device, dtype: torch.dtype) -> None:
        """Memory on a device; none yet.

        dtype: of keys and values.
        """
        self._device, self._dtype = device, dtype
        self._stretches: dict[str, Tensor] = {}
        self.generation = 0

    def state(self, shape: Shape) -> SearchState:
        """Return a state of a shape, for :func:`~paraforge.translation.torch_search.state.blank` or
        ``resized``. It uses the memory of the last one; what was in it may be there still."""
        tensors = {}
        for name, (sizes, kind) in layout(shape, self._dtype).items():
            tensors[name] = self._stretch(name, math.prod(sizes), kind).view(sizes)
        return SearchState(shape, **tensors)

    def _stretch(self, name: str, count: int, kind: torch.dtype) -> Tensor:
        there = self._stretches.get(name)
        if there is None or len(there) < count:
            size = count if there is None else max(count, int(_GROWTH * len(there)))
            self._stretches[name] = there = torch.empty(size, dtype=kind, device=self._device)
            self.generation += 1
        return there[:count]

    def free(self) -> None:
        """Give the memory back."""
        self._stretches.clear()
        self.generation += 1


# What is in a tensor where nothing is; 0 but for these.
_NOTHING: dict[str, float] = {"total": -math.inf, "done_score": -math.inf, "origin": -1}


@dataclass(frozen=True)
class Shape:
    """Sizes of a state.

    batch: sentences. beam: hypotheses of a sentence that are followed at a time. groups: of the beam.
    source: source positions. capacity: target positions that there is room for.
    prefix: target positions that may be forced.
    layers, heads, head_width: of the decoder.
    """

    batch: int
    beam: int
    groups: int
    source: int
    capacity: int
    prefix: int
    layers: int
    heads: int
    head_width: int


@dataclass
class SearchState:
    """The search of a batch between two steps.

    memory: layers x 2 x batch x heads x source x head width, keys and values of the encoder's output.
    memory_mask: batch x 1 x 1 x source, added to attention logits.
    cache: layers x 2 x batch x heads x capacity x beam x head width; written once a position.
    origin: batch x beam x capacity, in which place of the beam each position of a hypothesis was written; -1
        where nothing is.
    tokens, parents: batch x capacity x beam, what was appended at a position and to which hypothesis.
    position: 1, of the next token. previous: batch x beam, last token.
    total: batch x beam, sum of log-probabilities; minus infinity where no hypothesis is.
    cap: batch, most tokens of a hypothesis.
    prefix, prefix_length: batch x prefix, batch: tokens to begin with. seed: batch, of random numbers.
    done_score: batch x (beam + 1), of finished hypotheses in the order of their finding, group by group; the
        last place is for what is not kept.
    done_slot, done_length, done_ended: likewise: place of the beam where the last token before
        end-of-sentence is, number of tokens before it, and whether it came.
    done_count: batch x groups. finished: batch, whether a sentence needs no more steps.
    non_finite: batch, whether a probability of a sentence was not a number.
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
    seed: Tensor
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
    """Sizes and type of each tensor of a state.

    shape: sizes of the state. dtype: of keys and values.
    """
    batch, beam, capacity, places = shape.batch, shape.beam, shape.capacity, shape.beam + 1
    whole, real, flag = torch.int64, torch.float32, torch.bool
    keys = (shape.layers, 2, batch, shape.heads)
    return {
        "memory": ((*keys, shape.source, shape.head_width), dtype),
        "memory_mask": ((batch, 1, 1, shape.source), dtype),
        "cache": ((*keys, capacity, beam, shape.head_width), dtype),
        "origin": ((batch, beam, capacity), whole),
        "tokens": ((batch, capacity, beam), whole),
        "parents": ((batch, capacity, beam), whole),
        "position": ((1,), whole),
        "previous": ((batch, beam), whole),
        "total": ((batch, beam), real),
        "cap": ((batch,), whole),
        "prefix": ((batch, max(1, shape.prefix)), whole),
        "prefix_length": ((batch,), whole),
        "seed": ((batch,), whole),
        "done_score": ((batch, places), real),
        "done_slot": ((batch, places), whole),
        "done_length": ((batch, places), whole),
        "done_ended": ((batch, places), flag),
        "done_count": ((batch, shape.groups), whole),
        "finished": ((batch,), flag),
        "non_finite": ((batch,), flag),
    }


_ONE = Shape(batch=1, beam=1, groups=1, source=1, capacity=1, prefix=1, layers=1, heads=1, head_width=1)


def _growing(larger: Shape) -> dict[str, int]:
    """Of each tensor the dimension that is longer in a larger shape than in :data:`_ONE`, if one is."""
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
    """Return a state in which nothing has happened and nothing is set.

    dtype: of keys and values.
    """
    tensors = {
        name: torch.empty(sizes, dtype=kind, device=device)
        for name, (sizes, kind) in layout(shape, dtype).items()
    }
    return blank(SearchState(shape, **tensors))


def blank(state: SearchState) -> SearchState:
    """Make a state, which may have been used before, one in which nothing has happened and nothing is set."""
    for name, tensor in state.tensors().items():
        # Zeros, not what was in memory, where nothing is yet: a probability of 0 times NaN is NaN.
        tensor.fill_(_NOTHING.get(name, 0))
    return state


def resized(state: SearchState, rows: Tensor | None, shape: Shape, allocate: Allocate) -> SearchState:
    """Return a state with chosen sentences and other room, everything else as it was.

    state: to take from; unchanged, unless ``allocate`` gives the same memory.
    rows: the sentences to take, one for each of ``shape.batch``; None for all.
    shape: of the new state, with no less capacity.
    allocate: gives a state of that shape; what is in it is overwritten. It may be in ``state``'s memory, if
        each of its tensors begins where the tensor of the same name begins.
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
