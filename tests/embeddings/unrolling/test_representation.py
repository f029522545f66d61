"""Unrolling: step by step by hand, for every number of steps."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from paraforge.embeddings.unrolling.network import (
    compare,
    dimension_of,
    of_states,
    represent,
    unrolled,
)
from paraforge.embeddings.unrolling.parameters import (
    DecodersParameters,
    NetworkParameters,
    RepresentationParameters,
)
from tests.embeddings.unrolling import oracle
from tests.embeddings.unrolling.corpus import bags, make_network

SENTENCES = [[3, 8], [1, 1, 2, 5, 8], [8], [7, 0, 8]]


@pytest.mark.parametrize("encoder", ["bow", "gru"])
@pytest.mark.parametrize("shared", [True, False])
def test_states_are_those_of_the_definition(encoder: str, shared: bool) -> None:
    network = make_network(encoder, "gru", shared_output=shared)
    with torch.no_grad():
        states = unrolled(network, network.encode(bags(*SENTENCES)), 4).numpy()
    expected = np.array([oracle.unroll(network, sentence, 4) for sentence in SENTENCES])
    assert states.shape == (4, 2, 4, network.context_dimension)
    np.testing.assert_allclose(states, expected, rtol=1e-9)


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_vectors_are_the_first_states(steps: int) -> None:
    """Side by side, so that the dot product is the sum of those of the states; or their mean."""
    network = make_network("gru", "gru")
    hand = np.array([oracle.unroll(network, sentence, 5) for sentence in SENTENCES])[:, :, :steps]
    for kind, expected in (("unrolled", hand.reshape(4, -1)), ("mean", hand.mean((1, 2)))):
        representation = RepresentationParameters.model_validate({"kind": kind, "steps": steps})
        with torch.no_grad():
            vectors = represent(network, bags(*SENTENCES), representation)
            longer = unrolled(network, network.encode(bags(*SENTENCES)), 5)
        np.testing.assert_allclose(vectors.numpy(), expected, rtol=1e-9)
        np.testing.assert_allclose(of_states(longer, representation).numpy(), expected, rtol=1e-9)
        assert vectors.shape[1] == dimension_of(network.architecture, representation)
    dots = compare(hand.reshape(4, -1)[:2], hand.reshape(4, -1)[2:], RepresentationParameters(steps=steps))
    sums = [
        sum((hand[k, d, s] * hand[k + 2, d, s]).sum() for d in (0, 1) for s in range(steps)) for k in (0, 1)
    ]
    np.testing.assert_allclose(dots, sums, rtol=1e-9)


def test_the_context_is_the_encoders_output() -> None:
    network = make_network("bow", "gru")
    representation = RepresentationParameters(kind="context")
    with torch.no_grad():
        vectors = represent(network, bags(*SENTENCES), representation)
    expected = [oracle.encode(network, sentence) for sentence in SENTENCES]
    np.testing.assert_allclose(vectors.numpy(), expected, rtol=1e-12)
    assert dimension_of(network.architecture, representation) == vectors.shape[1] == 5


def test_dot_product_and_cosine() -> None:
    left = np.array([[1, 2], [0, 0], [3, 4]], dtype=np.float32)
    right = np.array([[2, -1], [1, 1], [6, 8]], dtype=np.float32)
    assert compare(left, right, RepresentationParameters()).tolist() == [0, 0, 50]
    cosines = compare(left, right, RepresentationParameters(similarity="cosine"))
    np.testing.assert_allclose(cosines, [0, 0, 1], atol=1e-6)


def test_a_bag_of_words_is_read_by_its_context() -> None:
    """It has no states, and its objective is about the context (DD 3.2)."""
    bow = NetworkParameters(decoder="bow")
    assert DecodersParameters(network=bow).reading.kind == "context"
    assert str(DecodersParameters().reading) == "unrolled:3"
    with pytest.raises(ValueError, match="no states to unroll"):
        DecodersParameters(network=bow, representation=RepresentationParameters(kind="mean"))
