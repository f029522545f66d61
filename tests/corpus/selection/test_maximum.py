"""A maximum that is found on the corpus' own pairs, and what the verdict says of it."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from paraforge.base.errors import ConfigurationError
from paraforge.corpus.publication.verdict_words import verdict_words
from paraforge.corpus.scoring.verdict import FEWEST_CHANGED, judge_changed, upper_bound
from paraforge.corpus.selection.filters.bounds import BoundsParameters
from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.corpus.selection.thresholds import settle, verdict


def bounded(**given: Any) -> SelectParameters:
    """A selection by one filter."""
    one = {"kind": "bounds", "score": "contradiction", "missing": "accept", **given}
    return SelectParameters.model_validate({"required": [], "deciles": [], "filters": [one]})


def sampled(rows: int, seed: int = 0) -> pa.Table:
    """Mismatched pairs with other rows' translations, and as many with changed meanings."""
    random = np.random.default_rng(seed)
    right = np.where(random.random(rows) < 0.7, 0, random.random(rows)).astype(np.float32)
    wrong = np.concatenate([random.random(rows), 1 - random.random(rows) ** 4 / 2]).astype(np.float32)
    return pa.table(
        {
            "source": ["s"] * 2 * rows,
            "rule": [None] * rows + ["negation"] * rows,
            "weight": np.ones(2 * rows),
            "contradiction": wrong,
            "right_contradiction": np.concatenate([right, right / 2]),
        }
    )


@pytest.mark.parametrize("rows", [150, 2_000, 20_000])
@pytest.mark.parametrize("share", [0.02, 0.2])
def test_at_most_that_share_of_the_pairs_is_lost(rows: int, share: float) -> None:
    table = sampled(rows)
    parameters = settle(bounded(maximum={"good_pairs": share}), table)
    (bounds,) = parameters.filters
    assert isinstance(bounds, BoundsParameters) and isinstance(bounds.maximum, float)
    maximum = bounds.maximum
    right = table["right_contradiction"].to_numpy()[:rows]
    lost = float((right > np.float32(maximum)).mean())
    assert upper_bound(np.array([lost]), rows)[0] <= share or not lost
    # What is a unit of the last digit below the next score loses too many.
    next_one = right[right <= np.float32(maximum - 0.001)].max()
    more = float((right >= next_one).mean())
    assert upper_bound(np.array([more]), rows)[0] > share


def test_the_verdict_says_what_the_maximum_finds_and_loses() -> None:
    table = sampled(20_000)
    parameters = settle(bounded(maximum={"good_pairs": 0.02}), table)
    figures = verdict(parameters, table, {}, [])
    changed = figures["changed_meanings"]
    assert changed["chosen"] == changed["maximum"] and changed["chosen_found"] == changed["found"]
    assert 0.015 < changed["chosen_lost"] <= 0.02
    (sentence,) = (line for line in verdict_words(figures, 0) if "altered" in line)
    assert f"rejecting scores above {changed['maximum']:g} catches" in sentence
    assert f"loses {100 * changed['chosen_lost']:.2g}% of the good pairs" in sentence


def test_a_score_at_the_maximum_is_not_above_it() -> None:
    table = sampled(200)
    same = pa.array(np.full(400, 0.3, np.float32))
    for name in ("contradiction", "right_contradiction"):
        table = table.set_column(table.column_names.index(name), name, same)
    for maximum, above in ((0.3, 0), (0.29, 1)):
        changed = judge_changed(table, maximum)
        assert (changed["chosen_found"], changed["chosen_lost"]) == (above, above)


def test_other_selections_have_the_figures_that_they_had() -> None:
    table = sampled(500)
    figures = verdict(bounded(score="overlap_3", maximum=0.9), table, {}, [])
    assert figures["changed_meanings"] == judge_changed(table)
    assert judge_changed(sampled(FEWEST_CHANGED))["pairs"] == FEWEST_CHANGED
    assert judge_changed(sampled(FEWEST_CHANGED - 1)) == {}


def test_what_cannot_be_found_is_refused() -> None:
    asked = bounded(maximum={"good_pairs": 0.02})
    with pytest.raises(ConfigurationError, match="there are no mismatched pairs with the scores"):
        settle(asked, None)
    with pytest.raises(ConfigurationError, match="none of the corpus' own pairs has contradiction"):
        settle(asked, sampled(500).drop_columns(["right_contradiction"]))
