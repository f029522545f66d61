"""The loss over the vocabulary: against sums over words, with its gradient."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from paraforge.embeddings.learning.batches import Bags
from paraforge.embeddings.unrolling import likelihood
from paraforge.embeddings.unrolling.likelihood import SampledWords, negative_log_likelihood, sample_words
from tests.embeddings.unrolling.corpus import bags

WORDS = bags([1, 1, 3], [6], [0, 2, 2, 2], [5])


def inputs() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    shapes = ((4, 3), (7, 3), (7,))
    states, weight, bias = (
        torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_() for shape in shapes
    )
    return states, weight, bias


def by_hand(states: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    total = torch.zeros((), dtype=torch.float64)
    for row, sentence in enumerate(([1, 1, 3], [6], [0, 2, 2, 2], [5])):
        logits = [weight[word] @ states[row] + bias[word] for word in range(7)]
        normaliser = sum(logit.exp() for logit in logits).log()  # type: ignore[union-attr]
        for word in sentence:
            total = total + normaliser - logits[word]
    return total


@pytest.mark.parametrize("elements", [1, 7, 14, 21, 1000])
def test_it_is_the_sum_over_words(monkeypatch: pytest.MonkeyPatch, elements: int) -> None:
    """However many rows are held at once."""
    monkeypatch.setattr(likelihood, "_CHUNK_ELEMENTS", elements)
    given = inputs()
    value, expected = negative_log_likelihood(*given, WORDS), by_hand(*given)
    torch.testing.assert_close(value, expected)
    for found, wanted in zip(
        torch.autograd.grad(3 * value, given), torch.autograd.grad(3 * expected, given), strict=True
    ):
        torch.testing.assert_close(found, wanted)
    with torch.no_grad():
        torch.testing.assert_close(negative_log_likelihood(*given, WORDS), expected)


def test_its_gradient_is_that_of_finite_differences() -> None:
    assert torch.autograd.gradcheck(lambda *given: negative_log_likelihood(*given, WORDS), inputs())


def test_large_logits_do_not_overflow() -> None:
    states, weight, bias = inputs()
    value = negative_log_likelihood(1e4 * states, weight, bias, WORDS)
    gradients = torch.autograd.grad(value, (states, weight, bias))
    assert all(bool(torch.isfinite(item).all()) for item in (value, *gradients))


def test_bfloat16_products_are_near() -> None:
    generator = torch.Generator().manual_seed(1)
    states = torch.randn(4, 64, generator=generator).requires_grad_()
    weight = (0.1 * torch.randn(7, 64, generator=generator)).requires_grad_()
    bias = torch.zeros(7, requires_grad=True)
    exact = negative_log_likelihood(states, weight, bias, WORDS)
    near = negative_log_likelihood(states, weight, bias, WORDS, torch.bfloat16)
    assert near.dtype == torch.float32
    assert near.item() != exact.item()
    torch.testing.assert_close(near, exact, rtol=0.01, atol=0)
    for found, wanted in zip(
        torch.autograd.grad(near, (states, weight, bias)),
        torch.autograd.grad(exact, (states, weight, bias)),
        strict=True,
    ):
        assert float((found - wanted).norm() / wanted.norm()) < 0.02


def sampled_value(words: SampledWords) -> Tensor:
    states, weight, bias = inputs()
    some = Bags(words.numbers(WORDS.ids, 7), WORDS.offsets)
    return negative_log_likelihood(states, weight[words.ids], bias[words.ids] + words.correction, some)


@pytest.mark.parametrize("count", [2, 3, 100])
def test_all_other_words_give_the_exact_loss(count: int) -> None:
    """Five of seven words are predicted: with two others nothing is left out."""
    words = sample_words(WORDS.ids, 7, count, np.random.default_rng(1))
    assert sorted(words.ids.tolist()) == list(range(7))
    torch.testing.assert_close(sampled_value(words), by_hand(*inputs()))


def test_the_normaliser_is_estimated_without_bias() -> None:
    generator = torch.Generator().manual_seed(2)
    logits = torch.randn(40, generator=generator, dtype=torch.float64)
    predicted = torch.tensor([3, 17, 3])
    sums = []
    for seed in range(4000):
        words = sample_words(predicted, 40, 6, np.random.default_rng(seed))
        assert words.ids[:2].tolist() == [3, 17] and len(set(words.ids.tolist())) == 8
        sums.append((logits[words.ids] + words.correction).exp().sum())
    estimate = torch.stack(sums)
    error = float(estimate.std()) / len(sums) ** 0.5
    assert float(estimate.mean()) == pytest.approx(float(logits.exp().sum()), abs=5 * error)


def test_a_vocabulary_of_nothing_but_predicted_words() -> None:
    words = sample_words(torch.arange(7), 7, 5, np.random.default_rng(1))
    assert words.ids.tolist() == list(range(7)) and not words.correction.any()
