"""Formats of scored sentence pairs, and sets in directories."""

import gzip
import math
from pathlib import Path

import pytest

from paraforge.base.errors import InputError
from paraforge.embeddings.evaluation.sets import (
    SentencePairs,
    UnscoredError,
    read_official_pairs,
    read_set_file,
    read_sets,
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


def row(path: Path) -> str:
    """A pair that no other file has: two sets of the same pairs are one."""
    return f"2.5\tA dog\t{path}\n"


def write(path: Path, text: str | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes((row(path) if text is None else text).encode())
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
            "[NN] ||| A dog ||| A cat ||| x=1 NoPPDB2.0Score=9 PPDB2.0Score=2.5 y=2 ||| 0-0 |||\n",
            1,
            id="PPDB 2.0",
        ),
    ],
)
def test_formats(tmp_path: Path, text: str, rows: int) -> None:
    pairs = read(write(tmp_path / "set", text))
    assert (pairs.first[0], pairs.second[0], pairs.gold[0]) == ("A dog", "A cat", 2.5)
    assert len(pairs) == rows
    assert (pairs.name, pairs.group, pairs.unscored) == ("name", "group", 0)


def test_quotes_in_tsv_and_csv_sets(tmp_path: Path) -> None:
    assert read(write(tmp_path / "a", BENCHMARK)).first[1] == 'It\'s "here"'
    assert read(write(tmp_path / "b", '"one, two","th""ree",1\n')).second[0] == 'th"ree'


def test_other_line_separators_are_text(tmp_path: Path) -> None:
    pairs = read(write(tmp_path / "set", "1\tone\u2028two\tthree\x85four\n2\ta\tb\n"))
    assert pairs.first[0] == "one\u2028two"
    assert len(pairs) == 2


def test_unscored_rows_are_counted_and_skipped(tmp_path: Path) -> None:
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
def test_trailing_blank_lines_of_official_files(tmp_path: Path, pairs: str, gold: str) -> None:
    """The last pair has no score, so its blank line counts; further blank lines do not."""
    found = read_official_pairs(*official(tmp_path, pairs, gold), "x", "2016")
    assert (found.first, found.second, found.unscored) == (["a", "c"], ["b", "d"], 1)


def test_set_file_with_several_parts(tmp_path: Path) -> None:
    rows = "sentence_A\tsentence_B\trelatedness_score\tSemEval_set\n"
    rows += "a\tb\t1\tTRAIN\nc\td\t2\tTEST\ne\tf\t3\tTRAIN\n"
    train, test = read_set_file(write(tmp_path / "SICK.txt", rows), "SICK", "SICK")
    assert (train.name, train.group, train.first) == ("SICK.TRAIN", "SICK.TRAIN", ["a", "e"])
    assert (test.name, test.second, test.gold.tolist()) == ("SICK.TEST", ["d"], [2])
    assert [part.group for part in read_set_file(tmp_path / "SICK.txt", "SICK", "2014")] == ["2014"] * 2


def test_header_without_score_column(tmp_path: Path) -> None:
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


def write_official(path: Path, name: str, prefix: str = "STS", gold: Path | None = None) -> Path:
    write((gold or path) / f"{prefix}.gs.{name}.txt", "2.5\n")
    return write(path / f"{prefix}.input.{name}.txt", f"A dog\t{path} {name}\n")


def named(*paths: Path) -> list[tuple[str, str]]:
    return [(pairs.name, pairs.group) for pairs in read_sets(paths)]


def test_directory_of_tsv_sets(tmp_path: Path) -> None:
    years = ["2012.MSRpar", "2012.MSRvid", "2012train.MSRpar", "2017.track5.en-en"]
    for name in (*years, "stsb-dev"):
        write(tmp_path / f"{name}.tsv")
    write(tmp_path / "SICK_trial.txt", SICK)
    write(tmp_path / "stsb-LICENSE.txt", "All rights reserved.\n")
    names = [*years, "SICK_trial", "stsb-dev"]
    assert named(tmp_path) == [(name, name.partition(".")[0]) for name in names]


