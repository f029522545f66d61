"""Packing: scrambling, sentence identity, and encoding in parts. Mini-batches made all at once are those made
one by one."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from paraforge.embeddings.encoders.averages import Average
from paraforge.embeddings.trainer import mega_batches as module
from paraforge.embeddings.trainer import objective
from paraforge.embeddings.trainer.mega_batches import distinct_ids, encode, scramble, sentence_identity
from paraforge.embeddings.trainer.schedule import generator_for
from tests.embeddings.trainer.equations import bags, id_lists
from tests.embeddings.trainer.training import make_store, parameters, train

SENTENCES = st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=4), min_size=1, max_size=30)
CPU = torch.device("cpu")


@given(SENTENCES)
def test_identity_is_equality_of_sequences(sentences: list[list[int]]) -> None:
    identity = sentence_identity(bags(sentences))
    for k, first in enumerate(sentences):
        for n, second in enumerate(sentences):
            assert (identity[k] == identity[n]) == (first == second)


def test_scrambling_shuffles_within_sentences_at_the_rate() -> None:
    sentences = [list(range(10 * k, 10 * k + 10)) for k in range(2000)]
    scrambled = id_lists(scramble(bags(sentences), 0.3, np.random.default_rng(1)))
    assert [sorted(sentence) for sentence in scrambled] == sentences
    share = np.mean([a != b for a, b in zip(scrambled, sentences, strict=True)])
    assert abs(share - 0.3) < 0.05
    first_places = [s[0] % 10 for s, t in zip(scrambled, sentences, strict=True) if s != t]
    assert len(set(first_places)) == 10
    assert id_lists(scramble(bags(sentences), 0.0, np.random.default_rng(1))) == sentences


@pytest.mark.parametrize("tokens", [1, 3, 5, 1000])
def test_encoding_in_parts_gives_the_same_vectors(monkeypatch: pytest.MonkeyPatch, tokens: int) -> None:
    sentences = [[1, 2, 3], [], [4], [0, 0, 0, 0, 0, 0, 0], [2], []]
    encoder = Average(torch.arange(10.0).reshape(5, 2))
    expected = encoder({"word": bags(sentences)})
    monkeypatch.setattr(module, "ENCODED_TOKENS", tokens)
    assert torch.equal(encode(encoder, {"word": bags(sentences)}), expected)


def test_each_use_of_random_numbers_has_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By purpose, epoch and mega-batch: no shuffle and no draw is repeated."""
    places: list[tuple[int, ...]] = []

    def noted(seed: int, *place: int) -> np.random.Generator:
        places.append((seed, *place))
        return generator_for(seed, *place)

    for one in (module, objective):
        monkeypatch.setattr(one, "generator_for", noted)
    monkeypatch.setattr(Average, "scrambled_units", lambda _: {"word": 0.5})
    train(make_store(tmp_path), parameters(negatives="mix", epochs=3))
    assert len({*places}) == len(places) == 2 * 3 * 3  # of three mega-batches in each of three epochs


def test_distinct_ids() -> None:
    assert distinct_ids(torch.tensor([4, 1, 4, 0]), 6).tolist() == [0, 1, 4]
