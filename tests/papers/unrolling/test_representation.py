"""The network against its equations; unrolling by hand."""

import itertools

import numpy as np
import pytest
import torch

from paraforge.base.text.vocabulary import Vocabulary
from paraforge.papers.unrolling.model import DecoderModel
from paraforge.papers.unrolling.network import SentencePredictor, represent, unroll
from paraforge.papers.unrolling.parameters import NetworkParameters, RepresentationParameters
from paraforge.papers.unrolling.triples import END as END_WORD
from paraforge.papers.unrolling.triples import TripleBatch
from tests.papers.unrolling import oracle
from tests.papers.unrolling.corpus import KINDS, bags, make_network

SENTENCES = [[3, 8], [1, 1, 2, 5, 8], [8], [7, 0, 8]]


@pytest.mark.parametrize("encoder", ["bow", "gru"])
def test_decoder_states_match_definition(encoder: str) -> None:
    network = make_network(encoder, "gru")
    with torch.no_grad():
        states = unroll(network, network.encode(bags(*SENTENCES)), 4).numpy()
    expected = np.array([oracle.unroll(network, sentence, 4) for sentence in SENTENCES])
    assert states.shape == (4, 2, 4, network.architecture.context_dimension)
    np.testing.assert_allclose(states, expected, rtol=1e-9)


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_vectors_are_first_states(steps: int) -> None:
    """States are concatenated, so the dot product is the sum of the states' dot products; or they are
    averaged.
    """
    network = make_network("gru", "gru")
    hand = np.array([oracle.unroll(network, sentence, 5) for sentence in SENTENCES])[:, :, :steps]
    for kind, expected in (("unrolled", hand.reshape(4, -1)), ("mean", hand.mean((1, 2)))):
        representation = RepresentationParameters.model_validate({"kind": kind, "steps": steps})
        with torch.no_grad():
            vectors = represent(network, bags(*SENTENCES), representation)
        np.testing.assert_allclose(vectors.numpy(), expected, rtol=1e-9)
        model = DecoderModel.of_network(network, Vocabulary([*"abcdefgh", END_WORD], "a"), representation)
        assert vectors.shape[1] == model.dimension
        if kind == "unrolled":
            states = list(itertools.product((0, 1), range(steps)))
            sums = [sum((hand[k, d, s] * hand[k + 2, d, s]).sum() for d, s in states) for k in (0, 1)]
            dots = model.similarity_of_vectors(expected[:2], expected[2:])
            np.testing.assert_allclose(dots, sums, rtol=1e-9)


END = 8
TRIPLES = [
    ([1, 2, END], [3, END], [4, 4, 5, 0, END]),
    ([END], [1, 1, 2, 3, 4, END], [7, END]),
    ([0, 6, 5, END], [5, 0, END], [END]),
]


def batch_of(triples: list[tuple[list[int], list[int], list[int]]]) -> TripleBatch:
    return TripleBatch(*(bags(*sentences) for sentences in zip(*triples, strict=True)))


@pytest.mark.parametrize(("encoder", "decoder"), KINDS)
def test_decoder_loss_matches_definition(encoder: str, decoder: str) -> None:
    network = make_network(encoder, decoder)
    loss = network(batch_of(TRIPLES))
    assert loss.item() == pytest.approx(oracle.loss(network, TRIPLES), rel=1e-10)


@pytest.mark.parametrize(("encoder", "decoder"), KINDS)
def test_states_do_not_depend_on_batch(encoder: str, decoder: str) -> None:
    """The loss of a batch is the sum of the losses of its triples, in any order and beside any others."""
    network = make_network(encoder, decoder)
    alone = [network(batch_of([triple])).item() for triple in TRIPLES]
    for order in itertools.permutations(range(3)):
        together = network(batch_of([TRIPLES[place] for place in order]))
        assert together.item() == pytest.approx(sum(alone), rel=1e-12)
    both = network(batch_of([TRIPLES[0], TRIPLES[0]]))
    assert both.item() == pytest.approx(2 * alone[0], rel=1e-12)


@pytest.mark.parametrize(("encoder", "decoder"), KINDS)
def test_decoder_gradients_match_finite_differences(encoder: str, decoder: str) -> None:
    """Each parameter is moved in a random direction."""
    network = make_network(encoder, decoder, word_dimension=3, state_dimension=2)
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


def test_decoder_start_is_uniform_and_seeded() -> None:
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
