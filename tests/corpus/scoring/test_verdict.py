"""The verdict's arithmetic against counting every pair; its intervals against the binomial distribution."""

import math
from dataclasses import asdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy.stats import beta, binom

from paraforge.corpus.scoring.verdict import (
    ENOUGH,
    FEWEST_CHANGED,
    SUGGESTED_SHARE,
    Verdict,
    interval,
    judge,
    judge_changed,
    maximum_of,
    minimum_for,
    minimum_of,
    upper_bound,
)
from paraforge.corpus.scoring.wrong_pairs import FEW

# Of six decimals: two scores that differ by less than a threshold can say are as good as equal.
VALUES = st.one_of(
    st.none(),
    st.sampled_from([-0.25, 0.0, 0.5, 1.0]),
    st.integers(-(10**6), 10**6).map(lambda number: float(np.float32(number / 10**6))),
)
ROWS = st.lists(
    st.tuples(st.sampled_from("ab"), VALUES, VALUES, st.integers(1, 5)), min_size=1, max_size=150
).flatmap(lambda rows: st.sampled_from([1, 1, 20]).map(lambda times: rows * times))
Row = tuple[str, float | None, float | None, int]


def wrong_pairs(rows: list[Row]) -> pa.Table:
    sources, right, wrong, weights = map(list, zip(*rows, strict=True))
    return pa.table(
        {
            "source": pa.array(sources, pa.string()),
            "right_cosine": pa.array(right, pa.float32()),
            "cosine": pa.array(wrong, pa.float32()),
            "weight": pa.array(map(float, weights), pa.float64()),
            "rule": pa.nulls(len(rows), pa.string()),
        }
    )


def reaching(rows: list[Row], side: int, minimum: float) -> float:
    """Share of the weight whose score on a side is at least the minimum, at the precision of 32 bits."""
    bound = np.float32(minimum)
    passed = [row[3] for row in rows if (value := row[side]) is not None and np.float32(value) >= bound]
    return sum(passed) / sum(row[3] for row in rows)


def bound_of(rows: list[Row], minimum: float) -> float:
    """The 95 % point of the Beta distribution of the share above an order statistic."""
    share, number = reaching(rows, 2, minimum), effective(rows)
    return 1.0 if share == 1 else float(beta.ppf(0.95, share * number + 1, (1 - share) * number))


def effective(rows: list[Row]) -> float:
    return sum(row[3] for row in rows) ** 2 / sum(row[3] ** 2 for row in rows)


def check(found: Verdict, rows: list[Row], minimum: float) -> None:
    right = [(row[1], row[3]) for row in rows if row[1] is not None]
    wrong = [(row[2], row[3]) for row in rows if row[2] is not None]
    assert found.pairs == len(rows)
    if right and wrong:
        ordered = sum(v * w * ((a > b) + (a == b) / 2) for a, v in right for b, w in wrong)
        total = sum(v for _, v in right) * sum(w for _, w in wrong)
        assert found.separation is not None
        assert found.separation.value == pytest.approx(ordered / total)
        number = min(sum(w for _, w in side) ** 2 / sum(w**2 for _, w in side) for side in (right, wrong))
        expected = interval(found.separation.value, number)
        assert asdict(found.separation) == pytest.approx(asdict(expected))
    else:
        assert found.separation is None
    assert found.minimum == minimum
    assert found.passing is not None
    assert found.passing.value == pytest.approx(reaching(rows, 2, minimum))
    if found.suggested is not None:
        assert bound_of(rows, found.suggested) <= SUGGESTED_SHARE + 1e-9
        assert found.suggested_kept == pytest.approx(reaching(rows, 1, found.suggested))
    assert (found.suggested is None) == (effective(rows) < ENOUGH or not wrong)


@given(ROWS, st.sampled_from([-0.25, 0.1, 0.5]))
@example([("a", 0.5, 0.1, 1)] * FEW + [("b", 0.5, 0.1, 1)] * (FEW - 1), 0.1)
@example([("a", 0.5, 0.1, 1)] * ENOUGH, 0.5)
@example([("a", 0.5, 0.1, 1), ("a", 0.0, 0.1, 2)] * ENOUGH, 0.5)
def test_the_whole_and_every_source(rows: list[Row], minimum: float) -> None:
    found = judge(wrong_pairs(rows), "cosine", minimum)
    check(found, rows, minimum)
    own = {name: [row for row in rows if row[0] == name] for name in "ab"}
    assert found.sources.keys() == {name for name, part in own.items() if len(part) >= FEW}
    for name, verdict in found.sources.items():
        check(verdict, own[name], minimum)


