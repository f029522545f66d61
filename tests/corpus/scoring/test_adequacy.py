"""The share of pairs that people are likely to accept: by a formula, by a threshold, and in words."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from paraforge.base.errors import ConfigurationError
from paraforge.base.word_vectors.vectors import WordVectors
from paraforge.corpus.publication.verdict_words import verdict_words
from paraforge.corpus.scoring.adequacy import adequacy, judge_adequacy, minimum_of_adequate
from paraforge.corpus.scoring.general import DIRECTORY
from paraforge.corpus.scoring.score import build_scorers, score_table
from paraforge.corpus.scoring.word_scorer import WordScorer
from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.corpus.selection.thresholds import settle, verdict

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


def test_better_scores_are_more_adequate_and_contradictions_less() -> None:
    scores = np.linspace(0, 1, 11)
    found = adequacy(scores, np.zeros(11))
    assert (np.diff(found) > 0).all() and 0 < found[0] < 0.2 and 0.6 < found[-1] < 1
    assert (adequacy(scores, np.ones(11)) < found).all()
    assert np.isnan(adequacy(np.array([np.nan]), np.array([0.0]))).all()


def test_the_column_is_that_of_the_built_in_scorer_alone() -> None:
    scored = score_table(pa.table(PAIRS), build_scorers(DIRECTORY))
    expected = adequacy(scored["paraphrase_score"].to_numpy(), scored["contradiction"].to_numpy())
    assert scored["adequacy"].to_pylist() == expected.tolist()
    assert expected[0] > expected[1] > 0 and expected[0] > expected[2]
    vectors = WordVectors(["man", "eats"], np.eye(2, dtype=np.float32))
    for other in (vectors, WordScorer(WordScorer.open(DIRECTORY).vectors, {}, "another")):
        assert score_table(pa.table(PAIRS), build_scorers(other))["adequacy"].null_count == 3


@given(
    st.lists(st.floats(0, 1, width=32), min_size=1, max_size=80),
    st.floats(0.05, 0.95),
    st.sampled_from([1, 9, 0.1]),
)
@example([0.9] * 40 + [0.2] * 40, 0.4, 9)
@example([0.6] * 40, 0.3, 1)  # as a 32-bit score, slightly above
@example(np.linspace(0.9951, 0.9999, 40).tolist(), 0.92, 1)  # none of them reaches the next hundredth
def test_the_least_minimum_with_so_many_adequate_pairs(
    scores: list[float], share: float, weight: float
) -> None:
    values = np.array(scores, np.float32)
    probabilities = adequacy(values, np.zeros(len(values))).astype(np.float64)
    weights = np.where(values < 0.5, weight, 1)
    table = sample(scores, weights.tolist())
    for minimum in np.arange(101) / 100:
        above = values >= np.float32(minimum)
        if above.sum() >= 30 and np.average(probabilities[above], weights=weights[above]) >= share:
            found = minimum_of_adequate(table, share)
            assert found == round(found, 2) and ((values >= np.float32(found)) == above).all()
            return
    with pytest.raises(ValueError, match="no minimum score gives"):
        minimum_of_adequate(table, share)


def test_the_interval_is_that_of_unknown_domains() -> None:
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


def test_a_threshold_may_ask_for_it() -> None:
    scores = np.linspace(0, 1, 1000).tolist()
    table = sample(scores)
    settled = settle(asked({"adequate": 0.7}), table)
    minimum = minimum_of_adequate(table, 0.7)
    threshold = settled.filters[0].threshold({})
    assert threshold is not None and threshold[1] == minimum
    judged = verdict(settled, table, {})["adequacy"]
    assert judged["share"] == pytest.approx(0.7, abs=0.01)
    with pytest.raises(ConfigurationError, match="no minimum score gives"):
        settle(asked({"adequate": 0.999}), table)
    without = table.set_column(5, "right_adequacy", pa.nulls(1000, pa.float32()))
    with pytest.raises(ConfigurationError, match="only defined for the built-in scorer"):
        settle(asked({"adequate": 0.7}), without)
    with pytest.raises(ValueError, match="only as a minimum of paraphrase_score"):
        SelectParameters.model_validate(
            {"filters": [{"kind": "bounds", "score": "overlap_1", "minimum": {"adequate": 0.7}}]}
        )


def test_thirty_pairs_are_enough() -> None:
    assert minimum_of_adequate(sample([0.9] * 30), 0.5) == 0.9
    with pytest.raises(ValueError, match="no minimum score gives 50%"):
        minimum_of_adequate(sample([0.9] * 29), 0.5)


def test_the_verdict_is_on_the_pairs_within_all_bounds() -> None:
    """A pair without a score passes a maximum, but has no decile."""
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
    decile = {"kind": "decile", "score": "overlap_1", "keep": [1, 5, 10]}
    for filters, kept in ((bounds, [0, 300]), ([*bounds, decile], [0])):
        judged = verdict(SelectParameters.model_validate({"filters": filters}), table, {})["adequacy"]
        expected = np.average(values[kept], weights=[3, 1][: len(kept)])
        assert judged["share"] == pytest.approx(float(expected), abs=1e-3)


def test_the_verdict_begins_with_it() -> None:
    table = sample(np.linspace(0, 1, 1000).tolist())
    figures = {**verdict(asked(0.2), table, {}), "wrong_pairs": 1000, "scores": {}}
    first = verdict_words(figures, 4619)[0]
    share = round(100 * figures["adequacy"]["share"])
    assert first.startswith(f"About {share}% (")
    assert "of the 4,619 kept pairs are likely to be adequate paraphrases." in first
