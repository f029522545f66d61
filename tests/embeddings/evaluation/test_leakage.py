"""Training pairs that occur in test sets are found and removed."""

import string
from collections.abc import Iterator

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from paraforge.base.text.normalization import normalize
from paraforge.base.text.pair_blocks import PairBlock
from paraforge.embeddings.evaluation.leakage import LeakageFilter
from tests.embeddings.trainer.training import block

Pairs = list[tuple[str, str]]


def rows(blocks: Iterator[PairBlock]) -> Pairs:
    return [pair for b in blocks for pair in zip(b.left.to_pylist(), b.right.to_pylist(), strict=True)]


PAIRS: Pairs = [
    ("A dog runs.", "The dog is running."),
    ("Something else", "a DOG - runs!"),
    ("A dog runs fast", "A dog"),
    ("a man", "Two men sing"),
    ("", "..."),
]
SETS = {"2012.x": ["A dog runs", "Nothing", "..."], "dev": ["a dog runs", "two men sing?"], "empty": []}


def test_leaked_pairs_are_removed_and_counted() -> None:
    leakage = LeakageFilter(SETS)
    assert rows(leakage([block(PAIRS[:2]), block(PAIRS[2:])])) == [PAIRS[2], PAIRS[4]]
    report = leakage.report
    assert (report.pairs, report.leaked, report.dropped) == (5, 3, 3)
    assert report.by_set == {"2012.x": 2, "dev": 3}
    assert report.as_json()["by_set"] == report.by_set
    assert report.lines()[0] == (
        "3 of 5 training pairs (60.00%) have a sentence of a development set, a test set or a held-out "
        "split: left out"
    )


def test_emptied_blocks_are_skipped() -> None:
    assert list(LeakageFilter(SETS)([block([PAIRS[0]] * 20)])) == []


def test_nothing_to_look_for() -> None:
    leakage = LeakageFilter({})
    assert rows(leakage([block(PAIRS)])) == PAIRS
    assert not leakage.looks
    assert leakage.report.lines() == [
        "none of 5 training pairs has a sentence of a development set, a test set or a held-out split"
    ]


TEXTS = st.text(string.ascii_letters[:3] + "AB .", max_size=4)


@given(
    st.lists(st.tuples(TEXTS, TEXTS), max_size=12),
    st.dictionaries(st.sampled_from("xyz"), st.lists(TEXTS, max_size=5), max_size=3),
)
def test_against_sets_of_strings(pairs: Pairs, test_sets: dict[str, list[str]]) -> None:
    def plain(text: str) -> str:
        return str(normalize(pa.array([text]))[0].as_py())

    wanted = {name: {plain(text) for text in texts} - {""} for name, texts in test_sets.items()}
    leaks = [{name for name, texts in wanted.items() if {plain(a), plain(b)} & texts} for a, b in pairs]
    leakage = LeakageFilter(test_sets)
    kept = [pair for pair, sets in zip(pairs, leaks, strict=True) if not sets]
    assert rows(leakage([block(pairs)])) == kept
    expected = {name: sum(name in sets for sets in leaks) for name in test_sets}
    assert leakage.report.by_set == {name: count for name, count in expected.items() if count}
