"""The verdict: areas against counting every pair, intervals against the binomial distribution, and
adequacy."""

import math
from dataclasses import asdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy.stats import beta, binom

from paraforge.base.word_vectors.vectors import WordVectors
from paraforge.corpus.publication.verdict_words import verdict_words
from paraforge.corpus.scoring.general import DIRECTORY
from paraforge.corpus.scoring.score import build_scorers, score_table
from paraforge.corpus.scoring.verdict import (
    ENOUGH,
    FEWEST_CHANGED,
    SUGGESTED_SHARE,
    Verdict,
    adequacy,
    interval,
    judge,
    judge_adequacy,
    judge_changed,
    maximum_of,
    minimum_for,
    minimum_of,
    upper_bound,
)
from paraforge.corpus.scoring.word_scorer import WordScorer
from paraforge.corpus.scoring.wrong_pairs import FEW
from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.corpus.selection.thresholds import verdict

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
def test_verdict_figures_overall_and_by_source(rows: list[Row], minimum: float) -> None:
    found = judge(wrong_pairs(rows), "cosine", minimum)
    check(found, rows, minimum)
    own = {name: [row for row in rows if row[0] == name] for name in "ab"}
    assert found.sources.keys() == {name for name, part in own.items() if len(part) >= FEW}
    for name, of_source in found.sources.items():
        check(of_source, own[name], minimum)


@given(ROWS, st.sampled_from([0.0, 0.01, 0.1, 0.5, 0.99]))
@example([("a", None, 1.0, 1), ("a", None, 0.99999099, 1)], 0.01)
def test_minimum_of_is_the_lowest_threshold_within_the_share(rows: list[Row], share: float) -> None:
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


def test_minimum_for_works_on_any_scale() -> None:
    weights = np.ones(1_000)
    for scale in (1e-6, 1.0, 1e6):
        wrong = (np.arange(1_000) * scale / 1_000).astype(np.float32)
        minimum = minimum_for(wrong, weights, 0.01)
        # Of 1,000 pairs 4 may pass: P(at most 4 | 1 %) = 0.029, P(at most 5 | 1 %) = 0.066.
        assert minimum == pytest.approx(0.996 * scale, rel=3e-3)
        assert (wrong >= np.float32(minimum)).sum() == 4


@pytest.mark.parametrize("number", [1, 10, 298, 299, 5_000])
def test_upper_bound_is_the_95_percent_binomial_bound(number: int) -> None:
    passed = np.unique(np.linspace(0, number - 1, 7).astype(int))
    bounds = upper_bound(passed / number, number)
    assert binom.cdf(passed, number, bounds) == pytest.approx(0.05)
    assert upper_bound(np.ones(1), number) == 1
    assert (bounds[0] <= SUGGESTED_SHARE) == (number >= ENOUGH)


@pytest.mark.parametrize("rows", [[("a", 0.5, None, 1)], []])
def test_no_minimum_without_scores_of_mismatched_pairs(rows: list[Row]) -> None:
    table = wrong_pairs([("a", 0.5, None, 1)]).slice(0, len(rows))
    with pytest.raises(ValueError, match="no mismatched pair has this score"):
        minimum_of(table, "cosine", 0.01)
    found = judge(table, "cosine", 0.4)
    assert found.separation is None and found.suggested is None and found.minimum == 0.4


@pytest.mark.parametrize("number", [5, 30, 300])
@pytest.mark.parametrize("share", [0.01, 0.05, 0.5, 0.98])
def test_intervals_cover_the_share_as_often_as_stated(number: int, share: float) -> None:
    """The average is over all outcomes of `number` draws, weighted by probability. Wilson's interval may fall
    slightly short of 95%. Wald's interval is narrower and is empty where no draw hits.
    """
    chances = binom.pmf(np.arange(number + 1), number, share)
    found = [interval(hits / number, number) for hits in range(number + 1)]
    covered = sum(p for p, one in zip(chances, found, strict=True) if one.low <= share <= one.high)
    assert covered > 0.88
    assert found[0].low == 0 and found[0].high > 1 / number and found[-1].low < 1 - 1 / number


@pytest.mark.parametrize(("heavy", "maximum"), [(0, 0.8), (1, 0.1)])
def test_altered_meanings_are_judged_with_weights(heavy: int, maximum: float) -> None:
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


PAIRS = {
    "reference": ["A man is eating."] * 3,
    "translation": ["A man eats.", "A man is not eating.", "It rains."],
}


