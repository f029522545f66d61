"""Our LSTM on the CPU against torch's, in double precision: states and all gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from paraforge.embeddings.encoders.lstm import packed_lstm

INPUT, STATE = 5, 4


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("sizes", [[1], [4, 4, 2, 1], [3, 1, 1, 1, 1], [6]], ids=str)
def test_states_and_gradients_are_torchs(sizes: list[int], reverse: bool) -> None:
    torch.manual_seed(1)
    cell = nn.LSTM(INPUT, STATE, bidirectional=True, dtype=torch.float64)
    suffix = "_reverse" if reverse else ""
    weights = [getattr(cell, f"{name}_l0{suffix}") for name in ("weight_ih", "weight_hh", "bias_ih")]
    nn.init.zeros_(getattr(cell, f"bias_hh_l0{suffix}"))
    inputs = torch.randn(sum(sizes), INPUT, dtype=torch.float64, requires_grad=True)
    wanted = torch.randn(sum(sizes), STATE, dtype=torch.float64)

    def gradients(states: Tensor) -> tuple[Tensor, ...]:
        return torch.autograd.grad((states * wanted).sum(), [inputs, *weights])

    both = cell(PackedSequence(inputs, torch.tensor(sizes)))[0].data
    expected = both[:, STATE:] if reverse else both[:, :STATE]
    states = packed_lstm(inputs, sizes, *weights, reverse)
    torch.testing.assert_close(states, expected)
    for ours, torchs in zip(gradients(states), gradients(expected), strict=True):
        torch.testing.assert_close(ours, torchs)


def test_products_in_bfloat16_are_close() -> None:
    torch.manual_seed(1)
    sizes = [7, 7, 3]
    inputs = torch.randn(sum(sizes), INPUT, requires_grad=True)
    weights = [torch.randn(4 * STATE, INPUT), torch.randn(4 * STATE, STATE), torch.randn(4 * STATE)]
    exact = packed_lstm(inputs, sizes, *weights)
    rough = packed_lstm(inputs, sizes, *weights, products=torch.bfloat16)
    assert rough.dtype == torch.float32
    torch.testing.assert_close(rough, exact, atol=0.05, rtol=0)
    (gradient,) = torch.autograd.grad(rough.sum(), [inputs])
    (expected,) = torch.autograd.grad(exact.sum(), [inputs])
    torch.testing.assert_close(gradient, expected, atol=0.2, rtol=0)