@given(ROWS, st.sampled_from([0.0, 0.01, 0.1, 0.5, 0.99]))
@example([("a", None, 1.0, 1), ("a", None, 0.99999099, 1)], 0.01)
def test_a_minimum_lets_no_more_pass_and_no_lower_one_would_do(rows: list[Row], share: float) -> None:
    assume(any(row[2] is not None for row in rows))
    minimum, bound = minimum_of(wrong_pairs(rows), "cosine", share)
    assert bound == pytest.approx(bound_of(rows, minimum))
    # Too few to be sure: then at least none of these passes.
    assert bound <= share or not reaching(rows, 2, minimum)
    scores = [row[2] for row in rows if row[2] is not None]
    spread = max(scores) - min(scores)
    unit = 10.0 ** -(3 if spread <= 0 else max(3, 2 - math.floor(math.log10(spread))))
    # Of scores this near to each other the next number that 32 bits have may be further away.
    unit += float(np.spacing(np.float32(max(map(abs, scores)))))
    below = [score for score in scores if np.float32(score) < np.float32(minimum)]
    if below:
        # The minimum is the first number of its digits above the score that lets too many pass.
        assert minimum - max(below) <= 2 * unit
    # A score that is lower by more than one of its last digits lets too many pass, too.
    lower = [score for score in below if score < minimum - 1.001 * unit]
    if lower:
        assert bound_of(rows, max(lower)) > share
    assert float(f"{minimum:.10g}") == minimum  # what the signature says is what is meant


def test_scores_of_any_size() -> None:
    weights = np.ones(1_000)
    for scale in (1e-6, 1.0, 1e6):
        wrong = (np.arange(1_000) * scale / 1_000).astype(np.float32)
        minimum = minimum_for(wrong, weights, 0.01)
        # Of 1,000 pairs 4 may pass: P(at most 4 | 1 %) = 0.029, P(at most 5 | 1 %) = 0.066.
        assert minimum == pytest.approx(0.996 * scale, rel=3e-3)
        assert (wrong >= np.float32(minimum)).sum() == 4


@pytest.mark.parametrize("number", [1, 10, 298, 299, 5_000])
def test_a_bound_is_the_largest_share_of_which_so_few_would_pass_once_in_twenty(number: int) -> None:
    passed = np.unique(np.linspace(0, number - 1, 7).astype(int))
    bounds = upper_bound(passed / number, number)
    assert binom.cdf(passed, number, bounds) == pytest.approx(0.05)
    assert upper_bound(np.ones(1), number) == 1
    assert (bounds[0] <= SUGGESTED_SHARE) == (number >= ENOUGH)


@pytest.mark.parametrize("rows", [[("a", 0.5, None, 1)], []])
def test_without_scores_of_wrong_pairs_there_is_no_minimum(rows: list[Row]) -> None:
    table = wrong_pairs([("a", 0.5, None, 1)]).slice(0, len(rows))
    with pytest.raises(ValueError, match="no mismatched pair has this score"):
        minimum_of(table, "cosine", 0.01)
    found = judge(table, "cosine", 0.4)
    assert found.separation is None and found.suggested is None and found.minimum == 0.4


@pytest.mark.parametrize("number", [5, 30, 300])
@pytest.mark.parametrize("share", [0.01, 0.05, 0.5, 0.98])
def test_an_interval_has_the_share_as_often_as_it_says(number: int, share: float) -> None:
    """Over all outcomes of ``number`` draws, weighed by how probable they are. Wilson's interval may fall a
    little short of 95 %; the one of Wald, which is narrower, would have nothing where no draw hits."""
    chances = binom.pmf(np.arange(number + 1), number, share)
    found = [interval(hits / number, number) for hits in range(number + 1)]
    covered = sum(p for p, one in zip(chances, found, strict=True) if one.low <= share <= one.high)
    assert covered > 0.88
    assert found[0].low == 0 and found[0].high > 1 / number and found[-1].low < 1 - 1 / number


@pytest.mark.parametrize(("heavy", "maximum"), [(0, 0.8), (1, 0.1)])
def test_pairs_are_counted_by_their_weights_where_meanings_are_changed(heavy: int, maximum: float) -> None:
    high = np.arange(1_000) % 2 == 0
    weights = np.where(np.arange(1_000) % 2 == heavy, 1.0, 0.001)
    scores = np.where(high, 0.8, 0.1).astype(np.float32)
    columns = {"right_contradiction": scores, "contradiction": scores, "weight": weights}
    own, made = (
        pa.table({**columns, "rule": pa.array([rule] * 1_000, pa.string())}) for rule in (None, "number")
    )
    assert maximum_of(own) == pytest.approx(maximum, abs=0.002)
    found = judge_changed(pa.concat_tables([own, made]), 0.5)
    above = float(weights[high].sum() / weights.sum())
    assert (found["chosen_found"], found["chosen_lost"]) == pytest.approx((above, above))
    for pairs in (FEWEST_CHANGED - 1, FEWEST_CHANGED):
        few = judge_changed(pa.concat_tables([own, made.slice(0, pairs)]))
        assert few.get("pairs") == (pairs if pairs == FEWEST_CHANGED else None)