def test_official_sts_layouts(tmp_path: Path) -> None:
    for name in ("MSRpar", "surprise.OnWN", "ALL"):
        write_official(tmp_path / "STS12-en-test", name)
    write_official(tmp_path / "2013" / "test", "headlines", gold=tmp_path / "2013" / "test-gs")
    write_official(tmp_path / "STS2014-en", "deft-news")
    write_official(tmp_path / "sixteen", "answer-answer", "STS2016")
    write_official(tmp_path / "somewhere", "track5.en-en")
    write(tmp_path / "STSBenchmark" / "sts-dev.csv", "g\tf\t2012\t1\t2.5\tA dog\tA cat\n")
    assert named(tmp_path) == [
        ("2013.headlines", "2013"), ("2012.MSRpar", "2012"), ("2012.surprise.OnWN", "2012"),
        ("2014.deft-news", "2014"), ("sts-dev", "sts-dev"), ("2016.answer-answer", "2016"),
        ("track5.en-en", "track5.en-en"),
    ]  # fmt: skip


def test_year_excludes_training_sets_and_other_languages(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for place in ("train", "test-gold"):
        write_official(tmp_path / "2012" / place, "MSRpar")
    for track in ("track1.ar-ar", "track4a.es-en", "track5.en-en"):
        write_official(tmp_path / "STS2017.eval.v1.1", track, gold=tmp_path / "STS2017.gs")
    expected = ["2012.MSRpar", "2012train.MSRpar", "2017.track5.en-en"]
    assert named(tmp_path) == [(name, name.partition(".")[0]) for name in expected]
    assert caplog.text.count("is not entirely English") == 2
    arabic = tmp_path / "STS2017.eval.v1.1" / "STS.input.track1.ar-ar.txt"
    assert named(arabic) == [("2017.track1.ar-ar", "2017")]


def test_year_outside_task_is_ignored(tmp_path: Path) -> None:
    """So is a year in a directory far above. If there are two score files, neither is chosen."""
    years = range(2009, 2027)
    found = [named(write_official(tmp_path / str(year) / "train", "a")) for year in years]
    assert found == [
        [(f"{year}train.a", f"{year}train") if 2012 <= year <= 2017 else ("a", "a")] for year in years
    ]
    for place, name, year in (("2012/a/b", "near", "2012."), ("2012/a/b/c", "far", "")):
        (found,) = named(write_official(tmp_path / place, name))
        assert found[0] == f"{year}{name}"
    sets = [write_official(tmp_path / "two" / place, "a", gold=tmp_path / "two" / place) for place in "xy"]
    (sets[0].parent / "STS.gs.a.txt").rename(tmp_path / "two" / "STS.gs.a.txt")
    assert named(sets[0]) == [("a", "a")]
    write(tmp_path / "two" / "z" / "STS.gs.a.txt", "2.5\n")
    with pytest.raises(InputError, match=r"no STS\.gs\.a\.txt with its scores"):
        read_sets(sets[:1])


def test_other_files_in_set_directory_are_skipped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path / "dev.tsv")
    write(tmp_path / "__MACOSX" / "._dev.tsv", "\0\5\x16")
    write(tmp_path / ".ipynb_checkpoints" / "dev.csv", "?")
    with pytest.raises(InputError, match="has no column of scores"):
        read_sets([write(tmp_path / "test.tsv", "sentence1\tsentence2\na\tb\n")])
    assert named(tmp_path) == [("dev", "dev")]
    assert "test.tsv:1: the header has no column of scores" in caplog.text
    (tmp_path / "dev.tsv").unlink()
    with pytest.raises(InputError, match="no set with scores"):
        read_sets([tmp_path])


