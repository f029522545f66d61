"""``merge``: every pair of all corpora once, counts that add up, and no sentence in two splits. Whatever
writes a corpus or what is made of one is killed at any moment: nothing is half, nothing is left, and the same
call gives the same bytes."""

import logging
import shutil
import signal
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from paraforge.base.errors import InputError
from paraforge.corpus.publication.datasets import open_published
from paraforge.corpus.publication.manifest import read_manifest
from paraforge.corpus.publication.verification import verify
from paraforge.versions import __version__
from tests.corpus.publication.test_groups import SPLITS, by_split, joined, plain, related_pairs, rows_of
from tests.corpus.selection.corpora import with_columns
from tests.corpus.selection.published import publish_pairs
from tests.here import run_command
from tests.project import digests, warm_environment

SIDES = ("reference", "translation")
SAME = ("source", "line", "reference", "translation", "paraphrase_score")
# Runs the command line, killed at the n-th thing that is done to a file below a directory.
PROGRAM = """
import os, signal, sys
from paraforge.interface.cli import main

directory, left = sys.argv[1], int(sys.argv[2])
KINDS = ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.chmod", "shutil.copyfile")


def look(event, arguments):
    global left
    if event in KINDS and any(str(one).startswith(directory) for one in arguments):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


sys.addaudithook(look)
sys.argv = ["paraforge", *sys.argv[3:]]
try:
    main()
finally:
    print(left, file=sys.stderr)
"""
MANY = 1_000_000
COMMANDS = {
    "merge": ["merge", "one", "two"],
    "groups": ["export-corpus", "one", "--groups"],
    "part": ["export-corpus", "one", "--where", "overlap_1 < 0.5"],
    "csv": ["export-corpus", "one", "--format", "csv"],
    "text": ["export-corpus", "one"],
    "score": ["score", "pairs.csv"],
}


def run(*arguments: object) -> str:
    return str(run_command("merge", *arguments).output)


def refused(*arguments: object) -> str:
    with pytest.raises(InputError) as error:
        run(*arguments)
    return f"{error.value} {error.value.remedy}"


def named(table: pa.Table, source: str) -> pa.Table:
    return with_columns(table, source=[source] * len(table))


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three corpora; the second has other lines of the first one's sentences, and the third test pairs."""
    root = tmp_path_factory.mktemp("corpora")
    tables = [related_pairs(900, seed) for seed in (3, 4, 5)]
    shared = tables[0].slice(100, 300)
    tables[1] = pa.concat_tables([named(shared, "other"), named(tables[1].slice(0, 500), "wiki")])
    tables[2] = named(tables[2], "films")
    options: list[dict[str, Any]] = [
        {"name": "One", "licence": "mit", "licences": {"news": "MIT", "tatoeba": "CC-BY"}, "tags": ["a"]},
        {"name": "Two", "licence": "mit", "licences": {"wiki": "CC-BY-SA"}, "languages": ["en", "de"]},
        {"name": "Three", "licence": "cc0-1.0", "licences": {}, "splits": {"validation": 20, "test": 40}},
    ]
    for number, (table, more) in enumerate(zip(tables, options, strict=True)):
        publish_pairs(root / str(number), table=table, **more)
    return [root / str(number) / "corpus" for number in range(3)]


@pytest.fixture(scope="module")
def merged(corpora: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("merged") / "corpus"
    said = run(*corpora, "-o", output)
    assert f"{read_manifest(output).rows:,} pairs; " in said
    return output


def pair(row: dict[str, Any]) -> tuple[str, str]:
    return plain(row["reference"]), plain(row["translation"])


def identity(rows: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row[name] for name in SAME) for row in rows)


def test_every_pair_is_there_once(corpora: list[Path], merged: Path) -> None:
    expected: list[dict[str, Any]] = []
    for corpus in corpora:
        seen = {pair(row) for row in expected}
        expected += [row for row in rows_of(corpus) if pair(row) not in seen]
    found = rows_of(merged)
    assert identity(found) == identity(expected)
    total = sum(len(rows_of(corpus)) for corpus in corpora)
    assert 100 < total - len(found) < 300


