"""The LSTM of Wieting 2016: peepholes, last state, with or without output gate (Eq. 5-10)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from paraforge.embeddings.encoders.packing import pack
from paraforge.embeddings.encoders.parameters import VectorParameters
from paraforge.embeddings.encoders.protocol import TableEncoder
from paraforge.embeddings.learning.batches import TokenBatch


class LstmLastParameters(VectorParameters):
    """LSTM with peepholes, last state, with or without output gate (W16 Eq. 5-10)."""

    kind: Literal["lstm_last"] = "lstm_last"
    output_dimension: int = Field(300, ge=1, description="of the state")
    output_gate: bool = Field(True, description="without one the state is tanh of the cell")

    def network(self, table: Tensor) -> LastStateLstm:
        """The network with these dimensions."""
        return LastStateLstm(table, self.unit, self.output_dimension, self.output_gate)


class LastStateLstm(TableEncoder):
    """Gates see the cell through peepholes (Gers 2003), which are diagonal; without output gate `h_t =
    tanh(c_t)`.

    weight_input, weight_state: for the gates i, f, the cell, and o where there is one, one below the other.
    """

    def __init__(self, table: Tensor, unit: str, output_dimension: int, output_gate: bool = True) -> None:
        super().__init__(table, unit)
        self.dimension = output_dimension
        self.output_gate = output_gate
        gates = 4 if output_gate else 3
        self.weight_input = nn.Parameter(table.new_empty(gates * output_dimension, table.shape[1]))
        self.weight_state = nn.Parameter(table.new_empty(gates * output_dimension, output_dimension))
        self.bias = nn.Parameter(table.new_empty(gates * output_dimension))
        self.peephole_input = nn.Parameter(table.new_empty(output_dimension))
        self.peephole_forget = nn.Parameter(table.new_empty(output_dimension))
        if output_gate:
            self.peephole_output = nn.Parameter(table.new_empty(output_dimension))

    def extra_repr(self) -> str:
        """For the fingerprint of a training run."""
        return f"output_gate={self.output_gate}"

    def start(self, bound: float, generator: torch.Generator) -> None:
        """The forget gate's bias is 1, or the last state would know the last words alone: a full stop."""
        super().start(bound, generator)
        with torch.no_grad():
            self.bias[self.dimension : 2 * self.dimension] = 1

    def forward(self, batch: TokenBatch, tables: Mapping[str, Tensor] | None = None) -> Tensor:
        """(sentences, output dimension); 0 for a sentence without tokens."""
        bags = batch[self.unit]
        sentences = pack(bags)
        inputs = nn.functional.linear(sentences.vectors(self.rows(tables)).data, self.weight_input, self.bias)
        states = []
        state = cell = inputs.new_zeros(len(bags), self.dimension)
        for current in inputs.split(sentences.batch_sizes.tolist()):
            active = len(current)
            state, cell = self._step(current, state[:active], cell[:active])
            states.append(state)
        if not states:
            return state
        return sentences.last(torch.cat(states))

    def _step(self, inputs: Tensor, state: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        parts = (inputs + state @ self.weight_state.T).chunk(4 if self.output_gate else 3, dim=1)
        input_gate = torch.sigmoid(parts[0] + self.peephole_input * cell)
        forget_gate = torch.sigmoid(parts[1] + self.peephole_forget * cell)
        cell = forget_gate * cell + input_gate * torch.tanh(parts[2])
        state = torch.tanh(cell)
        if self.output_gate:
            state = torch.sigmoid(parts[3] + self.peephole_output * cell) * state
        return state, cell