def test_set_files_are_read_with_any_name(tmp_path: Path) -> None:
    assert named(write(tmp_path / "scores.txt")) == [("scores", "scores")]
    assert named(write_official(tmp_path / "STS2015", "belief")) == [("2015.belief", "2015")]


ONE_SET = {
    "2012.MSRpar.tsv": "5.0\tA dog\tA cat\n\ta\tb\n2.5\tBirds, sing\tA cat\n",
    "pairs.csv": 'sentence1,sentence2,score\n"Birds, sing",A cat,2.50\n\nA dog,A cat,5\na,b,\n',
    "phrases.tsv": "A dog ||| A cat ||| 5\nBirds, sing ||| A cat ||| 2.5\na ||| b |||\n",
}


@pytest.mark.parametrize("order", [1, -1])
def test_repeated_set_counts_once(tmp_path: Path, order: int, caplog: pytest.LogCaptureFixture) -> None:
    files = [write(tmp_path / "sets" / name, text) for name, text in ONE_SET.items()]
    write_official(tmp_path / "sets" / "STS2012", "MSRvid")
    copies = [tmp_path / "copies" / name for name in ("copy.tsv", "2012.copy.tsv.gz", "link.tsv")]
    copies[0].parent.mkdir()
    copies[0].write_text(ONE_SET["2012.MSRpar.tsv"])
    copies[1].write_bytes(gzip.compress(ONE_SET["2012.MSRpar.tsv"].encode()))
    copies[2].symlink_to(files[0])
    sets = read_sets([files[0].parent, *copies, files[0].parent, files[0]][::order])
    assert sorted(pairs.group for pairs in sets) == ["2012", "2012"]
    assert sorted(map(len, sets)) == [1, 3]
    other = write(tmp_path / "2013.copy.tsv", ONE_SET["2012.MSRpar.tsv"])
    both = [pairs.group for pairs in read_sets([files[0], other][::order])]
    assert both == ["2012", "2013"][::order][:1]  # of two years it is the first
    # The directory is read twice, so that MSRvid is passed over as well.
    assert caplog.text.count("has the same pairs as") == len(files) + len(copies) + len(files) + 2
    (named,) = read_sets([copies[0], files[0]][::order])
    assert named.group == "2012"  # of a set with a year and one without, it is the former


def test_same_set_needs_same_pairs_and_scores(tmp_path: Path) -> None:
    first = write(tmp_path / "a.tsv", "1\ta\tb\n2\tc\td\n")
    changes = ("", "2\tc\te\n", "2.1\tc\td\n", "\tc\td\n")
    others = [*("1\ta\tb\n" + line for line in changes), "2\ta\tb\n1\tc\td\n"]
    paths = [write(tmp_path / f"{number}.tsv", text) for number, text in enumerate(others)]
    assert len(named(first, *paths)) == 1 + len(others)


def test_two_sets_with_same_name(tmp_path: Path) -> None:
    first, second = write(tmp_path / "a" / "dev.tsv"), write(tmp_path / "b" / "dev.tsv")
    assert named(first, second) == [("dev", "dev"), ("dev (2)", "dev (2)")]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("missing.tsv", None, "no such file"),
        (".", None, "no set"),
        ("STS.gs.x.txt", "1\n", "only scores"),
        ("STS.input.y.txt", "a\tb\n", r"no STS\.gs\.y\.txt"),
    ],
)
def test_unreadable_sets_are_error(tmp_path: Path, name: str, text: str | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_sets([write(tmp_path / name, text) if text else tmp_path / name])


def test_directory_without_or_with_broken_sets(tmp_path: Path) -> None:
    broken = write(tmp_path / "sub" / "2012.x.tsv", "2.5\tA dog\tA cat\nx\ta\tb\n")
    with pytest.raises(InputError, match=r"2012\.x\.tsv:2: the score"):
        read_sets([broken.parent])
    with pytest.raises(InputError, match="no sets"):
        read_sets([])
