"""Candidates against the obvious way of having them."""

from __future__ import annotations

import math

import pytest
import torch

from paraforge.translation.torch_search.scores import best_candidates, force


@pytest.mark.parametrize("beam", [1, 3, 12])
@pytest.mark.parametrize("vocabulary", [64, 320, 8064])
def test_candidates_are_those_of_a_sort_of_everything(beam: int, vocabulary: int) -> None:
    dice = torch.Generator().manual_seed(beam)
    scores = torch.log_softmax(3 * torch.randn(5, beam, vocabulary, generator=dice), 2)
    total = -10 * torch.rand(5, beam, generator=dice)
    total[0, 1:] = -math.inf
    scores[1, 0, :40] = -math.inf
    count = 2 * beam
    sums, hypotheses, tokens = best_candidates(scores, total, count)
    flat = (scores + total.unsqueeze(2)).view(5, -1)
    expected = flat.topk(count)
    assert torch.equal(sums, expected.values)
    assert torch.equal(hypotheses * vocabulary + tokens, expected.indices)


def test_what_is_not_a_number_is_no_candidate() -> None:
    scores = torch.log_softmax(torch.randn(2, 2, 64), 2)
    scores[0, 0] = math.nan
    scores[1, 1, 5] = math.nan
    sums, hypotheses, _ = best_candidates(scores, torch.zeros(2, 2), 4)
    assert not sums.isnan().any()
    assert (hypotheses[0] == 1).all()


def test_forcing_leaves_one_token_where_there_is_one_and_everything_elsewhere() -> None:
    scores = torch.log_softmax(torch.randn(3, 2, 64), 2)
    before = scores.clone()
    prefix = torch.tensor([[7, 9], [8, 0], [0, 0]])
    force(scores, prefix, torch.tensor([2, 1, 0]), torch.tensor([1]), free=0)
    assert torch.equal(scores[1:], before[1:])
    assert torch.equal(scores[0, :, 9], before[0, :, 9])
    assert (scores[0].isfinite().sum(1) == 1).all()
