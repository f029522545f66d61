"""Sets in directories: what is read, and to which year it belongs."""

import gzip
from pathlib import Path

import pytest

from paraforge.base.errors import InputError
from paraforge.embeddings.evaluation.sets import read_sets

SICK = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\n1\tA dog\tA cat\t2.5\n"


def row(path: Path) -> str:
    """A pair that no other file has: two sets of the same pairs are one."""
    return f"2.5\tA dog\t{path}\n"


def write(path: Path, text: str | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(row(path) if text is None else text)
    return path


def write_official(path: Path, name: str, prefix: str = "STS", gold: Path | None = None) -> Path:
    write((gold or path) / f"{prefix}.gs.{name}.txt", "2.5\n")
    return write(path / f"{prefix}.input.{name}.txt", f"A dog\t{path} {name}\n")


def named(*paths: Path) -> list[tuple[str, str]]:
    return [(pairs.name, pairs.group) for pairs in read_sets(paths)]


def test_a_directory_of_tsv_files(tmp_path: Path) -> None:
    for name in ("2012.MSRpar", "2012.MSRvid", "2012train.MSRpar", "2017.track5.en-en", "stsb-dev"):
        write(tmp_path / f"{name}.tsv")
    write(tmp_path / "SICK_trial.txt", SICK)
    write(tmp_path / "stsb-LICENSE.txt", "All rights reserved.\n")
    assert named(tmp_path) == [
        ("2012.MSRpar", "2012"),
        ("2012.MSRvid", "2012"),
        ("2012train.MSRpar", "2012train"),
        ("2017.track5.en-en", "2017"),
        ("SICK_trial", "SICK_trial"),
        ("stsb-dev", "stsb-dev"),
    ]


def test_the_official_layouts(tmp_path: Path) -> None:
    write_official(tmp_path / "STS12-en-test", "MSRpar")
    write_official(tmp_path / "STS12-en-test", "surprise.OnWN")
    write_official(tmp_path / "STS12-en-test", "ALL")
    write_official(tmp_path / "2013" / "test", "headlines", gold=tmp_path / "2013" / "test-gs")
    write_official(tmp_path / "STS2014-en", "deft-news")
    write_official(tmp_path / "sixteen", "answer-answer", "STS2016")
    write_official(tmp_path / "somewhere", "track5.en-en")
    write(tmp_path / "STSBenchmark" / "sts-dev.csv", "g\tf\t2012\t1\t2.5\tA dog\tA cat\n")
    assert named(tmp_path) == [
        ("2013.headlines", "2013"),
        ("2012.MSRpar", "2012"),
        ("2012.surprise.OnWN", "2012"),
        ("2014.deft-news", "2014"),
        ("sts-dev", "sts-dev"),
        ("2016.answer-answer", "2016"),
        ("track5.en-en", "track5.en-en"),
    ]


def test_training_sets_and_other_languages_stay_out_of_a_years_mean(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_official(tmp_path / "2012" / "train", "MSRpar")
    write_official(tmp_path / "2012" / "test-gold", "MSRpar")
    for track in ("track1.ar-ar", "track4a.es-en", "track5.en-en"):
        write_official(tmp_path / "STS2017.eval.v1.1", track, gold=tmp_path / "STS2017.gs")
    assert named(tmp_path) == [
        ("2012.MSRpar", "2012"),
        ("2012train.MSRpar", "2012train"),
        ("2017.track5.en-en", "2017"),
    ]
    assert caplog.text.count("is not entirely English") == 2
    assert named(tmp_path / "STS2017.eval.v1.1" / "STS.input.track1.ar-ar.txt") == [
        ("2017.track1.ar-ar", "2017")
    ]


def test_a_year_that_is_none_of_the_task_says_nothing(tmp_path: Path) -> None:
    """Neither does one far above; of two files of scores none is chosen."""
    write_official(tmp_path / "2026" / "train", "MSRpar")
    assert named(tmp_path / "2026") == [("MSRpar", "MSRpar")]
    for place, name, year in (("2012/a/b", "near", "2012."), ("2012/a/b/c", "far", "")):
        (found,) = named(write_official(tmp_path / place, name))
        assert found[0] == f"{year}{name}"
    sets = [write_official(tmp_path / "two" / place, "a", gold=tmp_path / "two" / place) for place in "xy"]
    (sets[0].parent / "STS.gs.a.txt").rename(tmp_path / "two" / "STS.gs.a.txt")
    assert named(sets[0]) == [("a", "a")]
    write(tmp_path / "two" / "z" / "STS.gs.a.txt", "2.5\n")
    with pytest.raises(InputError, match=r"no STS\.gs\.a\.txt with its scores"):
        read_sets(sets[:1])


def test_what_is_no_scored_set_in_a_directory_is_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
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


def test_files_are_read_whatever_their_names(tmp_path: Path) -> None:
    assert named(write(tmp_path / "scores.txt")) == [("scores", "scores")]
    assert named(write_official(tmp_path / "STS2015", "belief")) == [("2015.belief", "2015")]


ONE_SET = {
    "2012.MSRpar.tsv": "5.0\tA dog\tA cat\n\ta\tb\n2.5\tBirds, sing\tA cat\n",
    "pairs.csv": 'sentence1,sentence2,score\n"Birds, sing",A cat,2.50\n\nA dog,A cat,5\na,b,\n',
    "phrases.tsv": "A dog ||| A cat ||| 5\nBirds, sing ||| A cat ||| 2.5\na ||| b |||\n",
}


@pytest.mark.parametrize("order", [1, -1])
def test_a_set_given_twice_counts_once(tmp_path: Path, order: int, caplog: pytest.LogCaptureFixture) -> None:
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


def test_only_the_same_pairs_and_scores_are_the_same_set(tmp_path: Path) -> None:
    first = write(tmp_path / "a.tsv", "1\ta\tb\n2\tc\td\n")
    changes = ("", "2\tc\te\n", "2.1\tc\td\n", "\tc\td\n")
    others = [*("1\ta\tb\n" + line for line in changes), "2\ta\tb\n1\tc\td\n"]
    paths = [write(tmp_path / f"{number}.tsv", text) for number, text in enumerate(others)]
    assert len(named(first, *paths)) == 1 + len(others)


def test_two_sets_of_one_name(tmp_path: Path) -> None:
    first, second = write(tmp_path / "a" / "dev.tsv"), write(tmp_path / "b" / "dev.tsv")
    assert named(first, second) == [("dev", "dev"), ("dev (2)", "dev (2)")]


def test_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_sets([tmp_path / "missing.tsv"])
    with pytest.raises(InputError, match="no set"):
        read_sets([tmp_path])
    with pytest.raises(InputError, match="only scores"):
        read_sets([write(tmp_path / "STS.gs.x.txt", "1\n")])
    with pytest.raises(InputError, match=r"no STS\.gs\.y\.txt"):
        read_sets([write(tmp_path / "STS.input.y.txt", "a\tb\n")])
    broken = write(tmp_path / "sub" / "2012.x.tsv", "2.5\tA dog\tA cat\nx\ta\tb\n")
    with pytest.raises(InputError, match=r"2012\.x\.tsv:2: the score"):
        read_sets([broken.parent])
    with pytest.raises(InputError, match="no sets"):
        read_sets([])
