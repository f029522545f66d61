"""A gated recurrent unit with layer normalisation (Cho et al. 2014; Ba et al. 2016, Eq. 26-28), over packed
sentences."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class LayerNormGru(nn.Module):
    """For input x and state h, with N a layer normalisation with gain and bias of its own each time:

    (z; r) = s(N(W x) + N(U h)),  c = tanh(N(V x) + r * N(T h)),  h' = (1 - z) h + z c.

    z and r are normalised together. W and V are the rows of `input_weight`, U and T of `state_weight`:
    (3 state_dimension, dimension), first those of z and r.
    """

    def __init__(self, input_dimension: int, state_dimension: int) -> None:
        super().__init__()
        self.state_dimension = state_dimension
        self.input_weight = nn.Parameter(torch.empty(3 * state_dimension, input_dimension))
        self.state_weight = nn.Parameter(torch.empty(3 * state_dimension, state_dimension))
        self.input_gain = nn.Parameter(torch.ones(3 * state_dimension))
        self.state_gain = nn.Parameter(torch.ones(3 * state_dimension))
        self.input_bias = nn.Parameter(torch.zeros(3 * state_dimension))
        self.state_bias = nn.Parameter(torch.zeros(3 * state_dimension))

    def forward(self, inputs: Tensor, batch_sizes: Sequence[int], state: Tensor) -> Tensor:
        """States of every token, (tokens, state_dimension), in packed order.

        inputs: (tokens, input_dimension): all first tokens, then all second ones, ..., of sentences by
            falling length. batch_sizes: sentences that have a t-th token.
        state: (sentences, state_dimension), what each begins with, in the same order.
        """
        states = []
        for part in self.project(inputs).split(list(batch_sizes)):
            state = self.step(part, state[: len(part)])
            states.append(state)
        return torch.cat(states)

    def project(self, inputs: Tensor) -> Tensor:
        """The share of inputs, (rows, 3 state_dimension); it does not depend on any state."""
        return self._normalised(F.linear(inputs, self.input_weight), self.input_gain, self.input_bias)

    def step(self, projected: Tensor, state: Tensor) -> Tensor:
        """The next states, (rows, state_dimension), of what `project` gives and of the states before, of that
        shape."""
        size = 2 * self.state_dimension
        recurrent = self._normalised(F.linear(state, self.state_weight), self.state_gain, self.state_bias)
        gates = torch.sigmoid(projected[:, :size] + recurrent[:, :size])
        update, reset = gates.chunk(2, dim=1)
        candidate = torch.tanh(projected[:, size:] + reset * recurrent[:, size:])
        return torch.lerp(state, candidate, update)

    def _normalised(self, values: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
        """(rows, 3 state_dimension): both gates together, and the candidate."""
        size = 2 * self.state_dimension
        parts = [
            F.layer_norm(values[:, part], (values[:, part].shape[1],), gain[part], bias[part])
            for part in (slice(None, size), slice(size, None))
        ]
        return torch.cat(parts, dim=1)
