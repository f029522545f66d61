"""LSTM and BLSTM of ParaNMT-50M: mean or maximum of the hidden states, with scrambling in training (its
sections 4 and A.2)."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from paraforge.embeddings.encoders.packing import in_full_precision, pack
from paraforge.embeddings.encoders.parameters import LstmParameters
from paraforge.embeddings.encoders.protocol import TableEncoder
from paraforge.embeddings.learning.batches import TokenBatch


class PooledLstm(TableEncoder):
    """One LSTM layer; of two directions the states are averaged or put side by side, then pooled."""

    def __init__(self, table: Tensor, parameters: LstmParameters) -> None:
        super().__init__(table, parameters.unit)
        size, self.bidirectional = parameters.output_dimension, parameters.kind == "blstm"
        self.side_by_side = self.bidirectional and parameters.directions == "concatenation"
        self.dimension = 2 * size if self.side_by_side else size
        self.scramble = parameters.scramble
        self.pooling = parameters.pooling
        self.cell = nn.LSTM(table.shape[1], size, bidirectional=self.bidirectional)

    def extra_repr(self) -> str:
        """For the fingerprint of a training run."""
        others = "" if self.pooling == "mean" else f", pooling={self.pooling}"
        return f"scramble={self.scramble}{others}" + (", concatenation" if self.side_by_side else "")

    def forward(self, batch: TokenBatch, tables: Mapping[str, Tensor] | None = None) -> Tensor:
        """(sentences, output dimension); 0 for a sentence without tokens."""
        sentences = pack(batch[self.unit])
        if not sentences:
            return self.table.new_zeros(len(batch[self.unit]), self.dimension)
        vectors = sentences.vectors(self.rows(tables))
        if self.table.device.type == "cpu":
            directions = self._directions(vectors)
        else:
            directions = list(in_full_precision(self.cell, vectors).split(self.cell.hidden_size, dim=1))
        if self.side_by_side:
            states = torch.cat(directions, dim=1)
        else:
            states = directions[0] if len(directions) == 1 else (directions[0] + directions[1]) / 2
        return sentences.maximum(states) if self.pooling == "max" else sentences.mean(states)

    def _directions(self, vectors: PackedSequence) -> list[Tensor]:
        """The states that `self.cell` gives, forward and backward, faster than torch does it on a CPU."""
        sizes = vectors.batch_sizes.tolist()
        products = torch.bfloat16 if torch.is_autocast_enabled("cpu") else None
        directions = []
        for suffix in ("", "_reverse")[: 1 + self.bidirectional]:
            weight_input, weight_state, bias_input, bias_state = (
                getattr(self.cell, f"{name}_l0{suffix}")
                for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            )
            bias = bias_input + bias_state
            directions.append(
                packed_lstm(vectors.data, sizes, weight_input, weight_state, bias, suffix != "", products)
            )
        return directions


_Step = tuple[slice, slice | None]
"""Rows of a step; and of those, as rows of the step that it follows, how many continue: None at the start."""


def packed_lstm(
    inputs: Tensor,
    batch_sizes: list[int],
    weight_input: Tensor,
    weight_state: Tensor,
    bias: Tensor,
    reverse: bool = False,
    products: torch.dtype | None = None,
) -> Tensor:
    """Hidden states of every token, (tokens, H), in packed order; the first state and cell are 0.

    inputs: (tokens, dimension), all first tokens, then all second ones, ..., of sentences by falling length.
        batch_sizes: sentences that have a t-th token.
    weight_input: (4 H, dimension), weight_state: (4 H, H), bias: (4 H,); gates in torch's order.
    reverse: from each sentence's last token to its first. products: type of matrix products, e.g. bfloat16.
    """
    return _PackedLstm.apply(inputs, batch_sizes, weight_input, weight_state, bias, reverse, products)  # type: ignore[no-untyped-call]  # of torch


def _steps(batch_sizes: list[int], reverse: bool) -> list[_Step]:
    """Rows of each step in order, and of the step before those that they continue; a sentence that joins
    starts at 0."""
    starts = [0]
    for size in batch_sizes:
        starts.append(starts[-1] + size)
    rows = [slice(first, last) for first, last in pairwise(starts)]
    if reverse:
        rows.reverse()
    steps: list[_Step] = []
    for before, current in zip([None, *rows], rows, strict=False):
        if before is None:
            steps.append((current, None))
        else:
            going_on = min(before.stop - before.start, current.stop - current.start)
            steps.append((current, slice(before.start, before.start + going_on)))
    return steps


def _product(first: Tensor, second: Tensor, products: torch.dtype | None) -> Tensor:
    if products is None or products == first.dtype:
        return first @ second
    return (first.to(products) @ second.to(products)).to(first.dtype)


class _PackedLstm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        inputs: Tensor,
        batch_sizes: list[int],
        weight_input: Tensor,
        weight_state: Tensor,
        bias: Tensor,
        reverse: bool,
        products: torch.dtype | None,
    ) -> Tensor:
        size = weight_state.shape[1]
        with torch.autocast("cpu", enabled=False):
            gates = _product(inputs, weight_input.T, products).add_(bias)
            transposed = weight_state.T.contiguous()
            if products is not None:
                transposed = transposed.to(products)
            states, cells = inputs.new_empty(len(inputs), size), inputs.new_empty(len(inputs), size)
            tanh_cells = inputs.new_empty(len(inputs), size)
            steps = _steps(batch_sizes, reverse)
            for rows, before in steps:
                gate, cell = gates[rows], cells[rows]
                if before is not None:
                    part = gate[: before.stop - before.start]
                    if products is None:
                        part.addmm_(states[before], transposed)
                    else:
                        part.add_(states[before].to(products) @ transposed)
                gate[:, : 2 * size].sigmoid_()
                gate[:, 2 * size : 3 * size].tanh_()
                gate[:, 3 * size :].sigmoid_()
                into, forget, candidate, out = gate.chunk(4, dim=1)
                torch.mul(into, candidate, out=cell)
                if before is not None:
                    going_on = before.stop - before.start
                    cell[:going_on].addcmul_(forget[:going_on], cells[before])
                torch.tanh(cell, out=tanh_cells[rows])
                torch.mul(out, tanh_cells[rows], out=states[rows])
        ctx.save_for_backward(inputs, weight_input, weight_state, gates, states, cells, tanh_cells)
        ctx.steps = steps
        ctx.products = products
        return states

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        inputs, weight_input, weight_state, gates, states, cells, tanh_cells = ctx.saved_tensors
        products: torch.dtype | None = ctx.products
        steps: list[_Step] = ctx.steps
        size = weight_state.shape[1]
        d_states = gradients[0].clone()
        d_cells = torch.zeros_like(d_states)
        d_gates = torch.empty_like(gates)
        before_states = torch.zeros_like(states)
        weight = weight_state if products is None else weight_state.to(products)
        for rows, before in reversed(steps):
            into, forget, candidate, out = gates[rows].chunk(4, dim=1)
            d_into, d_forget, d_candidate, d_out = d_gates[rows].chunk(4, dim=1)
            d_state, d_cell, tanh_cell = d_states[rows], d_cells[rows], tanh_cells[rows]
            # d tanh(c) / d c = 1 - tanh(c)^2, d sigmoid(x) / d x = s (1 - s)
            flow = d_state * out
            d_cell.add_(flow).addcmul_(flow, tanh_cell.square(), value=-1)
            torch.mul(d_state, tanh_cell, out=d_out)
            torch.mul(d_cell, candidate, out=d_into)
            torch.mul(d_cell, into, out=d_candidate)
            d_forget.zero_()
            if before is not None:
                going_on = before.stop - before.start
                torch.mul(d_cell[:going_on], cells[before], out=d_forget[:going_on])
                torch.mul(d_cell[:going_on], forget[:going_on], out=d_cells[before])
                before_states[rows][:going_on] = states[before]
            gate, d_gate = gates[rows], d_gates[rows]
            for part in (slice(0, 2 * size), slice(3 * size, 4 * size)):
                share = gate[:, part]
                d_gate[:, part].mul_(share - share.square())
            d_gate[:, 2 * size : 3 * size].mul_(1 - candidate.square())
            if before is not None:
                d_states[before].add_(
                    d_gate[:going_on] @ weight
                    if products is None
                    else d_gate[:going_on].to(products) @ weight
                )
        return (
            _product(d_gates, weight_input, products),
            None,
            _product(d_gates.T, inputs, products),
            _product(d_gates.T, before_states, products),
            d_gates.sum(0),
            None,
            None,
        )
