"""English alone, from 'init --english' to the corpus."""

import gzip
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from paraforge.base.errors import ConfigurationError, InputError
from paraforge.base.files import read_json
from paraforge.interface.configuration import check_parameters, load_parameters
from paraforge.interface.project.bitext import look_at_english
from tests.guarantees.test_counts import rows
from tests.here import inside, run_command, run_stage, without_git_and_dvc
from tests.interface.project.bitexts import bitext
from tests.project import TRAINED, digests, make_project, read_parameters, write_parameters
from tests.translation.training.test_training import parameters as tiny_model

STAGES = ("ingest", "nmt", "translate", "paragram", "score", "select", "publish")
FAKE = ("translation=fake", "translate.fake.defects=0.2", "translate.fake.fail_pattern=market")


@pytest.fixture(scope="module")
def english(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """200 English sentences of the sample, a blank line and one sentence again."""
    directory = tmp_path_factory.mktemp("english")
    text = gzip.decompress(bitext(directory)[1].read_bytes()).decode()
    (directory / "sentences.txt").write_text(f"{text}\n{text.splitlines()[0].upper()}\n", encoding="utf-8")
    return directory / "sentences.txt"


@pytest.fixture(scope="module")
def project(english: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project of these sentences, run to the corpus."""
    project = tmp_path_factory.mktemp("english") / "my"
    with without_git_and_dvc():
        said = run_command("init", project, "--english", english).output
    assert f"reference: {english}, 202 lines, en" in said and "nmt.model=NAME nmt.forward=NAME" in said
    with inside(project):
        quality = "select.filters.paraphrase_score.minimum=0"
        run_command("configure", *FAKE, "ingest.rows_per_shard=100", quality, "resources.workers=1")
        assert load_parameters().nmt.forward is None
        for stage in STAGES:
            run_stage(stage)
    return project


def test_round_trip_counts_add_up(project: Path, english: Path) -> None:
    lines = english.read_text(encoding="utf-8").splitlines()
    ingested = [row for row in rows(project / "data/ingested") if not row["rejected"]]
    assert {row["reference"] for row in ingested} == {*lines[:200]}
    assert all(row["source_text"] == row["reference"] for row in ingested)
    kept, others = rows(project / "data/corpus"), rows(project / "data/rejected")
    assert sorted(row["line"] for row in (*kept, *others)) == list(range(1, len(lines) + 1))
    assert all(row["reference"] == lines[row["line"] - 1] for row in kept)
    assert all(row["source_text"] and row["source_text"] != row["reference"] for row in kept)
    refused = {row["line"]: row["rejected"] for row in others if row["line"] > 200}
    assert refused == {201: "blank_reference", 202: "duplicate"}
    report = read_json(project / "metrics/translate.json")
    there = report["forward"]
    for one in (report, there):
        assert (one["rows"], one["rejected"], one["given"]) == (202, 3, 0)
        assert one["translated"] + one["rejected"] + sum(one["failed"].values()) == 202
    assert (there["beam"], report["beam"]) == (4, 12)
    failed = [row["failed"] for row in others if row["failed"]]
    assert {"forward: empty_output", "forward: output_truncated", "forward: non_finite"} <= set(failed)
    assert report["sentences"] <= there["translated"] - sum("forward" in one for one in failed) + sum(
        there["failed"].values()
    )
    told = "forward: InjectedFailure: told to fail on 'market'"
    assert report["failed"][told] == there["failed"][told.removeprefix("forward: ")] > 0


def test_card_says_foreign_side_is_machine_made(project: Path) -> None:
    manifest = read_json(project / "data/corpus/_manifest.json")
    meanings = {column["name"]: column["description"] for column in manifest["columns"]}
    assert meanings["source_text"] == "machine translation of the reference into another language"
    assert manifest["steps"]["translate"]["forward"]["parameters"]["beam"] == 4
    assert re.search(r"\|mt:fake:(\w+)\|fwd:fake:\1:beam4:\w{8}\|beam:12", manifest["signature"])
    card = (project / "data/corpus/_README.md").read_text(encoding="utf-8")
    assert "its machine translation into another language (`source_text`)" in card
    assert "parallel text" not in card
    run_command("verify", project / "data/corpus", project / "data/rejected")


@pytest.mark.full
def test_sentence_limit_applies_to_forward_translation(project: Path, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(project, tmp_path / "project", symlinks=True))
    with inside(copied):
        shutil.rmtree("work")
        run_command("configure", "translate.maximum_sentences=50")
        plans = json.loads(run_command("plan", "--seconds", 1, "--json").stdout)
        assert plans["cs forward"]["sentences"] == 50
        run_stage("translate")
        report = read_json(Path("metrics/translate.json"))
        there = report["forward"]
        assert there["sentences"] == 50 >= report["sentences"]
        assert there["failed"]["not_chosen"] == report["failed"]["forward: not_chosen"] == 149
        for one in (report, there):
            assert one["translated"] + one["rejected"] + sum(one["failed"].values()) == 202


@pytest.mark.full
def test_second_round_trip_translates_nothing(project: Path, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(project, tmp_path / "project", symlinks=True))
    before = digests(copied / "data/translated")
    with inside(copied):
        result = run_command("plan", "--seconds", 1, "--json")
        plan = json.loads(result.stdout)["cs forward"]
        assert plan["left"] < plan["sentences"] == 199 and "Translating back takes" in result.stderr
        run_stage("translate")
        report = read_json(Path("metrics/translate.json"))
        assert report["sentences_translated"] == report["forward"]["sentences_translated"] == 0
        assert digests(Path("data/translated")) == before
        # Where nothing fails there is nothing to try again.
        run_command("configure", "translate.fake.fail_pattern=null", "translate.fake.defects=0")
        run_stage("translate")
        with pytest.raises(InputError, match="the translation memory has every sentence"):
            run_command("plan", "--seconds", 1)


@pytest.mark.parametrize("name", ["a.en", "a.txt.gz"])
def test_only_english_is_checked_for_language(name: str, tmp_path: Path) -> None:
    found = look_at_english(bitext(tmp_path, "a.cs", name)[1])
    assert (found.kind, found.lines, found.languages) == ("references", 200, {"reference": "en"})


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": "cs"}, "its text is in 'cs', not in English"),
        ({"a": "en", "b": "cs"}, "it has columns.*one per line"),
    ],
)
def test_several_english_columns_are_error(columns: dict[str, str], message: str, tmp_path: Path) -> None:
    pytest.importorskip("py3langid")
    czech, english = bitext(tmp_path, "a.cs", "a.en")
    texts = {"cs": czech, "en": english}
    chosen = [texts[column].read_text(encoding="utf-8").splitlines() for column in columns.values()]
    lines = ["\t".join(line) for line in zip(*chosen, strict=True)]
    (tmp_path / "a.txt").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(InputError, match=message):
        look_at_english(tmp_path / "a.txt")
    with pytest.raises(InputError, match="use only one of"):
        run_command("init", tmp_path / "my", "--english", english, "--table", english)
    assert not (tmp_path / "my").exists()


SOURCE = {"name": "mine", "format": "tsv", "path": "a.tsv", "columns": {"reference": 0}}
ALONE = {"kind": "references", "sources": [SOURCE]}
SAMPLE = {"sources": [{"name": "sample", "format": "sample"}]}
READY = {"model": "models/a", "forward": "models/b"}
NONE = {"model": "none"}


def fake(**forward: Any) -> dict[str, Any]:
    return {"nmt": NONE, "translate": {"engine": "fake", "forward": forward}}


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"nmt": {}}, "nmt.bitext: missing"),
        ({"nmt": {"bitext": SAMPLE}}, None),
        ({"nmt": READY, "translate": {}}, None),
        ({"nmt": {**READY, "forward": "train"}, "translate": {}}, "nmt.bitext: missing"),
        ({"nmt": {"model": "a"}, "translate": {}}, "nmt.forward: missing: the engine ctranslate2"),
        ({"nmt": {"bitext": {"kind": "references", **SAMPLE}}}, "bitext.kind must be bitext"),
        (fake(beam=3), None),
        (fake(beam=0), "translate.forward.beam"),
        (fake(beam={"size": 4}), "translate.forward.beam"),
        (fake(fake=4), "translate.forward.fake"),
        (fake(baem=4), "params.yaml: translate.forward.baem: there is no such parameter"),
        (fake(nbest=2), "nbest must be 1"),
        (fake(forward={"beam": 3}), "forward cannot be in it"),
        (fake(maximum_sentences=9), "translate.forward.maximum_sentences: set translate.maximum_sentences"),
        ({"ingest": {"kind": "references", **SAMPLE}}, None),
        ({"ingest": SAMPLE, "nmt": READY}, "nmt.forward: only for ingest.kind references"),
        ({"ingest": SAMPLE, **fake(beam=4)}, "translate.forward: only for ingest.kind references"),
        (
            {"ingest": {**ALONE, "sources": [{**SOURCE, "columns": {"reference": 0, "source_text": 1}}]}},
            "source 'mine' has the columns reference, source_text; kind references has reference",
        ),
        ({"ingest": {**ALONE, "sources": [{**SOURCE, "columns": {}}]}}, "kind references has reference"),
        ({"pivots": {"de": {"ingest": SAMPLE}}}, "pivots.de.ingest.kind: must be references"),
        (
            {"pivots": {"de": {"ingest": {"kind": "references", **SAMPLE}}}, "nmt": {**NONE, "forward": "a"}},
            "pivots.de.nmt: missing",
        ),
    ],
)
def test_invalid_round_trip_is_early_error(
    changed: dict[str, Any], problem: str | None, tmp_path: Path
) -> None:
    content = read_parameters(make_project(tmp_path / "project"))
    content |= {"ingest": ALONE, "nmt": NONE, "translate": {"engine": "fake"}, **changed}
    if problem is None:
        check_parameters(content, "params.yaml")
        return
    with pytest.raises(ConfigurationError, match=re.escape(problem)):
        check_parameters(content, "params.yaml")


def test_references_in_other_language_are_error(tmp_path: Path) -> None:
    pytest.importorskip("py3langid")
    czech, english = bitext(tmp_path, "a.cs", "a.en")
    with without_git_and_dvc():
        run_command("init", tmp_path / "my", "--english", english)
    with inside(tmp_path / "my"):
        run_command("configure", *FAKE)
        shutil.copy(czech, english)
        with pytest.raises(ConfigurationError, match=r"reference is in 'cs', and nmt.target_language is"):
            run_command("configure")
        with pytest.raises(ConfigurationError, match=r"reference is in 'cs'"):
            run_stage("ingest")


@pytest.mark.full
def test_each_pivot_makes_a_round_trip(english: Path, tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", "resources.workers=1")
    content = read_parameters(project)
    source = {"format": "moses", "paths": {"reference": str(english)}}

    def references(name: str) -> dict[str, Any]:
        return {"kind": "references", "rows_per_shard": 100, "sources": [{"name": name, **source}]}

    seeds = [{"engine": "fake", "fake": {"seed": seed, "defects": 0.2}} for seed in (1, 2)]
    content |= {
        "ingest": references("mine"),
        "nmt": {"model": "none"},
        "translate": seeds[0],
        "pivots": {"de": {"ingest": references("mine-de"), "translate": seeds[1]}},
    }
    write_parameters(project, content)
    with inside(project):
        for stage in STAGES:
            run_stage(stage)
    report = read_json(project / "metrics/translate.json")
    there = report["forward"]
    assert there["rows"] == report["rows"] == 2 * 202
    assert there["translated"] == sum(one["forward"]["translated"] for one in report["pivots"].values())
    found = rows(project / "data/translated")
    texts = {pivot: [row["source_text"] for row in found if row["pivot"] == pivot] for pivot in ("cs", "de")}
    assert len(texts["cs"]) == len(texts["de"]) == 202 and texts["cs"] != texts["de"]
    signature = read_json(project / "data/corpus/_manifest.json")["signature"]
    assert re.search(r"\|fwd:cs-fake:\w{8}:beam4:\w{8}\+de-fake:\w{8}:beam4:\w{8}\|", signature)


@pytest.mark.full
def test_both_models_train_on_one_bitext(tmp_path: Path) -> None:
    """The sample project trains two tiny models on its pairs, whose references it translates."""
    project = make_project(tmp_path / "project", TRAINED, pairs=300)
    content = read_parameters(project)
    content["ingest"] |= {"kind": "references"}
    model = tiny_model(vocabulary={"size": 120}).model_dump(mode="json", exclude_unset=True)
    sources = {"kind": "bitext", "sources": content["ingest"]["sources"]}
    content["nmt"] = {**model, "model": "train", "forward": "train", "bitext": sources}
    content["translate"] = {"engine": "ctranslate2", "beam": 2, "forward": {"beam": 1}}
    content["translate"]["maximum_target_tokens"] = 20
    content["resources"] |= {"threads": 1, "devices": ["cpu"]}
    write_parameters(project, content)
    with inside(project):
        for stage in STAGES[:3]:
            run_stage(stage)
    models = [read_json(project / "models/nmt" / name / "model.json") for name in ("", "forward")]
    languages = [(model["source_language"], model["target_language"]) for model in models]
    assert languages == [("cs", "en"), ("en", "cs")]
    assert [model["origin"] for model in models] == ["trained", "trained"]
    metrics = read_json(project / "metrics/nmt.json")
    assert metrics["forward"]["fingerprint"] == models[1]["fingerprint"] != metrics["fingerprint"]
    report = read_json(project / "metrics/translate.json")
    assert (report["beam"], report["forward"]["beam"]) == (2, 1)
    assert report["forward"]["model"] == models[1]["fingerprint"]
    assert report["forward"]["translated"] > 0
    run_command("verify", project / "models/nmt/forward")
    before = digests(project / "models/nmt"), digests(project / "data/translated")
    with inside(project):
        for stage in STAGES[1:3]:
            run_stage(stage)
    assert (digests(project / "models/nmt"), digests(project / "data/translated")) == before
