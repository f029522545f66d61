"""Formats of scored sentence pairs, of other packages too, good and bad."""

import math
from pathlib import Path

import pytest

from paraforge.base.errors import InputError
from paraforge.embeddings.evaluation.sets import (
    SentencePairs,
    UnscoredError,
    read_official_pairs,
    read_set_file,
)

SICK = (
    "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n1\tA dog\tA cat\t2.5\tNEUTRAL\n"
)
BENCHMARK = (
    "main-captions\tMSRvid\t2012test\t0000\t2.500\tA dog\tA cat\n"
    'main-news\tMSRpar\t2012test\t0001\t4\tIt\'s "here"\tHere\turl\tother\n'
)
GLUE = "index\tgenre\tsource1\tsentence1\tsentence2\tscore\n0\tnews\tx\tA dog\tA cat\t2.5\n"


def read(path: Path) -> SentencePairs:
    (pairs,) = read_set_file(path, "name", "group")
    return pairs


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        pytest.param("2.5\tA dog\tA cat\n", 1, id="gold first"),
        pytest.param("2.5\tA dog\tA cat\ttest\n1\tx\ty\tdev\n", 2, id="gold first and a column more"),
        *(
            pytest.param(f"2.5\tA dog\tA cat\tsource\t{fifth}\tmore\tagain\n", 1, id=f"7 columns, {fifth!r}")
            for fifth in ("", "7", "word")
        ),
        pytest.param("2.5\tA dog\tA cat\r\n\r\n", 1, id="carriage returns and a blank line"),
        pytest.param("\ufeff2.5\tA dog\tA cat", 1, id="byte order mark, no line end"),
        pytest.param("A dog\tA cat\t2.5\n", 1, id="gold last"),
        pytest.param(BENCHMARK, 2, id="STS Benchmark"),
        pytest.param(SICK, 1, id="SICK"),
        pytest.param(GLUE, 1, id="header"),
        pytest.param("score,sentence1,sentence2\n2.5,A dog,A cat\n", 1, id="csv with a header"),
        pytest.param('"A dog","A cat",2.5\n"one, two","th""ree",1\n', 2, id="quoted csv"),
        pytest.param("A dog ||| A cat ||| 2.5\n", 1, id="phrase pairs"),
        pytest.param(
            "[NN] ||| A dog ||| A cat ||| x=1 PPDB2.0Score=2.5 y=2 ||| 0-0 ||| E\n", 1, id="PPDB 2.0"
        ),
    ],
)
def test_formats(tmp_path: Path, text: str, rows: int) -> None:
    pairs = read(write(tmp_path / "set", text))
    assert (pairs.first[0], pairs.second[0], pairs.gold[0]) == ("A dog", "A cat", 2.5)
    assert len(pairs) == rows
    assert (pairs.name, pairs.group, pairs.unscored) == ("name", "group", 0)


def test_quotes_are_text_in_a_tsv_and_quoting_in_a_csv(tmp_path: Path) -> None:
    assert read(write(tmp_path / "a", BENCHMARK)).first[1] == 'It\'s "here"'
    assert read(write(tmp_path / "b", '"one, two","th""ree",1\n')).second[0] == 'th"ree'


def test_other_line_separators_are_text(tmp_path: Path) -> None:
    pairs = read(write(tmp_path / "set", "1\tone\u2028two\tthree\x85four\n2\ta\tb\n"))
    assert pairs.first[0] == "one\u2028two"
    assert len(pairs) == 2


def test_rows_without_a_score_are_counted_and_passed_over(tmp_path: Path) -> None:
    pairs = read(write(tmp_path / "set", "\tA dog\tA cat\n2\ta\tb\n \t\tx\n3\tc\td\n"))
    assert pairs.unscored == 2
    assert math.isnan(pairs.gold[0])
    assert pairs.scored.first == ["a", "c"]
    assert pairs.scored.gold.tolist() == [2, 3]
    assert pairs.scored.unscored == 0
    assert read(write(tmp_path / "ppdb", "[X] ||| a ||| b ||| f=1\n")).unscored == 1


