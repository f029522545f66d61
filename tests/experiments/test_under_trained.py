"""The share of words that training has hardly seen, against a count by hand."""

from experiments.pairs import STS_GROUPS
from experiments.under_trained import UPPER_QUARTILE, rarer_percent


def test_the_share_is_of_tokens() -> None:
    counts = {"the": 500, "cat": 100, "sleeps": 99}
    texts = ["the cat sleeps", "the the dog"]
    assert round(rarer_percent(texts, counts, 100), 4) == round(100 * 2 / 6, 4)
    assert round(rarer_percent(texts, counts, 1), 4) == round(100 / 6, 4)


def test_every_percentile_is_of_a_set_of_the_years() -> None:
    assert {name.split(".")[0] for name in UPPER_QUARTILE} == {"2012", "2013", "2014"} <= {*STS_GROUPS}
