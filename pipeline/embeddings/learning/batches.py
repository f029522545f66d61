"""Ragged batches of token sequences, and the look-up of their vectors. Gradients have only the rows that a
batch uses."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from paraforge.base.compiled import compiled
from paraforge.base.text.ragged import IntArray

TokenBatch = Mapping[str, "Bags"]
"""The same sentences in every unit that an encoder reads: unit name -> bags."""


@dataclass(frozen=True)
class Bags:
    """Token sequences of one unit, one after the other.

    ids: int64 (tokens,), rows of a vector table; sentence k has the tokens offsets[k] to offsets[k + 1].
    offsets: int64 (sentences + 1,), ascending from 0.
    """

    ids: Tensor
    offsets: Tensor

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def lengths(self) -> Tensor:
        """Tokens of each sentence, int64 (sentences,)."""
        return self.offsets.diff()

    @cached_property
    def sentences(self) -> Tensor:
        """The sentence of each token, int64 (tokens,)."""
        number = torch.arange(len(self), device=self.ids.device)
        return number.repeat_interleave(self.lengths, output_size=len(self.ids))

    @cached_property
    def order(self) -> Tensor:
        """The tokens sorted by id, stably, int64 (tokens,): the transposed batch that a backward pass
        needs."""
        # On a CPU, counting the ids is faster than sorting them.
        return self.compact()[0].order if self.ids.device.type == "cpu" else self.ids.argsort(stable=True)

    def select(self, indices: Tensor) -> Bags:
        """Return the sentences with these numbers (any order, repeats allowed), on a CPU."""
        return Bags(*map(torch.from_numpy, _select(self.ids.numpy(), self.offsets.numpy(), indices.numpy())))

    def between(self, first: int, last: int) -> Bags:
        """Return the sentences first to last (exclusive), on the same memory."""
        offsets = self.offsets[first : last + 1]
        return Bags(self.ids[int(offsets[0]) : int(offsets[-1])], offsets - offsets[0])

    def compact(self) -> tuple[Bags, Tensor]:
        """Return the same sentences with ids that are indices of the distinct ids, and the distinct ids,
        ascending; on a CPU."""
        ids, distinct, order, row_offsets = map(torch.from_numpy, _compact(self.ids.numpy()))
        compacted = Bags(ids, self.offsets)
        compacted.__dict__.update(order=order, row_offsets=row_offsets)
        return compacted, distinct

    @cached_property
    def row_offsets(self) -> Tensor:
        """Where each distinct row starts in `order`, int64 (rows + 1,); precomputed in a compacted batch."""
        return offsets_of(torch.bincount(self.ids))

    def to(self, device: torch.device | str) -> Bags:
        """Return the same batch on another device, with the properties computed so far."""
        moved = copy(self)
        moved.__dict__.update(
            {name: tensor.to(device, non_blocking=True) for name, tensor in vars(self).items()}
        )
        return moved


@compiled
def _select(ids: IntArray, offsets: IntArray, indices: IntArray) -> tuple[IntArray, IntArray]:
    """Return the ids of the sentences with these numbers, and their offsets."""
    selected_offsets = np.zeros(len(indices) + 1, np.int64)
    for place, sentence in enumerate(indices):
        length = offsets[sentence + 1] - offsets[sentence]
        selected_offsets[place + 1] = selected_offsets[place] + length
    selected = np.empty(selected_offsets[-1], np.int64)
    for place, sentence in enumerate(indices):
        tokens = ids[offsets[sentence] : offsets[sentence + 1]]
        selected[selected_offsets[place] : selected_offsets[place + 1]] = tokens
    return selected, selected_offsets


@compiled
def _compact(ids: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return the index of each token's id among the distinct ids; the distinct ids, ascending; the tokens
    sorted by id, stably; and where each distinct id starts among these, followed by their number."""
    size = ids.max() + 1 if len(ids) else 0
    counts = np.zeros(size, np.int64)
    for word in ids:
        counts[word] += 1
    distinct = np.flatnonzero(counts)
    starts = np.zeros(len(distinct) + 1, np.int64)
    for number, word in enumerate(distinct):
        starts[number + 1] = starts[number] + counts[word]
        counts[word] = number  # no longer needed as a count
    numbers, order = counts[ids], np.empty(len(ids), np.int64)
    following = starts[:-1].copy()
    for token, number in enumerate(numbers):
        order[following[number]] = token
        following[number] += 1
    return numbers, distinct, order, starts


def offsets_of(lengths: Tensor) -> Tensor:
    """Return 0 and the running totals of lengths, int64, one longer than lengths."""
    offsets = torch.zeros(len(lengths) + 1, dtype=torch.int64, device=lengths.device)
    torch.cumsum(lengths, 0, out=offsets[1:])
    return offsets


def _row_gradient(token_source: Tensor, gradient: Tensor, bags: Bags, rows: int) -> Tensor:
    """Sum for every row the gradient vectors of its tokens: a look-up over the transposed batch.

    Each row is summed by one thread in a fixed order: no atomics. token_source: int64 (tokens,), rows of
    `gradient`.
    """
    offsets = bags.row_offsets
    if len(offsets) - 1 < rows:  # rows after the last one that occurs
        offsets = torch.cat([offsets, offsets[-1:].expand(rows - len(offsets) + 1)])
    source = token_source[bags.order]
    return F.embedding_bag(source, gradient, offsets, mode="sum", include_last_offset=True)


class _BagMean(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, bags: Bags) -> Tensor:
        ctx.bags = bags
        ctx.rows = len(rows)
        ctx.scale = bags.lengths.clamp(min=1).to(rows.dtype).reciprocal_().unsqueeze(1)
        total = F.embedding_bag(bags.ids, rows, bags.offsets, mode="sum", include_last_offset=True)
        return total.mul_(ctx.scale)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return _row_gradient(ctx.bags.sentences, gradients[0] * ctx.scale, ctx.bags, ctx.rows), None


class _TakeRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, bags: Bags) -> Tensor:
        ctx.bags = bags
        ctx.rows = len(rows)
        return rows[bags.ids]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        tokens = torch.arange(len(ctx.bags.ids), device=ctx.bags.ids.device)
        return _row_gradient(tokens, gradients[0].contiguous(), ctx.bags, ctx.rows), None


def bag_mean(rows: Tensor, bags: Bags) -> Tensor:
    """Return the mean of each sentence's vectors (W16 Eq. 1), (sentences, dimension); zeros for a sentence
    without tokens.

    rows: (rows, dimension), the table that `bags.ids` refer to.
    """
    return _BagMean.apply(rows, bags)  # type: ignore[no-untyped-call]  # torch has no types for Function.apply


def take_rows(rows: Tensor, bags: Bags) -> Tensor:
    """Return the vector of every token, (tokens, dimension), in the order of `bags.ids`."""
    return _TakeRows.apply(rows, bags)  # type: ignore[no-untyped-call]  # torch has no types for Function.apply
