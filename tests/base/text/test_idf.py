"""Document frequencies and entropy, by arithmetic."""

import gzip
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraforge.base.errors import InputError
from paraforge.base.text import idf
from paraforge.base.text.idf import (
    Background,
    background_of_frequencies,
    background_of_sentences,
    entropy,
    sentence_counts,
    sentence_means,
)
from paraforge.base.text.tokens import tokenize_column


def test_idf_matches_definition() -> None:
    background = Background("b", 8, {"a": 4, "b": 8, "more": 9})
    expected = [math.log(2), 0, math.log(8), 0]
    assert background.idf(["a", "b", "absent", "more"]).tolist() == pytest.approx(expected)


@pytest.mark.parametrize("at_once", [1, 2, 50])
def test_a_file_of_sentences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(idf, "_SENTENCES_AT_ONCE", at_once)
    path = tmp_path / "text.txt.gz"
    path.write_bytes(gzip.compress(b"The cat, the dog.\n\nA cat.\n"))
    background = background_of_sentences(path)
    assert background.documents == 2
    assert background.counts == {"the": 1, "cat": 2, ",": 1, "dog": 1, ".": 2, "a": 1}


def test_a_file_of_frequencies(tmp_path: Path) -> None:
    path = tmp_path / "counts.txt"
    path.write_text("The 4\nthe 1\ncat 5\n", encoding="utf-8")
    background = background_of_frequencies(path)
    assert background.documents == 10
    assert background.idf(["the"])[0] == pytest.approx(-math.log(5 / 10))
    path.write_text("New York\t7\n", encoding="utf-8")
    assert background_of_frequencies(path).counts == {"new york": 7}


@pytest.mark.parametrize("line", ["word", "word many", "word 0", "two words 3"])
def test_malformed_frequencies(tmp_path: Path, line: str) -> None:
    path = tmp_path / "counts.txt"
    path.write_text(f"the 3\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"counts.txt:2: expected a word and its count"):
        background_of_frequencies(path)
    path.write_text("\n")
    with pytest.raises(InputError, match="no words"):
        background_of_frequencies(path)
    with pytest.raises(InputError, match="no sentences"):
        background_of_sentences(path)


@given(st.lists(st.lists(st.integers(0, 9), max_size=8), max_size=8))
def test_word_counts_once_per_sentence(rows: list[list[int]]) -> None:
    expected = Counter(word for row in rows for word in set(row))
    ids = np.array([word for row in rows for word in row], np.int32)
    counts = sentence_counts(ids, np.cumsum([0, *map(len, rows)]), 10)
    assert counts.tolist() == [expected[word] for word in range(10)]


def test_repeated_sentence_counts_each_time() -> None:
    tokens = tokenize_column(pa.array(["a b a", "", "b", ""]))
    values = np.array([{"a": 1.0, "b": 4.0}.get(word, 0.0) for word in tokens.vocabulary])
    means = sentence_means(tokens, values)
    assert means[0] == 2.0
    assert math.isnan(means[1])
    assert means[2] == 4.0
    assert math.isnan(means[3])


@pytest.mark.parametrize(
    ("counts", "value"),
    [([1, 1], math.log(2)), ([5], 0.0), ([], 0.0), ([0, 3], 0.0), ([2, 1, 1], 1.5 * math.log(2))],
)
def test_entropy(counts: list[int], value: float) -> None:
    result = entropy(counts)
    assert result == pytest.approx(value)
    assert math.copysign(1, result) == 1


FREQUENCIES = "the 600\ndog 300\nruns 100\n"


def test_missing_words_are_estimated_from_text(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Of the 100 tokens of the text, 20 are full stops."""
    (tmp_path / "listed-here.txt").write_text(FREQUENCIES)
    background = background_of_frequencies(tmp_path / "listed-here.txt")
    text = tokenize_column(pa.array(["the dog runs the ."] * 20))
    completed = background.completed(text)
    assert completed.documents == 1250
    assert completed.counts == {"the": 600, "dog": 300, "runs": 100, ".": 250}
    background.completed(text)
    (message,) = caplog.messages  # once per list
    assert "20%" in message and "such as ." in message
    assert completed.idf(["."]).tolist() == pytest.approx([math.log(5)])
    # A word of the text was there at least once.
    rare = tokenize_column(pa.array(["the dog runs"] * 100 + list("abcde")))
    (tmp_path / "small.txt").write_text("the 1\ndog 1\nruns 1\n")
    assert background_of_frequencies(tmp_path / "small.txt").completed(rare).documents == 3 + 5
    # What is completed lacks nothing any more.
    assert completed.completed(text) is completed


def test_frequent_missing_words_are_named(caplog: pytest.LogCaptureFixture) -> None:
    text = {"the": 10, "a": 1, "b": 1, "x": 1, "z": 3, "y": 3, "w": 1}
    lacking = Background("named here", 10, {"the": 5}, partial=True).missing(text)
    assert lacking == {word: count for word, count in text.items() if word != "the"}
    assert caplog.messages == ["named here has no count for 50% of the words in the text, such as y z a b w"]


@pytest.mark.parametrize("missing", [0, 1])
def test_list_with_few_missing_words_is_unchanged(
    tmp_path: Path, missing: int, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "few.txt").write_text(FREQUENCIES)
    background = background_of_frequencies(tmp_path / "few.txt")
    text = tokenize_column(pa.array(["the dog"] * 49 + ["the", "gnu" if missing else "dog"]))
    assert background.completed(text) is background
    assert not caplog.messages


def test_counts_of_own_text_are_integers() -> None:
    """A word that is not in the text has the count 0."""
    background = Background("own", 3, {"the": 3})
    assert background.completed(tokenize_column(pa.array(["a dog", "barks ."]))) is background
