"""Nothing is lost: rows in = kept + rejected + failed, from the bitext to the published corpus. A known
sentence is never translated again, and two runs of a stage never write at once."""

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from paraforge.base.errors import WorkLockedError
from paraforge.base.files import read_json
from paraforge.base.shards.work import WorkDirectory
from paraforge.translation.engines.fake import FakeTranslator
from paraforge.translation.memory.distinct import NOT_CHOSEN
from tests.damage import DAMAGES, apply
from tests.guarantees.stages import FAILING, SOURCES, change, copy, make, result
from tests.here import inside, run_command, run_stage

CHAIN = ("ingest", "nmt", "translate", "paragram", "score", "select", "publish")


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project up to the corpus, without a model and with the built-in scorer."""
    project = make(tmp_path_factory.mktemp("counts") / "project")
    change(project, {"nmt": {"model": "none"}, "paragram": {"built_in": "general"}})
    with inside(project):
        for stage in CHAIN:
            run_stage(stage)
    return project


def rows(directory: Path) -> list[dict[str, Any]]:
    return [
        row
        for path in sorted(directory.glob("shard-*.parquet"))
        for row in pq.read_table(path, partitioning=None).to_pylist()
    ]


def lines_of(project: Path) -> dict[tuple[str, int], str]:
    """Return all lines of the bitext, by source and number."""
    return {
        (name, number): line
        for name in SOURCES
        for number, line in enumerate((project / f"{name}.tsv").read_text("utf-8").splitlines(), 1)
    }


def test_counts_of_lines_add_up(published: Path) -> None:
    lines = lines_of(published)
    kept, others = (rows(published / "data" / name) for name in ("corpus", "rejected"))
    found = Counter((row["source"], row["line"]) for row in (*kept, *others))
    assert found == Counter(lines.keys())
    for row in kept:
        assert lines[row["source"], row["line"]] == f"{row['source_text']}\t{row['reference']}"
        assert row["translation"] and not {"rejected", "failed"} & row.keys()
    for row in others:
        assert (row["rejected"] is None) != (row["failed"] is None)
    failed = {(row["source"], row["line"]) for row in others if row["failed"]}
    assert failed == {place for place, line in lines.items() if FAILING in line.split("\t")[0]} and failed
    reasons = {row["line"]: row["rejected"] for row in others if row["source"] == "dirty"}
    assert {line: reasons[line] for line in (2, 4, 5, 6, 7)} == {
        2: "duplicate",
        4: "identical",
        5: "blank_source",
        6: "blank_reference",
        7: "malformed",
    }


def test_stages_count_same_rows(published: Path) -> None:
    total = len(lines_of(published))
    for name in ("ingested", "translated", "scored", "selected"):
        assert len(rows(published / "data" / name)) == total, name
    metrics = {name: read_json(published / f"metrics/{name}.json") for name in CHAIN}
    found = metrics["ingest"]
    assert found["rows"] == total == found["kept"] + sum(found["rejected"].values())
    per_source = found["sources"].values()
    assert sum(one["rows"] for one in per_source) == total
    assert all(one["rows"] == one["kept"] + sum(one["rejected"].values()) for one in per_source)
    found = metrics["translate"]
    failed = sum(found["failed"].values())
    assert found["rows"] == total == found["translated"] + found["rejected"] + failed
    assert metrics["score"]["rows"] == total
    counts = read_json(published / "data/corpus/_manifest.json")["counts"]
    for found in (metrics["select"], counts):
        assert (
            found["rows_in"]
            == total
            == found["kept"] + sum(found["rejected"].values()) + sum(found["failed"].values())
        )
        assert sum(found["failed"].values()) == failed
    kept, others = (rows(published / "data" / name) for name in ("corpus", "rejected"))
    assert len(kept) == counts["kept"] == metrics["select"]["kept"] == metrics["publish"]["pairs"]
    reasons = Counter(row["rejected"] or row["failed"] for row in others)
    assert reasons == Counter({**counts["rejected"], **counts["failed"]})
    assert reasons == Counter({**metrics["select"]["rejected"], **metrics["select"]["failed"]})


def test_sources_keep_their_licenses(published: Path) -> None:
    manifest = read_json(published / "data/corpus/_manifest.json")
    assert manifest["licenses"] == dict.fromkeys(SOURCES, "MIT")


def test_finished_stages_leave_only_what_a_later_run_reuses(published: Path) -> None:
    work = published / "work"
    found = {str(path.relative_to(work)) for path in work.glob("*/*") if path.is_dir()}
    assert {re.sub("[0-9a-f]{32,}", "KEY", name) for name in found} == {
        "ingest/files",
        "memory/KEY",
        "translation/distinct",
    }


@pytest.mark.parametrize(
    "step",
    [
        *("ingest", "translation", "score", "score-counts", "select", "publish"),
        *("lexicon", "paraphraser", "triplets"),
    ],
)
def test_locked_work_directory_ends_stage(published: Path, step: str) -> None:
    stage = "translate" if step == "translation" else step.partition("-")[0]
    with inside(published), WorkDirectory(step).lock(), pytest.raises(WorkLockedError):
        run_stage(stage)


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_corpora_fail_verification(published: Path, tmp_path: Path, damage: Any) -> None:
    project = copy(published, tmp_path / "project", work=False)
    with inside(project):
        for name in ("corpus", "rejected"):
            directory = project / "data" / name
            run_command("verify", directory)
            for path in sorted(directory.iterdir()):
                before = path.read_bytes()
                apply(damage, path)
                result = run_command("verify", directory, expect=None)
                assert result.exit_code != 0, f"{path.name} is damaged"
                assert path.name in result.output
                path.write_bytes(before)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Count how often the fake engine translated each sentence, except "1", which checks that it works."""
    found: Counter[str] = Counter()
    translate = FakeTranslator._hypotheses

    def counted(self: FakeTranslator, source: Any) -> Any:
        found.update([source.sentence] * (source.sentence != "1"))
        return translate(self, source)

    monkeypatch.setattr(FakeTranslator, "_hypotheses", counted)
    yield found


