"""The choice of the best epoch, and the network's equations."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from paraforge.embeddings.evaluation.transfer.relatedness import SigmoidSoftmax, best_epoch, expected_score


@pytest.mark.parametrize(
    ("scores", "patience", "expected", "trained"),
    [
        ([1, 3, 2, 2, 9], 2, (3, 2), 4),  # two epochs without gain: the 9 is never seen
        ([1, 3, 2, 4, 4], 2, (4, 4), 5),  # the first of equals
        ([None, float("nan"), 2], 3, (2, 3), 3),
        ([None, None], 5, (-np.inf, 1), 2),
        ([5, 4, 3], 1, (5, 1), 2),
    ],
)
def test_the_best_epoch_is_kept(
    scores: list[float | None], patience: int, expected: tuple[float, int], trained: int
) -> None:
    done: list[int] = []
    kept, score, epoch = best_epoch(
        lambda: done.append(1), lambda: scores[len(done) - 1], lambda: len(done), len(scores), patience
    )
    assert (score, epoch) == expected
    assert kept == epoch
    assert len(done) == trained


def test_the_network_is_the_papers() -> None:
    """W16 Eq. 12, one pair and one class at a time."""
    network = SigmoidSoftmax(6, 4, 5, torch.Generator().manual_seed(1)).double()
    pairs = torch.randn(3, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    weights = {name: value.detach().numpy() for name, value in network.named_parameters()}
    expected = []
    for pair in pairs.numpy():
        hidden = [
            1 / (1 + np.exp(-sum(w * x for w, x in zip(row, pair, strict=True)) - bias))
            for row, bias in zip(weights["hidden.weight"], weights["hidden.bias"], strict=True)
        ]
        logits = [
            sum(w * h for w, h in zip(row, hidden, strict=True)) + bias
            for row, bias in zip(weights["output.weight"], weights["output.bias"], strict=True)
        ]
        total = sum(np.exp(logit) for logit in logits)
        expected.append([np.exp(logit) / total for logit in logits])
    found = network(pairs)
    np.testing.assert_allclose(found.detach().exp(), expected, rtol=1e-12)
    scores = [sum((i + 1) * p for i, p in enumerate(row)) for row in expected]  # y = r^T p
    np.testing.assert_allclose(expected_score(found), scores, rtol=1e-12)
