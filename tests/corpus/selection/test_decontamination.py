"""Decontamination: whole sentences and n-grams, against sets of tuples."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paraforge.base.text.normalisation import normalise
from paraforge.corpus.selection.filters.decontamination import WordNgrams, build_decontamination


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It’s  5 o'clock!", "it s 5 o clock"),
        ("\u00a0Příliš ŽLUŤOUČKÝ\tkůň.", "příliš žluťoučký kůň"),
        ("ﬁne — “ok”", "fine ok"),
        ("Prilis\u030c", "priliš"),
        ("...", ""),
        ("", ""),
        (None, None),
    ],
)
def test_normalisation(text: str | None, expected: str | None) -> None:
    assert normalise(pa.array([text], pa.string())).to_pylist() == [expected]


SENTENCES = st.lists(st.lists(st.sampled_from("abcd"), max_size=7).map(" ".join), max_size=6)


def ngrams(sentence: str, order: int) -> set[tuple[str, ...]]:
    words = sentence.split()
    return {tuple(words[start : start + order]) for start in range(len(words) - order + 1)}


@settings(max_examples=300)
@given(SENTENCES, SENTENCES, st.integers(1, 4))
def test_ngrams_are_found_exactly(known: list[str], sentences: list[str], order: int) -> None:
    expected: set[tuple[str, ...]] = set().union(*(ngrams(one, order) for one in known))
    table = WordNgrams(pa.array(known, pa.string()), order)
    assert len(table) == len(expected)
    found = table.found_in(pa.array(sentences, pa.string())).tolist()
    assert found == [bool(ngrams(one, order) & expected) for one in sentences]


def pairs(*rows: tuple[str | None, str | None]) -> pa.Table:
    return pa.table(
        {"reference": pa.array([r for r, _ in rows]), "translation": pa.array([t for _, t in rows])}
    )


def test_a_test_sentence_is_found_on_either_side() -> None:
    one = build_decontamination("decontamination", ["A man plays the guitar.", "...", ""])
    rows = pairs(
        ("a man plays the guitar", "somebody plays"),
        ("somebody plays", "A MAN PLAYS — THE GUITAR!"),
        ("A man plays the guitar loudly", "A man plays"),
        ("...", "!"),
        (None, None),
    )
    assert one.verdicts(rows, 0).tolist() == [1, 1, 0, 0, 0]


def test_ngrams_of_a_test_sentence_are_found() -> None:
    test_sentences = ["The quick brown fox jumps.", "Too short"]
    rows = pairs(
        ("Once the quick, brown fox slept", "x"),
        ("The quick red fox", "too short"),
        ("brown fox", "jumps over quick brown fox jumps"),
    )
    both = build_decontamination("d", test_sentences, ngram=4)
    assert both.verdicts(rows, 0).tolist() == [1, 1, 1]
    only_ngrams = build_decontamination("d", test_sentences, exact=False, ngram=4)
    assert only_ngrams.verdicts(rows, 0).tolist() == [1, 0, 1]
    assert build_decontamination("d", test_sentences).verdicts(rows, 0).tolist() == [0, 1, 0]


def test_the_fingerprint_is_that_of_the_sentences() -> None:
    first = build_decontamination("d", ["A b.", "C d"])
    assert first.fingerprint == build_decontamination("other", ["c  D", "a B", "a b"]).fingerprint
    assert first.fingerprint != build_decontamination("d", ["A b."]).fingerprint
