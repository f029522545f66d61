"""Encoders, decoders and their loss: against explicit loops, finite differences, and other batches."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from paraforge.embeddings.unrolling.network import SentencePredictor, joined
from paraforge.embeddings.unrolling.parameters import NetworkParameters
from paraforge.embeddings.unrolling.triples import TripleBatch
from tests.embeddings.unrolling import oracle
from tests.embeddings.unrolling.corpus import KINDS, bags, make_network

END = 8
TRIPLES = [
    ([1, 2, END], [3, END], [4, 4, 5, 0, END]),
    ([END], [1, 1, 2, 3, 4, END], [7, END]),
    ([0, 6, 5, END], [5, 0, END], [END]),
]


def batch_of(triples: list[tuple[list[int], list[int], list[int]]]) -> TripleBatch:
    return TripleBatch(*(bags(*sentences) for sentences in zip(*triples, strict=True)))


@pytest.mark.parametrize(("encoder", "decoder"), KINDS)
@pytest.mark.parametrize("shared", [True, False])
def test_the_loss_is_that_of_the_definitions(encoder: str, decoder: str, shared: bool) -> None:
    network = make_network(encoder, decoder, shared_output=shared)
    loss = network(batch_of(TRIPLES))
    assert loss.item() == pytest.approx(oracle.loss(network, TRIPLES), rel=1e-10)


@pytest.mark.parametrize("encoder", ["bow", "gru"])
def test_contexts_are_those_of_the_definitions(encoder: str) -> None:
    network = make_network(encoder, "gru")
    sentences = [sentence for triple in TRIPLES for sentence in triple]
    expected = [oracle.encode(network, sentence) for sentence in sentences]
    np.testing.assert_allclose(network.encode(bags(*sentences)).detach().numpy(), expected, rtol=1e-10)


@pytest.mark.parametrize(("encoder", "decoder"), KINDS)
def test_no_sentence_depends_on_its_batch(encoder: str, decoder: str) -> None:
    """The loss of a batch is the sum of its triples' losses, in any order, with any others."""
    network = make_network(encoder, decoder)
    alone = [network(batch_of([triple])).item() for triple in TRIPLES]
    for order in itertools.permutations(range(3)):
        together = network(batch_of([TRIPLES[place] for place in order]))
        assert together.item() == pytest.approx(sum(alone), rel=1e-12)
    both = network(batch_of([TRIPLES[0], TRIPLES[0]]))
    assert both.item() == pytest.approx(2 * alone[0], rel=1e-12)


@pytest.mark.parametrize(("encoder", "decoder"), KINDS)
def test_gradients_are_those_of_finite_differences(encoder: str, decoder: str) -> None:
    """In a random direction of each parameter."""
    network = make_network(encoder, decoder, word_dimension=3, state_dimension=2, shared_output=False)
    batch = batch_of(TRIPLES)
    named = dict(network.named_parameters())
    gradients = torch.autograd.grad(network(batch), list(named.values()))
    generator = torch.Generator().manual_seed(2)
    step = 1e-6
    for (name, value), gradient in zip(named.items(), gradients, strict=True):
        direction = torch.randn(value.shape, generator=generator, dtype=value.dtype)
        with torch.no_grad():
            value += step * direction
            above = network(batch).item()
            value -= 2 * step * direction
            below = network(batch).item()
            value += step * direction
        slope = float((gradient * direction).sum())
        assert (above - below) / (2 * step) == pytest.approx(slope, rel=1e-5, abs=1e-7), name


def test_sides_have_decoders_of_their_own() -> None:
    """What stands before is not predicted as what stands behind, but with bags of words of one matrix."""
    turned = [(following, current, previous) for previous, current, following in TRIPLES]
    for decoder, shared, equal in (("gru", True, False), ("bow", False, False), ("bow", True, True)):
        network = make_network("bow", decoder, shared_output=shared)
        losses = [network(batch_of(triples)).item() for triples in (TRIPLES, turned)]
        assert (losses[0] == pytest.approx(losses[1], rel=1e-12)) is equal


def test_the_start_is_uniform_and_seeded() -> None:
    parameters = NetworkParameters(encoder="gru", word_dimension=30, state_dimension=20)
    networks = [SentencePredictor(parameters, 50, seed) for seed in (1, 1, 2)]
    for name, value in networks[0].named_parameters():
        if name.endswith("bias"):
            assert not value.any()
        elif name.endswith("gain"):
            assert bool((value == 1).all())
        else:
            assert 0.06 < float(value.max().detach()) <= 0.1, name
            assert -0.1 <= float(value.min().detach()) < -0.06, name
        assert torch.equal(value, networks[1].get_parameter(name))
    assert not torch.equal(networks[0].words, networks[2].words)


def test_joined_sentences() -> None:
    both = joined([bags([1, 2], [], [3]), bags([4], [5], [6, 7])])
    assert both.ids.tolist() == [1, 2, 4, 5, 3, 6, 7]
    assert both.offsets.tolist() == [0, 3, 4, 7]