def sample(scores: list[float], weights: list[float] | None = None) -> pa.Table:
    """Right pairs with these scores, each beside a mismatched pair."""
    known = np.array(scores, np.float32)
    return pa.table(
        {
            "source": ["a"] * len(known),
            "weight": weights or [1.0] * len(known),
            "paraphrase_score": np.zeros(len(known), np.float32),
            "right_paraphrase_score": known,
            "right_contradiction": np.zeros(len(known), np.float32),
            "right_adequacy": adequacy(known, np.zeros(len(known))),
            "rule": pa.nulls(len(known), pa.string()),
        }
    )


def asked(minimum: object) -> SelectParameters:
    bound = {"kind": "bounds", "score": "paraphrase_score", "minimum": minimum}
    return SelectParameters.model_validate({"filters": [bound]})


def test_adequacy_rises_with_the_score_and_falls_with_contradiction() -> None:
    scores = np.linspace(0, 1, 11)
    found = adequacy(scores, np.zeros(11))
    assert (np.diff(found) > 0).all() and 0 < found[0] < 0.2 and 0.6 < found[-1] < 1
    assert (adequacy(scores, np.ones(11)) < found).all()
    assert np.isnan(adequacy(np.array([np.nan]), np.array([0.0]))).all()


def test_only_the_built_in_scorer_gives_the_column_adequacy() -> None:
    scored = score_table(pa.table(PAIRS), build_scorers(DIRECTORY))
    expected = adequacy(scored["paraphrase_score"].to_numpy(), scored["contradiction"].to_numpy())
    assert scored["adequacy"].to_pylist() == expected.tolist()
    assert expected[0] > expected[1] > 0 and expected[0] > expected[2]
    vectors = WordVectors(["man", "eats"], np.eye(2, dtype=np.float32))
    for other in (vectors, WordScorer(WordScorer.open(DIRECTORY).vectors, {}, "another")):
        assert score_table(pa.table(PAIRS), build_scorers(other))["adequacy"].null_count == 3


def test_the_adequacy_interval_is_that_for_unknown_domains() -> None:
    table = sample([0.5] * 100)
    found = judge_adequacy(table, np.ones(100, bool))
    value = float(adequacy(np.array([0.5]), np.array([0.0]))[0])
    assert found["share"] == pytest.approx(value, abs=1e-3)
    for name, logits in (("low", -1.194), ("high", 1.194)):
        expected = 1 / (1 + np.exp(-np.log(value / (1 - value)) - logits))
        assert found[name] == pytest.approx(expected, abs=1e-4)
    assert found["low"] < found["share"] < found["high"]
    for kept in (30, 29):
        assert bool(judge_adequacy(table, np.arange(100) < kept)) is (kept == 30)
    assert judge_adequacy(table.drop_columns("right_adequacy"), np.ones(100, bool)) == {}


def test_the_verdict_is_on_the_pairs_within_all_bounds() -> None:
    """A pair without a score passes a maximum but belongs to no decile."""
    scores, contradictions = [0.9, 0.1, 0.9, 0.5], [0.0, 0.0, 0.9, 0.0]
    table = sample(np.repeat(scores, 100).tolist(), np.repeat([3.0, 1.0, 1.0, 1.0], 100).tolist())
    values = adequacy(np.array(scores), np.array(contradictions)).repeat(100)
    table = table.set_column(4, "right_contradiction", pa.array(np.repeat(contradictions, 100)))
    table = table.set_column(5, "right_adequacy", pa.array(values))
    table = table.append_column("right_overlap_1", pa.array(np.repeat([0.5, 0.5, 0.5, np.nan], 100)))
    bounds = [
        {"kind": "bounds", "score": "paraphrase_score", "minimum": 0.3},
        {"kind": "bounds", "score": "contradiction", "maximum": 0.5, "missing": "accept"},
    ]
    decile = {"kind": "decile", "score": "overlap_1", "top": 9}
    for filters, kept in ((bounds, [0, 300]), ([*bounds, decile], [0])):
        judged = verdict(SelectParameters.model_validate({"filters": filters}), table, {})["adequacy"]
        expected = np.average(values[kept], weights=[3, 1][: len(kept)])
        assert judged["share"] == pytest.approx(float(expected), abs=1e-3)


def test_the_verdict_begins_with_the_adequate_share() -> None:
    table = sample(np.linspace(0, 1, 1000).tolist())
    figures = {**verdict(asked(0.2), table, {}), "wrong_pairs": 1000, "scores": {}}
    first = verdict_words(figures, 4619)[0]
    share = round(100 * figures["adequacy"]["share"])
    assert first.startswith(f"About {share}% (")
    assert "of the 4,619 kept pairs are likely to be adequate paraphrases." in first
