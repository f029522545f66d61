"""The search against slow oracles on tiny random models, and what must not change its results."""

import dataclasses
import math
from collections import Counter
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from paraforge.translation.decoding.translator import VarietySettings
from paraforge.translation.torch_search.search import Pace, Request, Search
from paraforge.translation.torch_search.selection import draw, sentence_seed, uniform
from tests.translation.torch_search.random_weights import (
    END,
    all_hypotheses,
    random_weights,
    rules,
    same,
    scored_alone,
    search,
    sentences,
    token_scores,
)

WEIGHTS = random_weights()
MANY = sentences(40)


@pytest.mark.parametrize("length_penalty", [0.0, 1.0, 1.4])
@pytest.mark.parametrize("pre_norm", [False, True])
def test_a_beam_that_holds_everything_finds_the_best_hypothesis_of_all(
    length_penalty: float, pre_norm: bool
) -> None:
    vocabulary, cap = 6, 4  # four tokens beside padding and end: 4 + 16 + 64 that end, 256 that are cut
    weights = random_weights(vocabulary, pre_norm=pre_norm, layers=1)
    wide = search(weights, 340, length_penalty=length_penalty)
    for request in sentences(3, seed=4, cap=cap):
        expected = all_hypotheses(weights, request, vocabulary, length_penalty)
        (result,) = wide.run([request])
        assert len(result) == len(expected) == 340
        for found, (score, tokens, ended) in zip(result[:20], expected, strict=False):
            assert found.score == pytest.approx(score, abs=1e-5)
            assert (found.tokens, found.ended) == (tokens, ended)


def test_the_score_of_a_hypothesis_is_that_of_its_tokens_alone() -> None:
    results = search(WEIGHTS, 4).run(MANY[:8])
    scored_alone(WEIGHTS, MANY[:8], results)
    for request, result in zip(MANY, results, strict=False):
        assert all(found.ended or len(found.tokens) == request.cap for found in result)


@given(st.lists(st.integers(0, 39), min_size=1, max_size=12), st.sampled_from([1, 3]))
def test_a_translation_does_not_depend_on_the_sentences_beside_it(places: list[int], beam: int) -> None:
    chosen = [MANY[place] for place in places]
    same(search(WEIGHTS, beam).run(chosen), [search(WEIGHTS, beam).run([one])[0] for one in chosen])


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
@pytest.mark.parametrize("beam", [1, 4])
def test_pace_and_shapes_change_nothing(pace: Pace, beam: int) -> None:
    varied = [dataclasses.replace(one, cap=2 + number % 9) for number, one in enumerate(MANY)]
    plain = Search(WEIGHTS, rules(beam))
    same(Search(WEIGHTS, rules(beam), pace).run(varied), plain.run(varied))


def test_a_state_may_be_used_again() -> None:
    kept: dict[object, object] = {}
    plain = search(WEIGHTS, 3)

    def allocate(shape: Any) -> Any:
        return kept.setdefault(shape, plain.new_state(shape))

    pace = Pace(look_every=2, keep=0.75, batch_sizes=(4, 16, 64), source_multiple=8)
    reusing = Search(WEIGHTS, rules(3), pace, allocate)
    expected = plain.run(MANY)
    for _ in range(3):
        same(reusing.run(MANY), expected)
        same(reusing.run(MANY[::-1]), expected[::-1])


def test_caps_are_kept_sentence_by_sentence() -> None:
    varied = [dataclasses.replace(one, cap=1 + number % 5) for number, one in enumerate(MANY)]
    scored_alone(WEIGHTS, varied, search(WEIGHTS, 4).run(varied))


def test_a_forced_prefix_begins_every_hypothesis_and_is_scored() -> None:
    forced = [dataclasses.replace(one, prefix=(5, 3)) for one in MANY[:6]]
    mixed = [forced[0], MANY[1], dataclasses.replace(MANY[2], prefix=(4,))]
    results = search(WEIGHTS, 4).run(forced)
    assert {found.tokens[:2] for result in results for found in result} == {(5, 3)}
    scored_alone(WEIGHTS, forced, results)
    same(search(WEIGHTS, 4).run(mixed), [search(WEIGHTS, 4).run([one])[0] for one in mixed])


def test_tags_are_forced_and_are_no_part_of_the_score() -> None:
    tagged = [dataclasses.replace(one, prefix=(6,)) for one in MANY[:6]]
    results = search(WEIGHTS, 4, free=1).run(tagged)
    assert all(found.tokens[0] == 6 and len(found.tokens) > 1 for result in results for found in result)
    scored_alone(WEIGHTS, tagged, results, free=1)


def test_the_first_group_is_a_beam_of_its_own_and_others_shun_its_tokens() -> None:
    diverse = search(WEIGHTS, 6, settings=VarietySettings(groups=3, diversity=50.0)).run(MANY)
    alone = search(WEIGHTS, 2).run(MANY)
    for result, expected in zip(diverse, alone, strict=True):
        first = [h for h in result if h.group == 0]
        assert [h.tokens for h in first] == [h.tokens for h in expected]
        # A penalty that no probability outweighs: what continues differs at the first position.
        starts = [{h.tokens[0] for h in result if h.group == group} for group in range(2)]
        assert not starts[0] & starts[1]


