"""Lists of word pairs in several formats, and word similarity."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import spearmanr

from paraforge.base.errors import InputError
from paraforge.base.word_vectors.vectors import UNKNOWN_WORD, WordVectors
from paraforge.embeddings.evaluation.comparing import Model
from paraforge.embeddings.evaluation.word_lists import (
    SimilarityList,
    correlate,
    evaluate_words,
    read_similarity_list,
    read_similarity_lists,
)


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "text",
    [
        "word1\tword2\tPOS\tSimLex999\tconc(w1)\nold\tNew\tA\t1.58\t2.72\nsmart\tclever\tA\t9.2\t1.75\n",
        "Word 1,Word 2,Human (mean)\nold,new,1.58\nsmart,clever,9.2\n",
        "\ufeffold\tnew\tA\t1.58\r\nsmart\tclever\tA\t9.2\r\n\n",
        "Word 1,Word 2,Human (mean),1,2\nold,new,1.58,1,2\nsmart,clever,9.2,9,9\n",
    ],
    ids=["SimLex-999", "WordSim-353", "byte order mark and CRLF", "numbered judges in the header"],
)
def test_similarity_lists(tmp_path: Path, text: str) -> None:
    found = read_similarity_list(write(tmp_path / "list.txt", text))
    assert found.name == "list"
    assert found.pairs == [("old", "new"), ("smart", "clever")]
    assert found.scores == [1.58, 9.2]


ROWS = [("old", "New", "1.58"), ("smart", "clever", "9.2"), ("first", "mean", "5.0"), ("7", "seven", "10.0")]


@pytest.mark.parametrize(
    ("header", "form", "last", "separator", "quoted"),
    [
        (None, "{0} {1} {2}", "", " ", False),
        (None, "{0} {1} N {2} SYNONYMS", "", "\t", True),
        ("word1 word2 similarity", "{0} {1} {2}", None, ",", True),
        ("word1 word2 similarity", "{0} {1} {2}", None, "\t", False),
        ("Index Word-2 gold Word-1 SD", "7 {1} {2} {0} 0.5", "", ";", False),
        ("Index Word-2 gold Word-1 SD", "7 {1} {2} {0} 0.5", "", " ", True),
    ],
)
def test_table_formats_give_same_word_list(
    tmp_path: Path,
    separator: str,
    quoted: bool,
    header: str | None,
    form: str,
    last: str | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Columns are found by name in any order, or as two words and a number. The last row may be empty."""
    mark = '"' if quoted else ""
    rows = [*([header] if header else []), *(form.format(*row) for row in ROWS)]
    lines = [separator.join(f"{mark}{field}{mark}" for field in row.split()) for row in rows]
    blank = last is None and separator != " "
    if blank:
        lines.append(separator * (form.count(" ")))
    found = read_similarity_list(write(tmp_path / "list.csv", "\ufeff" + "\n".join(lines)))
    assert found.pairs == [(first.lower(), second.lower()) for first, second, _ in ROWS]
    assert found.scores == [float(score) for _, _, score in ROWS]
    # A line of tabs is a blank line.
    assert ("1 row(s) without a score skipped" in caplog.text) == (blank and separator != "\t")
    assert "0 row(s)" not in caplog.text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("word1,word2,score,similarity\na,b,1,2\n", "several columns may be the judgment: 'score' and 'sim"),
        ("word1,word2,word1,score\na,b,c,1\n", "several columns may be the first word: 'word1' and 'word1'"),
        ("a,b,1,2\nc,d,3,4\n", "several columns may be the score: 3, 4"),
        ("word1,word2,x,y\na,b,1,2\n", "expected two words and a score"),
        ("word1,other,score\na,b,1\n", "expected two words and a score"),
    ],
)
def test_ambiguous_word_list_columns_are_error(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_similarity_list(write(tmp_path / "list.csv", text))
    assert "Name the columns in the first line" in str(caught.value)


def test_repeated_list_counts_once_and_names_are_numbered(tmp_path: Path) -> None:
    first = write(tmp_path / "list.txt", "a b 1\nc d 2\n")
    copy = write(tmp_path / "copy.csv", "word1,word2,score\na,b,1\nc,d,2\n")
    (tmp_path / "other").mkdir()
    second = write(tmp_path / "other" / "list.txt", "a b 2\nc d 2\n")
    found = read_similarity_lists([first, copy, second, first])
    assert [judgments.name for judgments in found] == ["list", "list (2)"]
    assert [judgments.scores for judgments in found] == [[1, 2], [2, 2]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n\n", "the list is empty"),
        ("word1\tword2\tscore\n", "a header and no words"),
        ("old\tnew\t1.5\nsmart\t9.2\n", "list.txt:2: two words and a score in column 3"),
        ("old\tnew\t1.5\nsmart\tclever\tvery\n", "list.txt:2: the score 'very' is not a number"),
        ("old\tnew\t1.5\nsmart\tclever\t9.2\t3\n", "list.txt:2: 4 fields, 3 are expected"),
        ("old\tnew\t1.5\nsmart\t\t9.2\nbig\tlarge\t9\n", "list.txt:2: a blank word"),
        ("old\tnew\t1.5\nsmart\t\t\n", "list.txt:2: a blank word"),
        ("word1\tword2\tscore\na\tb\t\n", "no pair has a score"),
    ],
)
def test_malformed_similarity_lists(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_similarity_list(write(tmp_path / "list.txt", text))


PAIRS = [("dog", "cat"), ("dog", "sky"), ("cat", "sky"), ("dog", "zebra"), ("zebra", "gnu")]
JUDGMENTS = SimilarityList("list", PAIRS, [9.0, 1.0, 2.0, 7.0, 8.0])
VECTORS = {"dog": [1.0, 0.2], "cat": [1.0, 0.4], "sky": [-0.2, 1.0], UNKNOWN_WORD: [1.0, 1.0]}


class Embedder(Model):
    def vectors_of(self, column: Any) -> npt.NDArray[np.float32]:
        return np.array([VECTORS.get(text, [0, 0]) for text in column.to_pylist()], dtype=np.float32)


def cosine(first: str, second: str) -> float:
    left, right = np.array(VECTORS[first]), np.array(VECTORS[second])
    return float(left @ right / np.linalg.norm(left) / np.linalg.norm(right))


def test_word_similarity_of_table_and_embedder() -> None:
    table = WordVectors(list(VECTORS), np.array(list(VECTORS.values()), dtype=np.float32))
    values = [cosine(*pair) if "zebra" not in pair else 0.0 for pair in PAIRS]
    expected = round(100 * float(spearmanr(JUDGMENTS.scores, values).statistic), 2)
    for model in (table, Embedder()):
        found = evaluate_words(model, JUDGMENTS)
        assert (found.pairs, found.found) == (5, 3)
        assert found.spearman == pytest.approx(expected)


def test_word_list_without_known_words() -> None:
    found = evaluate_words(WordVectors(["x"], np.ones((1, 2), np.float32)), JUDGMENTS)
    assert (found.spearman, found.found) == (None, 0)


@pytest.mark.parametrize(
    ("scores", "spearman", "found"),
    [
        ({("a", "b"): 0.1, ("c", "d"): 0.2, ("e", "f"): 0.3, ("g", "h"): 0.4}, 100.0, 4),
        # either order is found
        ({("b", "a"): 0.1, ("d", "c"): 0.2, ("f", "e"): 0.3, ("h", "g"): 0.4}, 100.0, 4),
        # both orders are averaged: 0.25 is between 0.2 and 0.3
        ({("a", "b"): 0.5, ("b", "a"): 0.0, ("c", "d"): 0.2, ("e", "f"): 0.3, ("g", "h"): 0.4}, 80.0, 4),
        # unseen pairs are 0: ranks 2.5 1 2.5 4 against 1 2 3 4
        ({("c", "d"): -1.0, ("g", "h"): 1.0}, 63.25, 2),
        ({}, None, 0),
    ],
)
def test_word_pairs_match_in_either_order(
    scores: dict[tuple[str, str], float], spearman: float | None, found: int
) -> None:
    judgments = SimilarityList("list", [("a", "b"), ("c", "d"), ("e", "f"), ("g", "h")], [1.0, 2.0, 3.0, 4.0])
    result = correlate(judgments, scores)
    assert (result.spearman, result.found, result.pairs) == (spearman, found, 4)
