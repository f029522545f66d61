"""Initial vectors from co-occurrences, against dense matrices."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch

from paraforge.base.devices import torch_threads
from paraforge.embeddings.encoders.parameters import AverageParameters
from paraforge.embeddings.trainer import initial
from paraforge.embeddings.trainer.initial import (
    SMOOTHING,
    WINDOW,
    cooccurrence_table,
    random_table,
    starting_table,
)
from paraforge.embeddings.trainer.pair_store import PairStore
from tests.embeddings.trainer.training import store_of

LEFT = ["a dog runs over the wet grass today", "the cat sleeps", "a dog sleeps", "alone", "runs runs"]
RIGHT = ["the dog ran over grass", "a cat is asleep", "once", "lonely", "it runs and the dog runs"]


def expected_gram(store: PairStore) -> np.ndarray:
    """`U S U'` of the dense matrix: what does not depend on the signs of singular vectors."""
    vocabulary = store.vocabularies["word"]
    counts = np.zeros((len(vocabulary), len(vocabulary)))
    for sentence in [*LEFT, *RIGHT]:
        for (first, left), (second, right) in combinations(enumerate(vocabulary.ids_of(sentence.split())), 2):
            if second - first <= WINDOW:
                counts[left, right] += 1 / (second - first)
                counts[right, left] += 1 / (second - first)
    counts[vocabulary.unknown_id] = counts[:, vocabulary.unknown_id] = 0
    sums = counts.sum(1)
    contexts = sums**SMOOTHING / (sums**SMOOTHING).sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        positive = np.nan_to_num(np.maximum(np.log(counts / (sums[:, None] * contexts)), 0))
    left, values, _ = np.linalg.svd(positive)
    return (left * values) @ left.T


@pytest.mark.parametrize(("block", "minimum", "alone"), [(2, 1, 4), (1000, 1, 4), (2, 2, 1)])
def test_cooccurrence_start_matches_dense_computation(
    tmp_path: Path, block: int, minimum: int, alone: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(initial, "_BLOCK", block)
    store = store_of(tmp_path, LEFT, RIGHT, minimum)
    size = len(store.vocabularies["word"])
    table = cooccurrence_table(store, "word", size + 3, seed=1).numpy()
    gram = expected_gram(store)
    near = np.diag(gram) > 1e-6
    # The unknown word, and with every word "alone", "once" and "lonely", which stand near nothing.
    assert (~near).sum() == alone
    np.testing.assert_allclose((table @ table.T)[np.ix_(near, near)], gram[np.ix_(near, near)], atol=1e-4)
    assert not table[near, size:].any()
    assert 0.3 < table[~near].std() / table[near].std() < 3


def test_truncated_start_is_exact_for_any_threads(tmp_path: Path) -> None:
    store = store_of(tmp_path, LEFT, RIGHT)
    whole = cooccurrence_table(store, "word", 12, seed=1)
    with torch_threads(2):
        table = cooccurrence_table(store, "word", 4, seed=1)
    assert table.equal(cooccurrence_table(store, "word", 4, seed=1))
    near = np.diag(expected_gram(store)) > 1e-6
    torch.testing.assert_close(table[near].abs(), whole[near, :4].abs(), atol=1e-3, rtol=1e-2)
    assert not table[near].equal(cooccurrence_table(store, "word", 4, seed=2)[near])


def test_single_word_pairs_start_at_random(tmp_path: Path) -> None:
    store = store_of(tmp_path, ["dog", "cat"], ["hound", "kitten"])
    table = cooccurrence_table(store, "word", 50, seed=1)
    assert 0.8 < float(table.std()) < 1.2
    assert not table.equal(cooccurrence_table(store, "word", 50, seed=2))
    assert not random_table(3, 50, 1.0, seed=1).equal(random_table(3, 50, 1.0, seed=2))


def test_cooccurrence_start_has_random_scale(tmp_path: Path) -> None:
    store = store_of(tmp_path, LEFT, RIGHT)
    part = AverageParameters(dimension=6, initial="cooccurrence", initial_scale=0.02, initial_frequency=0.01)
    counts = torch.from_numpy(store.counts("word"))
    weights = 0.01 / (0.01 + counts / counts.sum())
    start = starting_table(part, store, seed=3) / weights[:, None]
    assert float(start.std()) == pytest.approx(0.02, rel=1e-5)
    plain = cooccurrence_table(store, "word", 6, seed=3)
    torch.testing.assert_close(start, plain * (0.02 / plain.std()))