PPDB = "[X] ||| a ||| b ||| PPDB2.0Score="


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        pytest.param("2\ta\tb\nx\ta\tb\n", 2, "'x' is not a number", id="score"),
        pytest.param("2\ta\tb\n\n3\ta\n", 3, "2 fields, 3", id="too few"),
        pytest.param("2\ta\tb\n3\ta\tb\tc\n", 2, "4 fields, 3", id="too many"),
        pytest.param("2\ta\tb\n3\t \tb\n", 2, "blank sentence", id="blank sentence"),
        pytest.param("a\tb\n", 1, "not a format", id="no score"),
        pytest.param(SICK + "2\tx\n", 3, "2 fields, 4", id="short SICK row"),
        pytest.param('1,"a",b\n2,"a,b\n', 2, "not CSV", id="open quote"),
        pytest.param("a\tb\t2\nc\td\t3\te\n", 2, "4 fields, 3", id="too many after the score"),
        pytest.param(f"{PPDB}2 ||| \n{PPDB}z\n", 2, "'z'", id="PPDB"),
        pytest.param("", None, "empty", id="empty"),
        pytest.param("score,sentence1,sentence2\n", None, "no pairs", id="header alone"),
    ],
)
def test_malformed(tmp_path: Path, text: str, line: int | None, message: str) -> None:
    path = write(tmp_path / "set", text)
    with pytest.raises(InputError, match=message) as caught:
        read(path)
    assert caught.value.path == str(path)
    assert caught.value.line == line


def official(directory: Path, pairs: str, gold: str) -> tuple[Path, Path]:
    return write(directory / "STS.input.x.txt", pairs), write(directory / "STS.gs.x.txt", gold)


def test_official_distribution(tmp_path: Path) -> None:
    files = official(tmp_path, "a\tb\nc\td\turl\nunscored\tpair\n", "4.250\n\n0\n")
    pairs = read_official_pairs(*files, "x", "2015")
    assert pairs.unscored == 1
    assert pairs.scored.first == ["a", "unscored"]
    assert pairs.scored.gold.tolist() == [4.25, 0]


@pytest.mark.parametrize(
    ("pairs", "gold"),
    [
        pytest.param("a\tb\r\nc\td\r\n\r\n\r\n", "1\r\n\r\n\r\n", id="behind both, carriage returns"),
        pytest.param("a\tb\nc\td", "1\n\n\n\n", id="behind the scores"),
    ],
)
def test_blank_lines_at_the_end_of_the_official_files(tmp_path: Path, pairs: str, gold: str) -> None:
    """The last pair has no score: its blank line counts, any further ones do not."""
    found = read_official_pairs(*official(tmp_path, pairs, gold), "x", "2016")
    assert (found.first, found.second, found.unscored) == (["a", "c"], ["b", "d"], 1)


def test_a_file_of_several_parts(tmp_path: Path) -> None:
    rows = "sentence_A\tsentence_B\trelatedness_score\tSemEval_set\n"
    rows += "a\tb\t1\tTRAIN\nc\td\t2\tTEST\ne\tf\t3\tTRAIN\n"
    train, test = read_set_file(write(tmp_path / "SICK.txt", rows), "SICK", "SICK")
    assert (train.name, train.group, train.first) == ("SICK.TRAIN", "SICK.TRAIN", ["a", "e"])
    assert (test.name, test.second, test.gold.tolist()) == ("SICK.TEST", ["d"], [2])
    assert [part.group for part in read_set_file(tmp_path / "SICK.txt", "SICK", "2014")] == ["2014"] * 2


def test_a_header_without_a_score(tmp_path: Path) -> None:
    with pytest.raises(UnscoredError, match="has no column of scores") as caught:
        read(write(tmp_path / "set", "pair_ID\tsentence_A\tsentence_B\n1\ta\tb\n"))
    assert caught.value.line == 1


@pytest.mark.parametrize(
    ("pairs", "gold", "file", "line"),
    [
        pytest.param("a\tb\nc\td\n", "1\n", "STS.gs.x.txt", 2, id="a score is missing"),
        pytest.param("a\tb\n", "1\n2\n", "STS.gs.x.txt", 2, id="a score too many"),
        pytest.param("a\tb\nc d\n", "1\n2\n", "STS.input.x.txt", 2, id="one sentence"),
        pytest.param("a\tb\nc\td\n", "1\ntwo\n", "STS.gs.x.txt", 2, id="no number"),
        pytest.param("a\tb\n\nc\td\n", "1\n\n2\n", "STS.input.x.txt", 2, id="a blank pair in the midst"),
    ],
)
def test_malformed_official(tmp_path: Path, pairs: str, gold: str, file: str, line: int | None) -> None:
    files = official(tmp_path, pairs, gold)
    with pytest.raises(InputError) as caught:
        read_official_pairs(*files, "x", "2015")
    assert caught.value.path == str(tmp_path / file)
    assert caught.value.line == line
