"""Optimizers against torch's, and deferred updates of rows."""

from typing import Any

import numpy as np
import pytest
import torch

from paraforge.embeddings.learning import optimizers
from paraforge.embeddings.learning.optimizers import AdaGrad, Adam, Optimizer, clip_

ROWS, DIMENSION, STEPS = 12, 3, 60


def _plan(seed: int, share: float) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """For every step the touched rows and their gradient."""
    generator = torch.Generator().manual_seed(seed)
    plan = []
    for _ in range(STEPS):
        rows = (torch.rand(ROWS, generator=generator) < share).nonzero().squeeze(1)
        rows = rows if len(rows) else torch.tensor([0])
        plan.append((rows, torch.randn(len(rows), DIMENSION, dtype=torch.float64, generator=generator)))
    return plan


def _run(optimizer: Optimizer, plan: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
    for rows, gradient in plan:
        optimizer.begin_step()
        optimizer.write_rows("table", rows, optimizer.read_rows("table", rows), gradient)
    optimizer.synchronize()


def _reference(table: torch.Tensor, kind: str, plan: list[tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
    parameter = table.clone().requires_grad_()
    theirs: torch.optim.Optimizer
    if kind == "adam":
        theirs = torch.optim.Adam([parameter], lr=0.01)
    else:
        theirs = torch.optim.Adagrad([parameter], lr=0.05)
    for rows, gradient in plan:
        sparse = torch.sparse_coo_tensor(
            rows.unsqueeze(0), gradient, tuple(table.shape), check_invariants=True
        ).coalesce()
        parameter.grad = sparse.to_dense()
        theirs.step()
    return parameter.detach()


def _table() -> torch.Tensor:
    return torch.randn(ROWS, DIMENSION, dtype=torch.float64, generator=torch.Generator().manual_seed(9))


@pytest.mark.parametrize("share", [0.05, 0.4, 1.0])
@pytest.mark.parametrize(("kind", "tolerance"), [("adagrad", 1e-12), ("adam", 1e-6)])
def test_sparse_adam_steps_match_dense(kind: str, tolerance: float, share: float) -> None:
    table, plan = _table(), _plan(3, share)
    expected = _reference(table, kind, plan)
    named = {"table": table}
    _run(AdaGrad(named, 0.05) if kind == "adagrad" else Adam(named, named, 0.01), plan)
    torch.testing.assert_close(table, expected, rtol=0, atol=tolerance)


def test_deferred_adam_differs_only_by_epsilon() -> None:
    # A word vector's gradient is about 1e-3 an element; at 1e-4, eps is 0.3 % of sqrt(v) after one step.
    table = _table()
    plan = [(rows, gradient * 1e-4) for rows, gradient in _plan(3, 0.05)]
    start = table.clone()
    expected = _reference(table, "adam", plan)
    _run(Adam({"table": table}, ["table"], 0.01), plan)
    moved = (expected - start).abs().max()
    assert (table - expected).abs().max() < 0.01 * moved


def test_refreshing_rows_early_changes_nothing() -> None:
    plan = _plan(4, 0.2)
    results = []
    for refresh in (False, True):
        table = _table()
        optimizer = Adam({"table": table}, ["table"], 0.01)
        for step, (rows, gradient) in enumerate(plan):
            optimizer.begin_step()
            optimizer.write_rows("table", rows, optimizer.read_rows("table", rows), gradient)
            if refresh and step % 3 == 0:
                optimizer.refresh("table", torch.tensor([0, 5, 7]))
        optimizer.synchronize()
        results.append(table)
    torch.testing.assert_close(results[0], results[1], rtol=1e-9, atol=1e-12)


def test_optimizer_on_gpu_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU, rows are copied even if they missed no step and do not change."""
    results = []
    for compiled in (True, False):
        monkeypatch.setattr(optimizers, "_is_compiled", lambda _, compiled=compiled: compiled)
        table, plan = _table(), _plan(3, 0.4)
        optimizer = Adam({"table": table}, ["table"], 0.01)
        _run(optimizer, plan)
        before = [table.clone(), *(value.clone() for value in optimizer.state.values())]
        optimizer.refresh("table", torch.arange(ROWS))
        results.append([table, *optimizer.state.values()])
        assert all(map(torch.equal, before, results[-1]))
    for compiled_one, copied in zip(*results, strict=True):
        torch.testing.assert_close(compiled_one, copied, rtol=1e-12, atol=1e-15)


def test_float32_rows_keep_precision() -> None:
    table = _table().float()
    plan = [(rows, gradient.float()) for rows, gradient in _plan(3, 0.4)]
    expected = _reference(table.clone(), "adam", plan)
    optimizer = Adam({"table": table}, ["table"], 0.01)
    _run(optimizer, plan)
    assert all(value.dtype in (torch.float32, torch.int64) for value in optimizer.state.values())
    torch.testing.assert_close(table, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_compiled_steps_match_numpy_exactly(kind: type[np.floating[Any]]) -> None:
    """A constant of another precision would widen the sums, and fused multiply-adds would change bits."""
    generator = np.random.default_rng(3)
    rows = np.array([4, 1, 9])
    table, mean, gradient = (
        generator.standard_normal((size, 50)).astype(kind) for size in (ROWS, ROWS, len(rows))
    )
    square = generator.random((ROWS, 50)).astype(kind)
    lasts, until = np.array([1, 4, 3, 5, 7, 7, 6, 2, 4, 2, 0, 1]), 7
    tails, powers = generator.random(until + 1), generator.random((3, until + 1))
    moved, caught_up = ([one.copy() for one in (table, mean, square)] for _ in range(2))
    numbers = optimizers._scalars(torch.from_numpy(table), 0.1, 0.999, 0.001, 0.01, 0.3, 1e-8)
    new_mean, old_square, new_square, rate, correction, epsilon = numbers
    moved.append(lasts.copy())
    caught_up.append(lasts.copy())
    optimizers._move_rows(*moved, rows, gradient, 8, *numbers)
    optimizers._catch_rows_up(*caught_up, rows, tails, powers, until, rate, epsilon)
    was, mean_was, square_was = table[rows], mean[rows], square[rows]
    mean_is = mean_was + new_mean * (gradient - mean_was)
    square_is = old_square * square_was + new_square * gradient * gradient
    step = rate * mean_is / (np.sqrt(square_is) / correction + epsilon)
    for found, expected in zip(moved, (was - step, mean_is, square_is, np.full(3, 8)), strict=True):
        assert np.array_equal(found[rows], expected)
    rows = rows[1:]  # 4 missed no step
    was, mean_was, square_was, last = table[rows], mean[rows], square[rows], lasts[rows]
    factor = (tails[last] - powers[0, until - last] * tails[until]).astype(kind)
    first, second = powers[1:, until - last].astype(kind)
    step = (rate * factor)[:, None] * mean_was / (np.sqrt(square_was) + epsilon)
    expected_rows = (was - step, first[:, None] * mean_was, second[:, None] * square_was, [until, until])
    for found, expected, before in zip(caught_up, expected_rows, (table, mean, square, lasts), strict=True):
        assert np.array_equal(found[rows], expected)
        assert np.array_equal(np.delete(found, rows, 0), np.delete(before, rows, 0))


@pytest.mark.parametrize("kind", ["adam", "adagrad"])
def test_whole_parameters(kind: str) -> None:
    everything = torch.arange(ROWS)
    gradients = [gradient for _, gradient in _plan(5, 1.0)]
    table = _table()
    expected = _reference(table, kind, [(everything, gradient) for gradient in gradients])
    ours: Optimizer = (
        Adam({"bias": table}, learning_rate=0.01) if kind == "adam" else AdaGrad({"bias": table}, 0.05)
    )
    for gradient in gradients:
        ours.begin_step()
        ours.update("bias", gradient)
    torch.testing.assert_close(table, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", ["adam", "adagrad"])
def test_gradient_layout_does_not_matter(kind: str) -> None:
    """torch's fused Adam reads a transposed gradient in the order of its memory."""
    gradient = torch.randn(3, 4, generator=torch.Generator().manual_seed(2)).T
    weights = []
    for given in (gradient, gradient.contiguous()):
        weight = torch.zeros(4, 3)
        named = {"weight": weight}
        optimizer: Optimizer = Adam(named) if kind == "adam" else AdaGrad(named)
        optimizer.begin_step()
        optimizer.update("weight", given)
        weights.append(weight)
    assert torch.equal(*weights)
    assert (weights[0].sign() == -gradient.sign()).all()


def test_only_longer_gradients_are_clipped() -> None:
    gradients = torch.tensor([3.0]), torch.tensor([[4.0]])
    for largest, expected in ((6.0, (3, 4)), (2.5, (1.5, 2))):
        clip_(gradients, largest)
        assert tuple(gradient.item() for gradient in gradients) == pytest.approx(expected)
