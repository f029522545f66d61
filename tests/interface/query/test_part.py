"""Part of a corpus is a corpus: its rows, counts, signature and card, in every format, and after any kill."""

import csv
import json
import signal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraforge.base.errors import InputError
from paraforge.base.shards.store import read_parquet
from paraforge.corpus.publication.datasets import open_published
from paraforge.corpus.publication.manifest import read_manifest
from paraforge.corpus.publication.verification import verify
from paraforge.interface.query.part import FORMATS
from tests.here import run_command
from tests.project import digests
from tests.project import run as run_program

WHERE = "paraphrase_score > 0.5 AND source <> 'x'"


def run(*arguments: object) -> str:
    return str(run_command("export-corpus", *arguments).output)


def rows_of(directory: Path) -> list[dict[str, object]]:
    tables = [read_parquet(path) for path in open_published(directory).files]
    return list(pa.concat_tables(tables).to_pylist())


def matching(corpus: Path) -> list[dict[str, object]]:
    """A slow oracle of WHERE."""
    return [row for row in rows_of(corpus) if (row["paraphrase_score"] or 0) > 0.5]  # type: ignore[operator]


def test_the_part_is_a_whole_corpus_whose_counts_add_up(corpus: Path, tmp_path: Path) -> None:
    run(corpus, "--where", WHERE, "-o", tmp_path / "part")
    wanted = matching(corpus)
    assert rows_of(tmp_path / "part") == wanted and 0 < len(wanted) < len(rows_of(corpus))
    assert not verify(tmp_path / "part").problems
    whole, part = read_manifest(corpus), read_manifest(tmp_path / "part")
    assert part.counts.rows_in == whole.counts.rows_in and part.counts.kept == len(wanted)
    assert part.counts.rejected == whole.counts.rejected + type(whole.counts.rejected)(
        where=whole.counts.kept - len(wanted)
    )
    assert part.licences == whole.licences and part.steps.items() >= whole.steps.items()
    before, version = whole.signature.rsplit("|", 1)
    assert part.signature.startswith(f"{before}|where:paraphrase_score->-0.5-AND-")
    assert part.signature.endswith(version)
    card = (tmp_path / "part" / "_README.md").read_text(encoding="utf-8")
    assert "outside of this part: " in card and " AND source " in card and f"A part of {whole.name}" in card
    # Another condition is another signature; none is the signature of the whole.
    run(corpus, "--where", WHERE.replace("'x'", "'y'"), "-o", tmp_path / "other")
    assert read_manifest(tmp_path / "other").signature != part.signature
    run(corpus, "-o", tmp_path / "all")
    assert read_manifest(tmp_path / "all").signature == whole.signature
    assert read_manifest(tmp_path / "all").counts == whole.counts and rows_of(tmp_path / "all") == rows_of(
        corpus
    )


def test_a_part_of_a_part_has_both_conditions(corpus: Path, tmp_path: Path) -> None:
    run(corpus, "--where", WHERE, "-o", tmp_path / "one")
    run(tmp_path / "one", "--where", "rank = 0", "-o", tmp_path / "two")
    run(corpus, "--where", f"({WHERE}) AND (rank = 0)", "-o", tmp_path / "both")
    two, both = read_manifest(tmp_path / "two"), read_manifest(tmp_path / "both")
    assert rows_of(tmp_path / "two") == rows_of(tmp_path / "both")
    assert two.counts == both.counts
    assert two.steps["export"]["parameters"] == both.steps["export"]["parameters"]


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_has_the_same_values_and_the_lineage(kind: str, corpus: Path, tmp_path: Path) -> None:
    for more in ([], ["--force"]):
        run(corpus, "--where", WHERE, "--columns", "translation", "-f", kind, "-o", tmp_path / "part", *more)
    manifest = read_manifest(tmp_path / "part")
    columns = ["source", "line", "translation", "rank"]
    assert {column["name"] for column in manifest.columns} == set(columns)
    found: list[dict[str, object]] = []
    for path in (tmp_path / "part" / file.path for file in manifest.files):
        if kind == "parquet":
            found += pq.read_table(path).to_pylist()
        elif kind == "jsonl":
            found += map(json.loads, path.read_text(encoding="utf-8").splitlines())
        else:
            with path.open(encoding="utf-8", newline="") as file:
                found += csv.DictReader(file, delimiter="\t" if kind == "tsv" else ",")
    wanted = [{name: row[name] for name in columns} for row in matching(corpus)]
    assert [{n: str(row[n]) for n in columns} for row in found] == [
        {n: str(row[n]) for n in columns} for row in wanted
    ]
    assert not verify(tmp_path / "part").problems
    if kind != "parquet":
        with pytest.raises(InputError, match="exported as text"):
            run(tmp_path / "part", "-")
        (tmp_path / "part" / manifest.files[0].path).write_text("damaged")
        assert verify(tmp_path / "part").problems