@pytest.mark.parametrize("diversity", [0.1, 2.0])
def test_a_penalty_is_no_part_of_the_score(diversity: float) -> None:
    """Not of a token that is chosen in spite of it, either."""
    settings = VarietySettings(groups=4, diversity=diversity)
    scored_alone(WEIGHTS, MANY[:6], search(WEIGHTS, 4, settings=settings).run(MANY[:6]))


def test_groups_without_a_penalty_are_the_same_beam_over_again() -> None:
    for result in search(WEIGHTS, 4, settings=VarietySettings(groups=2, diversity=0.0)).run(MANY):
        first, second = ([h.tokens for h in result if h.group == g] for g in range(2))
        assert first == second


def seeded(requests: list[Request], seed: int) -> list[Request]:
    return [dataclasses.replace(one, seed=sentence_seed(seed, list(one.tokens))) for one in requests]


def test_samples_depend_on_sentence_and_seed_alone() -> None:
    sampling = search(WEIGHTS, 5, settings=VarietySettings(method="sampling"))
    requests = seeded(MANY, 1)
    together = sampling.run(requests)
    same(together, [sampling.run([one])[0] for one in requests])
    same(together, sampling.run(requests[::-1])[::-1])
    other = sampling.run(seeded(MANY, 2))
    drawn = [[h.tokens for h in result] for result in together]
    assert drawn != [[h.tokens for h in result] for result in other]
    assert all(len(result) == 5 for result in together)


def test_sampling_from_the_one_most_probable_token_is_greedy_search() -> None:
    sampling = search(WEIGHTS, 1, settings=VarietySettings(method="sampling", top_k=1, temperature=3.0))
    for sampled, greedy in zip(sampling.run(seeded(MANY, 1)), search(WEIGHTS, 1).run(MANY), strict=True):
        # A beam of one leaves a hypothesis that ends second best and continues; a sample never does.
        assert sampled[0].tokens[:1] == greedy[0].tokens[:1]
        assert sampled[0].tokens == greedy[0].tokens


def test_tokens_are_drawn_as_often_as_they_are_probable() -> None:
    request = dataclasses.replace(MANY[0], cap=1)
    expected = token_scores(WEIGHTS, request, ())[0].exp()
    expected[[1, END]] = 0  # padding never, and no hypothesis is empty
    expected /= expected.sum()
    sampling = search(WEIGHTS, 500, settings=VarietySettings(method="sampling"))
    drawn: Counter[int] = Counter()
    for seed in range(8):
        (result,) = sampling.run(seeded([request], seed))
        drawn.update(h.tokens[0] for h in result)
    assert drawn.total() == 4000
    for token, probability in enumerate(expected.tolist()):
        deviation = 4 * math.sqrt(4000 * probability * (1 - probability)) + 1e-9
        assert abs(drawn[token] - 4000 * probability) <= deviation


def test_top_k_and_top_p_cut_the_tail() -> None:
    scores = torch.log(torch.tensor([[[0.4, 0.05, 0.3, 0.15, 0.1]]])).expand(1, 4000, 5)
    chances = (torch.arange(4000) / 4000)[None]

    def shares(**values: Any) -> list[float]:
        drawn = draw(scores, chances, VarietySettings(method="sampling", **values))
        return (torch.bincount(drawn[0], minlength=5) / 4000).tolist()

    assert shares() == pytest.approx([0.4, 0.05, 0.3, 0.15, 0.1], abs=1e-3)
    assert shares(top_k=2) == pytest.approx([4 / 7, 0, 3 / 7, 0, 0], abs=1e-3)
    # The fewest with 0.8 together: 0.4, 0.3 and 0.15.
    assert shares(top_p=0.8) == pytest.approx([0.4 / 0.85, 0, 0.3 / 0.85, 0.15 / 0.85, 0], abs=1e-3)
    assert shares(top_p=0.1) == [1, 0, 0, 0, 0]
    squared = [0.16, 0.0025, 0.09, 0.0225, 0.01]
    assert shares(temperature=0.5) == pytest.approx([p / sum(squared) for p in squared], abs=1e-3)


def test_random_numbers_are_uniform_and_differ_by_place() -> None:
    seeds = torch.tensor([sentence_seed(1, [number]) for number in range(200)])
    numbers = torch.cat([uniform(seeds, 12, torch.tensor([t])) for t in range(20)], 1)
    assert numbers.min() >= 0
    assert numbers.max() < 1
    assert numbers.unique().numel() > 0.99 * numbers.numel()
    counts = torch.histc(numbers, 10, 0, 1) / numbers.numel()
    assert counts.tolist() == pytest.approx([0.1] * 10, abs=0.006)
    assert torch.corrcoef(torch.stack([numbers[:, 0], numbers[:, 1]]))[0, 1].abs() < 0.25


def test_weights_that_are_not_numbers_are_seen() -> None:
    broken = random_weights()
    broken.decoder[1].feed_forward.outer.weight.fill_(math.nan)
    assert search(broken, 3).find(MANY[:5]).non_finite() == list(range(5))
    assert search(WEIGHTS, 3).find(MANY[:5]).non_finite() == []
