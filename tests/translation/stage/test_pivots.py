"""Several pivots in one corpus: joined by reference, counted, and killed."""

import logging
import shutil
from collections import Counter, defaultdict
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from paraforge.base.errors import ConfigurationError
from paraforge.base.files import read_json
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardDirectory
from paraforge.interface.configuration import check_parameters
from paraforge.stages import translate
from paraforge.translation.stage.pivots import shared_references
from tests.base.shards.steps import write_table
from tests.here import ended_at, inside, run_stage
from tests.project import digests, made_once, make_project, read_parameters, run, write_parameters

STAGES = ("ingest", "nmt", "translate", "paragram", "score", "select", "publish")


def rows_of(directory: Path) -> list[dict[str, Any]]:
    return pa.concat_tables(list(ShardDirectory(directory).tables())).to_pylist()


def make(project: Path, *overrides: str) -> Path:
    """A project whose second pivot has its own rows and some of the sample's references."""
    make_project(project, "pivots=sample", *overrides, pairs=600)
    parameters = read_parameters(project)
    ingest = parameters["pivots"]["art"]["ingest"]
    ingest["sources"][0]["pairs"] = 900
    ingest["rows_per_shard"] = 100
    parameters["nmt"]["source_language"] = "cs"
    write_parameters(project, parameters)
    return project