def test_a_condition_that_nothing_meets_is_an_empty_corpus(corpus: Path, tmp_path: Path) -> None:
    run(corpus, "--where", "false", "-o", tmp_path / "part")
    assert rows_of(tmp_path / "part") == [] and not verify(tmp_path / "part").problems


def test_datasets_reads_the_part(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    for kind in FORMATS:
        run(corpus, "--where", WHERE, "-f", kind, "-o", tmp_path / kind)
        assert datasets.load_dataset(str(tmp_path / kind), split="train").num_rows == len(matching(corpus))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "OUT", "--where", "colour = 1"], "colour"),
        (["-o", "OUT", "--where", "true); SELECT (1"], "not one condition|syntax"),
        (["-o", "OUT", "--where", "Random () < 0.5"], "another part each time"),
        (["-o", "OUT", "--columns", "colour"], "no column colour"),
        (["-o", "OUT", "-f", "paranmt"], "There are parquet, jsonl, csv, tsv"),
        ([], "Give a file, or --output DIR"),
        (["-", "-o", "OUT"], "Give a file, or --output DIR"),
        (["OUT", "--where", "true"], "--where is for --output DIR"),
        (["OUT.csv"], "does not say which format"),
        (["OUT.parquet"], "does not say which format"),
    ],
)
def test_mistakes_are_said_before_anything_is_written(
    corpus: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        run(corpus, *(one.replace("OUT", str(tmp_path / "out")) for one in arguments))
    assert not list(tmp_path.iterdir())


def test_rejected_pairs_and_foreign_directories_are_refused(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not the kept pairs"):
        run(corpus.with_name("rejected"), "-o", tmp_path / "part")
    before = digests(corpus)
    with pytest.raises(InputError, match="--force does not replace it"):
        run(corpus, "-o", corpus, "--force")
    assert digests(corpus) == before


@pytest.mark.parametrize("moment", ["export.describe", "export._write", "export.write_description"])
def test_a_kill_leaves_what_was_there_and_the_next_run_is_as_if_nothing_had_been(
    corpus: Path, tmp_path: Path, moment: str
) -> None:
    run(corpus, "--where", WHERE, "-o", tmp_path / "wanted")
    run(corpus, "-o", tmp_path / "killed")
    before = digests(tmp_path / "killed")
    code = (
        "import os, signal, sys; from paraforge.interface.query import part as export; "
        f"{moment} = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL); "
        "from paraforge.interface.cli import main; main()"
    )
    arguments = ["export-corpus", corpus, "--where", WHERE, "-o", tmp_path / "killed", "--force"]
    run_program("python", "-c", code, *map(str, arguments), cwd=tmp_path, expect=-signal.SIGKILL)
    assert digests(tmp_path / "killed") == before
    run(*arguments[1:])
    assert digests(tmp_path / "killed") == digests(tmp_path / "wanted")
    assert {path.name for path in tmp_path.iterdir()} == {"wanted", "killed"}