def test_counts_add_up(corpora: list[Path], merged: Path) -> None:
    manifests = [read_manifest(corpus) for corpus in corpora]
    whole = read_manifest(merged)
    assert verify(merged).problems == []
    assert whole.counts.rows_in == sum(one.counts.rows_in for one in manifests)
    repeated = whole.counts.rejected.pop("in_earlier_corpus")
    assert whole.counts.kept + repeated == sum(one.counts.kept for one in manifests)
    assert whole.counts.rejected == sum((one.counts.rejected for one in manifests), Counter())
    assert whole.counts.failed == sum((one.counts.failed for one in manifests), Counter())
    assert whole.sources["other"].rejected["in_earlier_corpus"] == repeated


def test_where_it_comes_from(corpora: list[Path], merged: Path) -> None:
    manifests = [read_manifest(corpus) for corpus in corpora]
    whole = read_manifest(merged)
    assert whole.licences == {"news": "MIT", "tatoeba": "CC-BY", "wiki": "CC-BY-SA"}
    assert [one["signature"] for one in whole.steps["merge"]["corpora"]] == [m.signature for m in manifests]
    assert whole.name == "One + Two + Three"
    card = (merged / "_README.md").read_text(encoding="utf-8")
    assert "license: other" in card and "- de" in card and "an earlier one of the merged corpora" in card
    assert "Merged of One, Two, Three" in card


def test_groups_are_found_over_all(merged: Path) -> None:
    rows = rows_of(merged)
    numbers: dict[int, set[int]] = {}
    keys = [
        [plain(r["reference"])] + [plain(r["translation"])] * (r["paraphrase_score"] >= 0.8) for r in rows
    ]
    for row, root in zip(rows, joined(keys), strict=True):
        numbers.setdefault(root, set()).add(row["group"])
    assert all(len(found) == 1 for found in numbers.values())
    assert len({row["group"] for row in rows}) == len(numbers)


