"""The search against slow oracles on tiny random models."""

import dataclasses
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraforge.translation.torch_search.search import Pace, Search
from tests.translation.torch_search.random_weights import (
    all_hypotheses,
    random_weights,
    rules,
    same,
    scored_alone,
    search,
    sentences,
)

WEIGHTS = random_weights()
MANY = sentences(40)


@pytest.mark.parametrize("length_penalty", [0.0, 1.0, 1.4])
@pytest.mark.parametrize("pre_norm", [False, True])
def test_full_beam_finds_best_hypothesis(length_penalty: float, pre_norm: bool) -> None:
    vocabulary, cap = 6, 4  # four tokens beside padding and end: 4 + 16 + 64 that end, 256 that are cut
    weights = random_weights(vocabulary, pre_norm=pre_norm, layers=1)
    wide = search(weights, 340, length_penalty=length_penalty)
    for request in sentences(3, seed=4, cap=cap):
        expected = all_hypotheses(weights, request, vocabulary, length_penalty)
        (result,) = wide.find([request]).results()
        assert len(result) == len(expected) == 340
        for found, (score, tokens, ended) in zip(result[:20], expected, strict=False):
            assert found.score == pytest.approx(score, abs=1e-5)
            assert (found.tokens, found.ended) == (tokens, ended)


@given(st.lists(st.integers(0, 39), min_size=1, max_size=12), st.sampled_from([1, 3]))
def test_translation_does_not_depend_on_batch(places: list[int], beam: int) -> None:
    chosen = [MANY[place] for place in places]
    same(
        search(WEIGHTS, beam).find(chosen).results(),
        [search(WEIGHTS, beam).find([one]).results()[0] for one in chosen],
    )


VARIED = [dataclasses.replace(one, cap=2 + number % 9) for number, one in enumerate(MANY)]


@pytest.fixture(scope="module", params=[1, 4])
def plain(request: pytest.FixtureRequest) -> tuple[int, list[Any]]:
    """A beam, and what it finds at the usual pace, within the cap of each sentence."""
    found = Search(WEIGHTS, rules(request.param)).find(VARIED).results()
    scored_alone(WEIGHTS, VARIED, found)
    return request.param, found


@pytest.mark.parametrize(
    "pace",
    [
        pytest.param(Pace(look_every=1, keep=1.0), id="gather at once"),
        pytest.param(Pace(look_every=5, keep=0.0), id="never gather"),
        pytest.param(Pace(room=1), id="grow at every step"),
        pytest.param(Pace(look_every=3, keep=0.5, room=2, doubling=True), id="as on a GPU"),
        pytest.param(
            Pace(look_every=2, keep=0.75, doubling=True, batch_sizes=(4, 16, 64), source_multiple=8),
            id="few shapes",
        ),
    ],
)
def test_synchronization_and_shapes_change_nothing(pace: Pace, plain: tuple[int, list[Any]]) -> None:
    beam, found = plain
    same(Search(WEIGHTS, rules(beam), pace).find(VARIED).results(), found)


def test_forced_prefix_begins_hypotheses_and_is_scored() -> None:
    forced = [dataclasses.replace(one, prefix=(5, 3)) for one in MANY[:6]]
    mixed = [forced[0], MANY[1], dataclasses.replace(MANY[2], prefix=(4,))]
    results = search(WEIGHTS, 4).find(forced).results()
    assert {found.tokens[:2] for result in results for found in result} == {(5, 3)}
    scored_alone(WEIGHTS, forced, results)
    same(
        search(WEIGHTS, 4).find(mixed).results(),
        [search(WEIGHTS, 4).find([one]).results()[0] for one in mixed],
    )


def test_tags_are_forced_and_not_scored() -> None:
    tagged = [dataclasses.replace(one, prefix=(6,)) for one in MANY[:6]]
    results = search(WEIGHTS, 4, free=1).find(tagged).results()
    assert all(found.tokens[0] == 6 and len(found.tokens) > 1 for result in results for found in result)
    scored_alone(WEIGHTS, tagged, results, free=1)


def test_only_requested_hypotheses_are_converted() -> None:
    found, better = search(WEIGHTS, 4).find(MANY[:3]), search(WEIGHTS, 2).find(MANY[3:4])
    whole = [found.results()[0], better.results()[0], found.results()[2]]
    assert [len(one) for one in whole] == [4, 2, 4]
    replaced = found.replaced([1], better)
    assert replaced.results(1) == [one[:1] for one in whole]


def test_nan_weights_are_detected() -> None:
    broken = random_weights()
    broken.decoder[1].feed_forward.outer.weight.fill_(math.nan)
    assert search(broken, 3).find(MANY[:5]).non_finite() == list(range(5))
    assert search(WEIGHTS, 3).find(MANY[:5]).non_finite() == []
