"""All that a batch's search knows, as tensors that a step changes in place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import torch
from torch import Tensor

# Tensors of a state: dimension that counts sentences, and dimension that counts target positions, if any.
_DIMENSIONS: dict[str, tuple[int | None, int | None]] = {
    "memory": (2, None),
    "memory_mask": (0, None),
    "cache": (2, 4),
    "origin": (0, 2),
    "tokens": (0, 1),
    "parents": (0, 1),
    "history": (0, 2),
    "position": (None, None),
    "previous": (0, None),
    "total": (0, None),
    "cap": (0, None),
    "prefix": (0, None),
    "prefix_length": (0, None),
    "seed": (0, None),
    "done_score": (0, None),
    "done_slot": (0, None),
    "done_length": (0, None),
    "done_ended": (0, None),
    "done_count": (0, None),
    "finished": (0, None),
    "non_finite": (0, None),
}


@dataclass(frozen=True)
class Shape:
    """Sizes of a state.

    Attributes:
        batch: sentences.
        beam: hypotheses of a sentence that are followed at a time.
        groups: of the beam.
        source: source positions.
        capacity: target positions that there is room for.
        prefix: target positions that may be forced.
        history: whether the tokens so far are kept at hand (for the repetition guard).
        layers, heads, head_width: of the decoder.
    """

    batch: int
    beam: int
    groups: int
    source: int
    capacity: int
    prefix: int
    history: bool
    layers: int
    heads: int
    head_width: int


@dataclass
class SearchState:
    """The search of a batch between two steps.

    Attributes:
        memory: layers x 2 x batch x heads x source x head width, keys and values of the encoder's output.
        memory_mask: batch x 1 x 1 x source, added to attention logits.
        cache: layers x 2 x batch x heads x capacity x beam x head width; written once a position.
        origin: batch x beam x capacity, in which place of the beam each position of a hypothesis was written;
            -1 where nothing is.
        tokens, parents: batch x capacity x beam, what was appended at a position and to which hypothesis.
        history: batch x beam x (capacity + 1) tokens of each hypothesis, the first one included; or nothing.
        position: 1, of the next token.
        previous: batch x beam, last token.
        total: batch x beam, sum of log-probabilities; minus infinity where no hypothesis is.
        cap: batch, most tokens of a hypothesis.
        prefix, prefix_length: batch x prefix, batch: tokens to begin with.
        seed: batch, of random numbers.
        done_score: batch x (beam + 1), of finished hypotheses in the order of their finding, group by group;
            the last place is for what is not kept.
        done_slot, done_length, done_ended: likewise: place of the beam where the last token before
            end-of-sentence is, number of tokens before it, and whether it came.
        done_count: batch x groups.
        finished: batch, whether a sentence needs no more steps.
        non_finite: batch, whether a probability of a sentence was not a number.
    """

    shape: Shape
    memory: Tensor
    memory_mask: Tensor
    cache: Tensor
    origin: Tensor
    tokens: Tensor
    parents: Tensor
    history: Tensor
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
        """The tensors by name."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "shape"}


Allocate = Callable[[Shape], SearchState]


def new_state(shape: Shape, device: torch.device, dtype: torch.dtype) -> SearchState:
    """A state in which nothing has happened and nothing is set.

    Args:
        shape: its sizes.
        device: where.
        dtype: of keys and values.
    """
    batch, beam, capacity = shape.batch, shape.beam, shape.capacity
    places = beam + 1

    def whole(*sizes: int) -> Tensor:
        return torch.zeros(sizes, dtype=torch.int64, device=device)

    def real(*sizes: int) -> Tensor:
        return torch.zeros(sizes, dtype=dtype, device=device)

    def yes_or_no(*sizes: int) -> Tensor:
        return torch.zeros(sizes, dtype=torch.bool, device=device)

    return SearchState(
        shape=shape,
        memory=real(shape.layers, 2, batch, shape.heads, shape.source, shape.head_width),
        memory_mask=real(batch, 1, 1, shape.source),
        # Zeros, not what was in memory: a probability of 0 times NaN is NaN.
        cache=real(shape.layers, 2, batch, shape.heads, capacity, beam, shape.head_width),
        origin=whole(batch, beam, capacity) - 1,
        tokens=whole(batch, capacity, beam),
        parents=whole(batch, capacity, beam),
        history=whole(batch, beam, capacity + 1 if shape.history else 0),
        position=whole(1),
        previous=whole(batch, beam),
        total=torch.full((batch, beam), -torch.inf, device=device),
        cap=whole(batch),
        prefix=whole(batch, max(1, shape.prefix)),
        prefix_length=whole(batch),
        seed=whole(batch),
        done_score=torch.full((batch, places), -torch.inf, device=device),
        done_slot=whole(batch, places),
        done_length=whole(batch, places),
        done_ended=yes_or_no(batch, places),
        done_count=whole(batch, shape.groups),
        finished=yes_or_no(batch),
        non_finite=yes_or_no(batch),
    )


def resized(state: SearchState, rows: Tensor | None, shape: Shape, allocate: Allocate) -> SearchState:
    """A state with chosen sentences and other room, everything else as it was.

    Args:
        state: to take from; unchanged.
        rows: the sentences to take, one for each of ``shape.batch``; None for all.
        shape: of the new state, with no less capacity.
        allocate: gives a state of that shape; what is in it is overwritten.
    """
    other = allocate(shape)
    for name, source in state.tensors().items():
        sentences, positions = _DIMENSIONS[name]
        target = getattr(other, name)
        if positions is not None:
            if target.shape[positions] > source.shape[positions]:
                target.fill_(-1 if name == "origin" else 0)
            target = target.narrow(positions, 0, source.shape[positions])
        if rows is None or sentences is None:
            target.copy_(source)
        else:
            target.copy_(source.index_select(sentences, rows))
    return other
