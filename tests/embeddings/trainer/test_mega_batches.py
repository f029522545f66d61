"""Mega-batches: every pair once per epoch, annealed sizes, scrambling, and packing."""

from contextlib import AbstractContextManager
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from paraforge.embeddings.encoders.averages import Average
from paraforge.embeddings.trainer import mega_batches as module
from paraforge.embeddings.trainer import objective
from paraforge.embeddings.trainer import schedule as schedules
from paraforge.embeddings.trainer.mega_batches import distinct_ids, encode, scramble, sentence_identity
from paraforge.embeddings.trainer.schedule import Schedule, generator_for, spans
from tests.embeddings.trainer import oracle
from tests.embeddings.trainer.equations import bags, id_lists
from tests.embeddings.trainer.training import make_store, parameters, train

SENTENCES = st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=4), min_size=1, max_size=30)
CPU = torch.device("cpu")


@given(SENTENCES)
def test_identical_sentences_have_equal_ids(sentences: list[list[int]]) -> None:
    identity = sentence_identity(bags(sentences))
    for k, first in enumerate(sentences):
        for n, second in enumerate(sentences):
            assert (identity[k] == identity[n]) == (first == second)


def test_scrambling_shuffles_words_at_rate() -> None:
    sentences = [list(range(10 * k, 10 * k + 10)) for k in range(2000)]
    scrambled = id_lists(scramble(bags(sentences), 0.3, np.random.default_rng(1)))
    assert [sorted(sentence) for sentence in scrambled] == sentences
    share = np.mean([a != b for a, b in zip(scrambled, sentences, strict=True)])
    assert abs(share - 0.3) < 0.05
    first_places = [s[0] % 10 for s, t in zip(scrambled, sentences, strict=True) if s != t]
    assert len(set(first_places)) == 10
    assert id_lists(scramble(bags(sentences), 0.0, np.random.default_rng(1))) == sentences


@pytest.mark.parametrize("tokens", [1, 3, 5, 1000])
def test_encoding_in_parts_gives_same_vectors(monkeypatch: pytest.MonkeyPatch, tokens: int) -> None:
    sentences = [[1, 2, 3], [], [4], [0, 0, 0, 0, 0, 0, 0], [2], []]
    encoder = Average(torch.arange(10.0).reshape(5, 2))
    expected = encoder({"word": bags(sentences)})
    monkeypatch.setattr(module, "ENCODED_TOKENS", tokens)
    assert torch.equal(encode(encoder, {"word": bags(sentences)}), expected)


def test_random_streams_are_separate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each purpose, epoch and mega-batch has its own stream, so no shuffle or draw is repeated."""
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


def windows(window: int, block: int, whole: int = 1) -> AbstractContextManager[object]:
    return patch.multiple(schedules, WHOLE=whole, WINDOW=window, BLOCK=block, MEGA_BATCHES=0)


SETTINGS = st.fixed_dictionaries(
    {
        "batch_size": st.integers(1, 20),
        "mega_batch": st.integers(1, 6),
        "anneal": st.integers(0, 4),
        "seed": st.integers(0, 9),
    }
).filter(lambda one: one["batch_size"] > 1 or (one["mega_batch"] > 1 and not one["anneal"]))


@given(st.integers(2, 300), SETTINGS, st.data())
def test_mega_batches_match_definition(pairs: int, settings: dict[str, int], data: st.DataObject) -> None:
    """Two epochs are compared, with mixed mini-batches and with one source for each mini-batch."""
    sources = data.draw(st.none() | st.lists(st.integers(0, 3), min_size=pairs, max_size=pairs))
    numbers = None if sources is None else np.array(sources, dtype=np.int32)
    schedule = Schedule(pairs, **settings, sources=numbers)
    found, updates = [], 0
    for epoch in range(2):
        order, first = schedule.order(epoch)[:].tolist(), 0
        while first < pairs:
            last = schedule.end(first, updates)
            found.append([order[first:last][a:b] for a, b in spans(last - first, settings["batch_size"])])
            first, updates = last, updates + len(found[-1])
    assert found == list(oracle.schedule(pairs, epochs=2, **settings, sources=sources))


@given(st.integers(2, 300), st.integers(1, 9), st.integers(1, 80), st.integers(1, 50), st.integers(0, 3))
def test_windows_hold_shuffled_blocks(pairs: int, batch: int, window: int, block: int, epoch: int) -> None:
    with windows(window, block):
        schedule = Schedule(pairs, batch, 3, 0, seed=3)
        order = schedule.order(epoch)
        every = order[:]
        # From any place on, as a run that resumes sees it.
        for first in range(0, pairs, order.window):
            middle, last = min(first + batch, pairs - 1), first + order.window + 1
            assert schedule.order(epoch)[middle:last].tolist() == every[middle:last].tolist()
    assert sorted(every) == list(range(pairs))
    assert order.window % batch == 0
    # Slow and obvious: a window's pairs are those that the order of the blocks brings there.
    numbers = np.random.default_rng([3, 0, epoch]).permutation(-(-pairs // block))
    unmixed = [k for b in numbers.tolist() for k in range(b * block, min((b + 1) * block, pairs))]
    for first in range(0, pairs, order.window):
        last = first + order.window
        assert sorted(every[first:last]) == sorted(unmixed[first:last])


def test_windows_only_for_large_corpora() -> None:
    plain = np.random.default_rng([1, 0, 2]).permutation(100)
    schedule = Schedule(100, 10, 5, 0, seed=1)
    with windows(20, 4, whole=100):
        assert schedule.order(2)[:].tolist() == plain.tolist()
    with windows(20, 4, whole=99):
        windowed = schedule.order(2)[:]
    assert windowed.tolist() != plain.tolist()
    assert {len(set(windowed[first : first + 20] // 4)) for first in range(0, 100, 20)} == {5}


@given(st.lists(st.integers(0, 2), min_size=30, max_size=80), st.integers(2, 4))
def test_mini_batches_have_one_source(sources: list[int], batch: int) -> None:
    numbers = np.array(sources, dtype=np.int32)
    with windows(16, 5):
        order = Schedule(len(sources), batch, 1, 0, 3, numbers).order(0)
        every = order[:]
    assert sorted(every) == list(range(len(sources)))
    for first in range(0, len(sources), order.window):
        here = numbers[every[first : first + order.window]]
        whole = int((np.bincount(here) // batch).sum())
        assert all(len(set(here[k * batch : (k + 1) * batch].tolist())) == 1 for k in range(whole))


def test_window_holds_enough_mega_batches() -> None:
    """With too few, neighbors in the files met as negatives and training collapsed."""
    assert Schedule(10**8, 100, 40, 0, seed=1).order(0).window == (1 << 20) // 100 * 100
    assert Schedule(10**8, 1024, 100, 0, seed=1).order(0).window == 256 * 100 * 1024