@pytest.mark.full
def test_known_sentence_is_never_translated_again(
    published: Path, tmp_path: Path, asked: Counter[str]
) -> None:
    project = copy(published, tmp_path / "project", work=False)
    wanted = result(project, "translate")
    usable = [row["source_text"] for row in rows(project / "data/ingested") if row["rejected"] is None]
    distinct = {sentence for sentence in usable if FAILING not in sentence}
    assert len(distinct) < len(usable)

    def translated() -> Counter[str]:
        asked.clear()
        with inside(project):
            run_stage("ingest")
            run_stage("translate")
        return asked

    assert translated() == Counter(distinct)
    assert result(project, "translate") == wanted
    assert not translated()
    for name in (project / "work").iterdir():  # all but the memory
        if name.name != "memory":
            shutil.rmtree(name)
    assert not translated()
    assert result(project, "translate") == wanted
    change(project, {"translate.sentences_per_task": 20, "ingest.rows_per_shard": 150})
    assert not translated()
    with (project / "dirty.tsv").open("a", encoding="utf-8") as file:
        file.write("Tohle nikdo neřekl.\tNobody said this.\nPes běží.\tA dog is running.\n")
    assert translated() == Counter(["Tohle nikdo neřekl."])
    change(project, {"translate.fake.seed": 2})
    assert translated() == Counter([*distinct, "Tohle nikdo neřekl."])
    change(project, {"translate.fake.seed": 1})
    assert not translated()


@pytest.mark.full
def test_postponed_sentences_are_counted_and_translated_later(
    published: Path, tmp_path: Path, asked: Counter[str]
) -> None:
    project = copy(published, tmp_path / "project", work=False)
    total = len(lines_of(project))
    wanted = rows(project / "data/translated")
    known: set[str] = set()
    for limit in (90, None):
        change(project, {"translate.maximum_sentences": limit})
        asked.clear()
        with inside(project):
            plan = json.loads(run_command("plan", "--rate", 9, "--json").output)["cs"]
            for stage in CHAIN:
                run_stage(stage)
            run_command("verify", project / "data/corpus", project / "data/rejected")
        assert set(asked.values()) == {1} and not known & set(asked)
        known |= set(asked)
        report = read_json(project / "metrics/translate.json")
        left = report["failed"].get(NOT_CHOSEN, 0)
        assert report["sentences"] == plan["sentences"] and (left == 0) == (limit is None)
        assert limit is None or report["sentences"] == limit
        assert total == report["translated"] + report["rejected"] + sum(report["failed"].values())
        manifest = read_json(project / "data/corpus/_manifest.json")
        assert manifest["counts"]["failed"].get(NOT_CHOSEN, 0) == left
        about = manifest["steps"]["translate"].get("chosen")
        assert (about or {}).get("maximum_sentences") == limit
        assert (f"|first:{limit}|" in manifest["signature"]) == (limit is not None)
        assert not (project / "work/chosen/corpus").exists()
    assert rows(project / "data/translated") == wanted


def test_translations_before_process_death_are_kept(
    published: Path, tmp_path: Path, asked: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most the current task, of 30 sentences, is lost."""
    project = copy(published, tmp_path / "project", work=False)
    wanted = result(project, "translate")
    translate = FakeTranslator._hypotheses

    def dies(self: FakeTranslator, source: Any) -> Any:
        if asked.total() >= 130:
            raise Died
        return translate(self, source)

    with inside(project):
        with monkeypatch.context() as patch, pytest.raises(Died):
            patch.setattr(FakeTranslator, "_hypotheses", dies)
            run_stage("translate")
        run_stage("translate")
    assert asked.total() <= len(asked) + 30
    assert result(project, "translate") == wanted


class Died(BaseException):
    """An exception that no handler of the product catches."""