@pytest.mark.parametrize(
    ("scores", "options", "expected"),
    [
        ((0.6, 0.6), (), 0.6),
        ((0.6, 0.9), (), 0.9),
        ((0.6, 0.9), ("--group-score", "0.5"), 0.5),
        ((None, 0.7), (), 0.7),
        ((None, None), (), None),
        ((None, None), ("--group-score", "0.7"), 0.7),
    ],
)
def test_groups_are_of_the_score_that_the_corpora_say(
    scores: tuple[float | None, ...],
    options: tuple[str, ...],
    expected: float | None,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for number, score in enumerate(scores):
        table = named(related_pairs(400, seed=7), f"source{number}")
        publish_pairs(tmp_path / str(number), table=table.slice(300 * number, 300), group_score=score)
    with caplog.at_level(logging.WARNING):
        run(*(tmp_path / str(number) / "corpus" for number in range(2)), "-o", tmp_path / "out", *options)
    rows = rows_of(tmp_path / "out")
    run_command("export-corpus", tmp_path / "out", "--where", "true", "-o", tmp_path / "part")
    assert read_manifest(tmp_path / "out").group_score == expected
    assert read_manifest(tmp_path / "part").group_score == expected
    assert ("is taken; --group-score" in caplog.text) == (scores == (0.6, 0.9) and not options)
    keys = [
        [plain(r["reference"])] + [plain(r["translation"])] * (r["paraphrase_score"] >= (expected or 0))
        for r in rows
    ]
    assert [row.get("group") for row in rows] == (joined(keys) if expected else [None] * len(rows))


def test_what_is_held_out_stays_held_out(corpora: list[Path], merged: Path) -> None:
    found, before = by_split(merged), by_split(corpora[2])
    held = [identity(splits["validation"] + splits["test"]) for splits in (before, found)]
    assert held[0] < held[1]
    # One that is connected with both goes to the first.
    assert identity(before["validation"]) <= identity(found["validation"])
    texts = {
        name: {plain(row[side]) for row in rows for side in (*SIDES, "source_text")}
        for name, rows in found.items()
    }
    assert not texts["train"] & texts["test"] and not texts["train"] & texts["validation"]
    assert not texts["test"] & texts["validation"]
    assert sum(map(len, found.values())) == read_manifest(merged).rows


def test_rows_of_one_name_that_differ(corpora: list[Path], tmp_path: Path) -> None:
    publish_pairs(tmp_path / "again", table=related_pairs(900, seed=8))
    again = tmp_path / "again" / "corpus"
    said = refused(corpora[0], again, "-o", tmp_path / "out")
    assert "have other sentences in an earlier corpus, the first is line" in said and "--rename" in said
    assert not (tmp_path / "out").exists()
    run(corpora[0], again, "--rename", "-o", tmp_path / "out")
    whole = read_manifest(tmp_path / "out")
    assert {"news", "tatoeba", "news.2", "tatoeba.2"} == set(whole.sources)
    assert {row["source"] for row in rows_of(tmp_path / "out")} == set(whole.sources)
    assert whole.licences["tatoeba.2"] == "CC-BY 2.0 FR"
    assert verify(tmp_path / "out").problems == []


def test_a_merged_corpus_has_names_of_its_own(tmp_path: Path) -> None:
    """Names that renaming gives are those of no other source, in whatever order corpora are merged."""
    for number, name in enumerate("abc"):
        publish_pairs(tmp_path / name, table=related_pairs(60, seed=20 + number))
    one, two, three = (tmp_path / name / "corpus" for name in "abc")
    run(one, two, "--rename", "-o", tmp_path / "both")
    counts = read_manifest(tmp_path / "both").sources
    for place, corpora in enumerate([(tmp_path / "both", three), (three, tmp_path / "both"),
                                     (three, one, tmp_path / "both")]):  # fmt: skip
        run(*corpora, "--rename", "-o", tmp_path / str(place))
        found = read_manifest(tmp_path / str(place)).sources
        assert len(found) == sum(len(read_manifest(corpus).sources) for corpus in corpora)
        assert found["news.2"].rows_in == counts["news.2"].rows_in


def test_a_corpus_and_itself(corpora: list[Path], tmp_path: Path) -> None:
    run(corpora[0], corpora[0], "-o", tmp_path / "out")
    assert identity(rows_of(tmp_path / "out")) == identity(rows_of(corpora[0]))
    assert read_manifest(tmp_path / "out").licences == read_manifest(corpora[0]).licences


def test_two_empty_corpora(tmp_path: Path) -> None:
    nothing = {"filters": [{"kind": "length", "minimum": 99}]}
    for name in ("a", "b"):
        publish_pairs(tmp_path / name, rows=50, filters=nothing)
    run(tmp_path / "a" / "corpus", tmp_path / "b" / "corpus", "-o", tmp_path / "out")
    assert open_published(tmp_path / "out").rows == 0 and verify(tmp_path / "out").problems == []


def test_other_columns(corpora: list[Path], tmp_path: Path) -> None:
    """A column that only one has is null in the others' rows; groups are there if any has them."""
    table = named(related_pairs(300, seed=9), "plain").drop_columns(["digit_mismatch"])
    publish_pairs(tmp_path / "less", table=table, group_score=None)
    run(corpora[0], tmp_path / "less" / "corpus", "-o", tmp_path / "out")
    rows = rows_of(tmp_path / "out")
    assert all((row["digit_mismatch"] is None) == (row["source"] == "plain") for row in rows)
    assert all(row["group"] is not None for row in rows)


def test_scores_of_two_kinds_are_said(
    corpora: list[Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        run(corpora[0], corpora[1], "-o", tmp_path / "out")
    assert "made otherwise" not in caplog.text
    filters = {"filters": [{"kind": "length", "maximum": 9}]}
    publish_pairs(tmp_path / "b", table=named(related_pairs(300, 9), "b"), filters=filters)
    with caplog.at_level(logging.WARNING):
        run(corpora[0], tmp_path / "b" / "corpus", "-o", tmp_path / "other")
    assert f"{tmp_path}/b/corpus was made otherwise than {corpora[0]}: select." in caplog.text
    assert "select" not in read_manifest(tmp_path / "other").steps
    older = shutil.copytree(tmp_path / "b" / "corpus", tmp_path / "older")
    replace(read_manifest(older), version="0.0.9").write(older)
    with caplog.at_level(logging.WARNING):
        run(older, corpora[0], "-o", tmp_path / "third")
    assert (
        f"{corpora[0]} was made otherwise than {older}: paraforge ({__version__}, not 0.0.9)" in caplog.text
    )
    # A model's scores are a step of their own.
    scored = shutil.copytree(corpora[1], tmp_path / "scored")
    manifest = read_manifest(scored)
    steps = {**manifest.steps, "score-cosine": {"fingerprints": {"sentence_transformer": "one"}}}
    replace(manifest, steps=steps).write(scored)
    with caplog.at_level(logging.WARNING):
        run(corpora[0], scored, "-o", tmp_path / "fourth")
    assert f"{scored} was made otherwise than {corpora[0]}: score-cosine." in caplog.text


def test_what_cannot_be_merged(corpora: list[Path], tmp_path: Path) -> None:
    rejected = corpora[0].with_name("rejected")
    assert "not the kept pairs" in refused(corpora[0], rejected, "-o", tmp_path / "out")
    assert "two or more" in refused(corpora[0], "-o", tmp_path / "out")
    run_command("export-corpus", corpora[1], "--columns", "reference", "-o", tmp_path / "part")
    assert "no column translation" in refused(corpora[0], tmp_path / "part", "-o", tmp_path / "out")
    before = digests(corpora[2])
    assert "not a merged corpus" in refused(corpora[0], corpora[1], "-o", corpora[2], "--force")
    assert digests(corpora[2]) == before
    run(corpora[0], corpora[1], "-o", tmp_path / "out")
    run(corpora[0], corpora[1], "-o", tmp_path / "out", "--force")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("kills")
    other = with_columns(related_pairs(200, 5), source=["other"] * 200)
    for name, table, splits in (("one", related_pairs(450), SPLITS), ("two", other, {"test": 20})):
        publish_pairs(root / name, table=table, splits=splits)
    run_command("query", root / "one" / "corpus", "SELECT reference, translation FROM corpus LIMIT 200",
                "--output", root / "pairs.csv")  # fmt: skip
    return root


def arguments(kind: str, place: Path, output: Path) -> list[str]:
    paths = {
        "one": place / "one" / "corpus",
        "two": place / "two" / "corpus",
        "pairs.csv": place / "pairs.csv",
    }
    given = [str(paths.get(one, one)) for one in COMMANDS[kind]]
    names = {"text": [str(output / "out.jsonl")], "score": [str(output / "out.csv"), "--header"]}
    return [*given, *names.get(kind, ["-o", str(output / "out")])]


def killed(given: list[str], directory: Path, at: int) -> tuple[int, int]:
    """Run a command until the n-th thing that it does below a directory: exit status, what was left of n."""
    command = ["python", "-c", PROGRAM, str(directory), str(at), *given]
    ended = subprocess.run(command, env=warm_environment(), capture_output=True, text=True, check=False)
    return ended.returncode, int(ended.stderr.split()[-1]) if ended.returncode == 0 else 0


@pytest.mark.parametrize("kind", COMMANDS)
def test_killed_at_any_moment(kind: str, place: Path, tmp_path: Path) -> None:
    wanted, output = tmp_path / "wanted", tmp_path / "output"
    wanted.mkdir()
    code, left = killed(arguments(kind, place, wanted), wanted, MANY)
    steps, expected = MANY - left, digests(wanted)
    assert code == 0 and steps >= 2 and len(list(wanted.iterdir())) == 1
    for at in sorted({1, steps // 3, 2 * steps // 3, steps - 1, steps} - {0}):
        shutil.rmtree(output, ignore_errors=True)
        output.mkdir()
        assert killed(arguments(kind, place, output), output, at)[0] == -signal.SIGKILL
        finished = [path for path in output.iterdir() if not path.name.startswith(".")]
        assert all(digests(output)[name] == digest for name, digest in expected.items() if finished)
        run_command(*arguments(kind, place, output), *(["--force"] if finished else []))
        assert digests(output) == expected, f"killed at {at} of {steps}"
        assert len(list(output.iterdir())) == 1
