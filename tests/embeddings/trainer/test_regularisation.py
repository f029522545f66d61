"""The penalties of Wieting 2016 Eq. 11: gradients against autograd of their value."""

from __future__ import annotations

import torch

from paraforge.embeddings.trainer.objective import Regularisation


def test_gradients_are_those_of_the_value() -> None:
    generator = torch.Generator().manual_seed(1)
    table, initial, weight, anchored, anchor = (
        torch.randn(5, 3, dtype=torch.float64, generator=generator) for _ in range(5)
    )
    penalty = Regularisation(0.3, 0.7, {"table": initial}, {"anchored": anchor})
    for value in (table, weight, anchored):
        value.requires_grad_()
    total = 0.3 * (table - initial).square().sum()
    total = total + 0.7 * (weight.square().sum() + (anchored - anchor).square().sum())
    composition = {"weight": weight, "anchored": anchored}
    assert penalty.value({"table": table}, composition) == float(total.detach())
    total.backward()

    with torch.no_grad():
        rows = torch.tensor([0, 2, 4])
        gradient = torch.ones(3, 3, dtype=torch.float64)
        penalty.add_row_gradient("table", rows, table[rows], gradient)
        torch.testing.assert_close(gradient, 1 + table.grad[rows])
        for name, value in composition.items():
            gradient = torch.ones(5, 3, dtype=torch.float64)
            penalty.add_gradient(name, value, gradient)
            torch.testing.assert_close(gradient, 1 + value.grad)


def test_no_penalty_by_default() -> None:
    gradient = torch.ones(2, 2)
    Regularisation().add_gradient("weight", torch.ones(2, 2), gradient)
    Regularisation().add_row_gradient("table", torch.tensor([0, 1]), torch.ones(2, 2), gradient)
    assert torch.equal(gradient, torch.ones(2, 2))
