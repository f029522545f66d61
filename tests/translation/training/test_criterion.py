"""The blockwise loss is fairseq's loss."""

from __future__ import annotations

import pytest
import torch

from paraforge.translation.training import criterion
from paraforge.translation.training.criterion import blockwise_label_smoothed_loss

PADDING = 1


def oracle(
    features: torch.Tensor, weight: torch.Tensor, target: torch.Tensor, epsilon: float
) -> tuple[torch.Tensor, torch.Tensor]:
    from fairseq.criterions.label_smoothed_cross_entropy import label_smoothed_nll_loss

    log_probabilities = torch.log_softmax(features @ weight.t(), dim=-1)
    loss, nll = label_smoothed_nll_loss(log_probabilities, target, epsilon, ignore_index=PADDING)
    return loss, nll


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
@pytest.mark.parametrize("rows", [1, 7, 128, 300])
def test_loss_and_gradients_are_fairseqs(rows: int, epsilon: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(criterion, "ROWS_PER_BLOCK", 64)
    torch.manual_seed(rows)
    features = torch.randn(rows, 12, dtype=torch.float64).float().requires_grad_()
    weight = torch.randn(40, 12).requires_grad_()
    target = torch.randint(0, 40, (rows,))
    target[::5] = PADDING
    loss, nll = blockwise_label_smoothed_loss(features, weight, target, epsilon, PADDING)
    (2.5 * loss).backward()
    gradients = [features.grad, weight.grad]
    features.grad = weight.grad = None
    expected_loss, expected_nll = oracle(features, weight, target, epsilon)
    (2.5 * expected_loss).backward()
    torch.testing.assert_close(loss, expected_loss)
    torch.testing.assert_close(nll, expected_nll)
    torch.testing.assert_close(gradients, [features.grad, weight.grad], rtol=1e-4, atol=1e-5)
    assert not nll.requires_grad


def test_padding_has_no_gradient() -> None:
    features = torch.randn(4, 8, requires_grad=True)
    target = torch.tensor([3, PADDING, 4, PADDING])
    loss, _ = blockwise_label_smoothed_loss(features, torch.randn(10, 8), target, 0.1, PADDING)
    loss.backward()
    assert features.grad is not None
    assert features.grad[1].abs().max() == 0
    assert features.grad[0].abs().max() > 0


def test_bfloat16_is_near() -> None:
    torch.manual_seed(2)
    features, weight = torch.randn(200, 32), torch.randn(90, 32) * 0.2
    target = torch.randint(2, 90, (200,))
    exact, _ = blockwise_label_smoothed_loss(features, weight, target, 0.1, PADDING)
    narrow, _ = blockwise_label_smoothed_loss(features, weight, target, 0.1, PADDING, torch.bfloat16)
    assert abs(narrow - exact) / exact < 2e-3