def run_all(project: Path, stages: tuple[str, ...] = STAGES) -> None:
    with inside(project):
        for stage in stages:
            run_stage(stage)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project after a run up to the corpus with all pairs. Tests only read or copy it."""
    return made_once(tmp_path_factory, "pivots", lambda project: run_all(make(project, "publish.pairs=all")))


def test_references_are_counted_by_pivots(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    own = {"cs": ["a", "b", "b", None], "de": ["b", "c", "é"], "fr": ["b", "é"], "pl": ["x"]}
    for name, references in own.items():
        rejected = [None if text else "empty" for text in references]
        table = pa.table({"reference": pa.array(references, pa.string()), "rejected": rejected})
        table = table.cast(pa.schema({"reference": pa.string(), "rejected": pa.string()}))
        write_table(tmp_path / name, table, 2, step="ingest", sources={f"news-{name}": {}})
    wanted: Counter[str] = Counter()
    for text in {text for references in own.values() for text in references if text}:
        wanted["+".join(name for name in own if text in own[name])] += 1
    with caplog.at_level(logging.WARNING):
        places = {name: tmp_path / name for name in own}
        found = shared_references(places, Resources(work=tmp_path / "it's [new]"))
    assert found == wanted == {"cs": 1, "de": 1, "cs+de+fr": 1, "de+fr": 1, "pl": 1}
    with pytest.raises(ConfigurationError, match="two pivots have a source 'news-cs': rename one"):
        shared_references({"cs": tmp_path / "cs", "de": tmp_path / "cs"}, Resources(work=tmp_path))
    assert [record.message for record in caplog.records] == [
        "pivot pl shares none of its 1 references with another pivot. Are its sides swapped?"
    ]


def test_rows_of_pivots_and_pairs_of_translations(finished: Path) -> None:
    """The oracle is a plain join: the first usable row of each reference in each pivot."""
    rows = rows_of(finished / "data/translated")
    assert [path.name for path in (finished / "work/pivots").iterdir()] == ["lock"]
    places = {"cs": "data/ingested", "art": "data/ingested/pivots/art"}
    ingested = {pivot: rows_of(finished / place) for pivot, place in places.items()}
    for pivot, own in ingested.items():
        here = [row for row in rows if row["pivot"] == pivot]
        assert [{name: row[name] for name in own[0]} for row in here] == own
        assert {row["translation_line"] for row in here} == {None}
    first: dict[str, dict[str, Any]] = defaultdict(dict)
    for row in sorted(rows, key=lambda row: (row["source"], row["line"])):
        if (
            row["failed"] is None
            and row["rejected"] is None
            and row["translation"]
            and "+" not in row["pivot"]
        ):
            first[row["reference"]].setdefault(row["pivot"], row)
    wanted = [
        {
            "source": f"{a['source']}/{b['source']}",
            "line": a["line"],
            "pivot": f"{a['pivot']}+{b['pivot']}",
            "translation_line": b["line"],
            "source_text": a["source_text"],
            "reference": a["translation"],
            "translation": b["translation"],
            "translation_score": b["translation_score"],
            "rank": 0,
            "first_row": None,
            **{mark: a[mark] or b[mark] for mark in ("runaway", "non_finite", "output_truncated")},
            "rejected": "identical" if a["translation"] == b["translation"] else None,
        }
        for each in first.values()
        for a, b in combinations([each[pivot] for pivot in ingested if pivot in each], 2)
    ]
    wanted.sort(key=lambda row: (row["source"], row["line"]))
    pairs = [row for row in rows if row["pivot"] == "cs+art"]
    assert len(wanted) > 50
    assert [{name: row[name] for name in wanted[0]} for row in pairs] == [
        {**row, "translation_score": pytest.approx(row["translation_score"], nan_ok=True)} for row in wanted
    ]


def test_counts_add_up_per_pivot_and_in_total(finished: Path) -> None:
    metrics = {stage: read_json(finished / f"metrics/{stage}.json") for stage in STAGES}
    rows = metrics["translate"]["rows_by_pivot"]
    assert rows == Counter(row["pivot"] for row in rows_of(finished / "data/translated"))
    for stage, parts in (("ingest", ("kept",)), ("translate", ("translated", "given"))):
        whole = metrics[stage]
        for one in (whole, *whole["pivots"].values()):
            lost = sum(one["rejected"].values()) if stage == "ingest" else one["rejected"]
            lost += sum(one.get("failed", {}).values())
            assert one["rows"] == sum(one[part] for part in parts) + lost > 0
        assert whole["rows"] == sum(one["rows"] for one in whole["pivots"].values())
    description = ShardDirectory(finished / "data/translated").description
    assert description["sentences"] == sum(
        metric["sentences"] for metric in metrics["translate"]["pivots"].values()
    )
    assert set(description["fingerprints"]) == {"model cs", "model art"}
    references = metrics["ingest"]["references"]
    assert set(references) == {"cs", "art", "cs+art"} and min(references.values()) > 0
    published = metrics["publish"]["pivots"]
    assert {pivot: one["rows_in"] for pivot, one in published.items()} == rows
    for one in published.values():
        assert one["rows_in"] == one["kept"] + sum(one["rejected"].values()) + sum(one["failed"].values())
    assert sum(one["kept"] for one in published.values()) == metrics["publish"]["pairs"] > 0
    manifest = read_json(finished / "data/corpus/_manifest.json")
    assert manifest["counts"]["rows_in"] == sum(rows.values())
    assert "|mt:cs-fake:" in manifest["signature"] and "|pairs:all|" in manifest["signature"]
    assert set(manifest["licenses"].values()) == {"MIT"}
    assert "sample-news/invented-art" in manifest["licenses"]
    run("paraforge", "verify", "data/corpus", "data/rejected", cwd=finished)


def test_no_pivots_change_nothing(finished: Path, tmp_path: Path) -> None:
    """Rows are the same, without a column of pivots, and the work has other keys."""
    parameters = read_parameters(make(tmp_path / "project"))
    write_parameters(tmp_path / "project", {**parameters, "pivots": {}})
    run_all(tmp_path / "project", STAGES[:3])
    translated = tmp_path / "project/data/translated"
    assert not {"pivot", "translation_line"} & set(ShardDirectory(translated).schema.names)
    description = ShardDirectory(translated).description
    assert not {"pivot", "pivots"} & {*description, *description["parameters"]}
    assert "pivots" not in read_json(tmp_path / "project/metrics/translate.json")
    assert not list((tmp_path / "project").rglob("pivot*/*.parquet"))
    joined = [row for row in rows_of(finished / "data/translated") if row["pivot"] == "cs"]
    alone = rows_of(translated)
    assert [{name: row[name] for name in alone[0] if row[name] == row[name]} for row in joined] == [
        {name: value for name, value in row.items() if value == value} for row in alone
    ]


def test_failed_sentence_of_earlier_pivot_is_not_retried(
    finished: Path, tmp_path: Path, seen: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    shutil.copytree(finished, project, symlinks=True, ignore=shutil.ignore_patterns("work"))
    parameters = read_parameters(project)
    parameters["translate"]["fake"]["fail_pattern"] = "a"
    write_parameters(project, parameters)
    with inside(project):
        with monkeypatch.context() as killed, pytest.raises(ZeroDivisionError):
            killed.setattr(translate, "join_pivots", lambda *_: 1 / 0)
            run_stage("translate")
        assert seen
        seen.clear()
        run_stage("translate")
        ended = [read_json(path)["finished"] for path in Path("work").rglob("tasks.json")]
    assert not seen and ended == [True, True]


@pytest.mark.full
@pytest.mark.parametrize("part", [0.3, 0.8])
def test_kill_in_any_pivot_resumes_to_same_bytes(
    finished: Path, tmp_path: Path, paid: Counter[tuple[int, str]], part: float
) -> None:
    project = tmp_path / "project"
    shutil.copytree(finished, project, symlinks=True)
    shutil.rmtree(project / "work")
    wanted = digests(project / "data/translated")
    with inside(project):
        for _ in range(2):  # the first run also imports modules
            with ended_at() as calls:
                run_stage("translate")
            once = Counter(paid)
            shutil.rmtree("work")
            shutil.rmtree("data/translated")
            paid.clear()
        with pytest.raises(SystemExit), ended_at(part * calls.count):
            run_stage("translate")
        for _ in range(2):
            run_stage("translate")
            assert digests(Path("data/translated")) == wanted
    rows = [row for row in rows_of(project / "data/translated") if "+" not in row["pivot"]]
    assert set(once.values()) == {1}
    assert {text for _, text in once} == {row["source_text"] for row in rows if row["failed"] is None}
    assert paid.keys() == once.keys() and max(paid.values()) <= 2


@pytest.mark.parametrize(
    ("pivots", "changes", "problem"),
    [
        ({"cs": {}}, {}, "pivots.cs: nmt.source_language is also 'cs'"),
        ({"de": {"sources": "sample"}}, {}, "source name 'sample' is used twice"),
        ({"de": {"kind": "paraphrases"}}, {}, "pivots.de.ingest.kind: must be bitext"),
        ({"de": {}}, {"model": "models/opus"}, "pivots.de.nmt: missing"),
        ({"de": {"nmt": {"target_language": "fr"}}}, {}, "pivots.de.nmt.target_language: must be 'en'"),
        ({"de": {"nmt": {"modle": "x"}}}, {}, "pivots.de.nmt.modle: there is no such parameter"),
        ({"../x": {}}, {}, "pivots.../x"),
    ],
)
def test_invalid_pivot_settings_are_early_errors(
    tmp_path: Path, pivots: dict[str, Any], changes: dict[str, Any], problem: str
) -> None:
    content = read_parameters(make_project(tmp_path / "project"))
    content["nmt"] |= changes
    for name, one in pivots.items():
        kind, named = one.get("kind", "bitext"), one.get("sources", name)
        columns = {"reference": 0, {"bitext": "source_text"}.get(kind, "translation"): 1}
        source = {"name": named, "format": "tsv", "path": "a.tsv", "columns": columns}
        pivot = {"ingest": {"kind": kind, "sources": [source]}}
        pivot |= {"nmt": one["nmt"]} if "nmt" in one else {}
        content.setdefault("pivots", {})[name] = pivot
    with pytest.raises(ConfigurationError) as raised:
        check_parameters(content, "params.yaml")
    assert problem in str(raised.value)


def test_missing_file_of_later_pivot_is_found_first(tmp_path: Path) -> None:
    project = make(tmp_path / "project", "pivots.art.nmt={model: ./none.pt}")
    with inside(project), pytest.raises(ConfigurationError, match=r"pivots\.art\.nmt\.model: .*none\.pt"):
        run_stage("ingest")
    assert not (project / "work").exists()


@pytest.mark.full
@pytest.mark.timeout(300)
def test_dvc_runs_pivots_once(tmp_path: Path) -> None:
    project = make(tmp_path / "project")
    run("dvc", "repro", "publish", cwd=project)
    corpus = pq.read_table(project / "data/rejected", partitioning=None)
    assert set(corpus["pivot"].to_pylist()) == {"cs", "art"}
    assert pc.count(corpus["pivot"]).as_py() == corpus.num_rows
    assert "Running stage" not in run("dvc", "repro", "publish", cwd=project).stdout
    parameters = read_parameters(project)
    parameters["publish"]["pairs"] = "all"
    write_parameters(project, parameters)
    again = run("dvc", "repro", "publish", cwd=project).stdout
    assert "Running stage 'nmt'" not in again and "Running stage 'translate'" in again
