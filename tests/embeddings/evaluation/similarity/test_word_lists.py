"""Lists of word pairs in their several forms, and what is wrong with bad ones."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from paraforge.base.errors import InputError
from paraforge.embeddings.evaluation.similarity.word_lists import read_similarity_list, read_similarity_lists


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "text",
    [
        "word1\tword2\tPOS\tSimLex999\tconc(w1)\nold\tNew\tA\t1.58\t2.72\nsmart\tclever\tA\t9.2\t1.75\n",
        "Word 1,Word 2,Human (mean)\nold,new,1.58\nsmart,clever,9.2\n",
        "old new 1.58\nsmart clever 9.2\n",
        "\ufeffold\tnew\tA\t1.58\r\nsmart\tclever\tA\t9.2\r\n\n",
        "Word 1,Word 2,Human (mean),1,2\nold,new,1.58,1,2\nsmart,clever,9.2,9,9\n",
        '"old","new","1.58"\nsmart,"clever",9.2\n',
        "old;new;1.58\nsmart;clever;9.2\n",
    ],
    ids=[
        "SimLex-999",
        "WordSim-353",
        "MEN",
        "byte order mark and CRLF",
        "numbered judges in the header",
        "quoted",
        "semicolons",
    ],
)
def test_similarity_lists(tmp_path: Path, text: str) -> None:
    found = read_similarity_list(write(tmp_path / "list.txt", text))
    assert found.name == "list"
    assert found.pairs == [("old", "new"), ("smart", "clever")]
    assert found.scores == [1.58, 9.2]


ROWS = [("old", "New", 1.58), ("smart", "clever", 9.2), ("first", "mean", 5.0), ("7", "seven", 10.0)]


def as_table(
    separator: str, header: bool, index: str, quoted: bool, score_first: bool, extra: bool, last: bool
) -> str:
    """The rows as some program writes them; last: with a row that has no values."""

    def fields(first: str, second: str, score: str, number: str, more: str) -> list[str]:
        words = [score, first, second] if score_first else [first, second, score]
        return [*([number] if index else []), *words, *([more] if extra else [])]

    rows = [
        fields(first, second, str(score), str(row), f"0.{row}")
        for row, (first, second, score) in enumerate(ROWS, start=1)
    ]
    if last:
        rows.append(fields("", "", "", str(len(ROWS) + 1), ""))
    if header:
        names = fields("word1", "Word 2", "similarity", "" if index == "pandas" else "id", "SD")
        rows.insert(0, names[1:] if index == "R" else names)
    mark = '"' if quoted else ""
    return "".join(separator.join(f"{mark}{field}{mark}" for field in row) + "\n" for row in rows)


@pytest.mark.parametrize("begin", ["", "\ufeff"], ids=["", "byte order mark"])
@pytest.mark.parametrize("quoted", [False, True], ids=["", "quoted"])
@pytest.mark.parametrize("index", ["", "pandas", "R", "named"])
@pytest.mark.parametrize("separator", ["\t", ",", ";", " "], ids=["tab", "comma", "semicolon", "blank"])
def test_every_form_of_a_table_gives_the_same_list(
    tmp_path: Path, separator: str, index: str, quoted: bool, begin: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Header or none, judgement before or behind the words, further columns, a last row without values."""
    seen = 0
    for header, score_first, extra, last in itertools.product([True, False], repeat=4):
        if extra and not header:
            continue  # not clear which number is the judgement, see below
        if not quoted and separator == " " and (header or last):
            continue  # a blank inside a name, or nothing between blanks
        caplog.clear()
        text = begin + as_table(separator, header, index, quoted, score_first, extra, last)
        found = read_similarity_list(write(tmp_path / "list.csv", text))
        assert found.pairs == [(first.lower(), second.lower()) for first, second, _ in ROWS], text
        assert found.scores == [score for _, _, score in ROWS], text
        blank = separator == "\t" and not index and not quoted  # the last row is a blank line then
        assert ("1 row(s) without a judgement passed over" in caplog.text) == (last and not blank)
        seen += 1
    assert seen >= 2


def test_a_decimal_comma_between_semicolons(tmp_path: Path) -> None:
    found = read_similarity_list(write(tmp_path / "list.csv", "old;new;1,58\nsmart;clever;9\n"))
    assert found.scores == [1.58, 9]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("word1,word2,score,similarity\na,b,1,2\n", "'score' and 'similarity' may both be the judgement"),
        ("word1,word1,score\na,b,1\n", "'word1' and 'word1' may both be the first word"),
        ("a,b,1,2\nc,d,3,4\n", "the score may be in any of the columns 3, 4"),
        ("word1,word2,x,y\na,b,1,2\n", "the score may be in any of the columns 3, 4"),
        ("5,a,b,1\n3,c,d,4\n", "the score may be in any of the columns 1, 4"),
        ("1,a,N,b\n2,c,V,d\n", "not clear which columns are the words"),
        ("word1,other,score\na,b,1\n", "two words and a score are expected"),
    ],
)
def test_what_is_ambiguous_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_similarity_list(write(tmp_path / "list.csv", text))
    assert "Name the columns in a first line" in str(caught.value)


def test_a_list_given_twice_counts_once_and_one_of_its_name_has_a_number(tmp_path: Path) -> None:
    first = write(tmp_path / "list.txt", "a b 1\nc d 2\n")
    copy = write(tmp_path / "copy.csv", "word1,word2,score\na,b,1\nc,d,2\n")
    (tmp_path / "other").mkdir()
    second = write(tmp_path / "other" / "list.txt", "a b 2\nc d 2\n")
    found = read_similarity_lists([first, copy, second, first])
    assert [judgements.name for judgements in found] == ["list", "list (2)"]
    assert [judgements.scores for judgements in found] == [[1, 2], [2, 2]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("\n\n", "the list is empty"),
        ("word1\tword2\tscore\n", "a header and no words"),
        ("old\tnew\t1.5\nsmart\t9.2\n", "list.txt:2: two words and a score in column 3"),
        ("old\tnew\t1.5\nsmart\tclever\tvery\n", "list.txt:2: the score 'very' is no number"),
        ("old\tnew\nsmart\tclever\n", "list.txt:2: two words and a score"),
        ("old\tnew\t1.5\nsmart\tclever\tnan\n", "list.txt:2: the score 'nan'"),
        ("old\tnew\t1.5\nsmart\tclever\t9.2\t3\n", "list.txt:2: 4 fields, 3 are expected"),
        ("old\tnew\t1.5\nsmart\t\t9.2\nbig\tlarge\t9\n", "list.txt:2: a blank word"),
        ("word1\tword2\tscore\na\tb\t\n", "no pair has a judgement"),
    ],
)
def test_malformed_similarity_lists(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_similarity_list(write(tmp_path / "list.txt", text))


def test_no_such_list(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_similarity_list(tmp_path / "absent")


def test_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_bytes(b"old\tnew\t1\ncaf\xe9\tbar\t2\n")
    with pytest.raises(InputError, match=r"list.txt:2: not UTF-8"):
        read_similarity_list(tmp_path / "list.txt")
