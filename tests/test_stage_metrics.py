"""Metrics of stages: complete files, and headlines that fit a terminal."""

from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
import yaml

from paraforge.base.files import read_json
from paraforge.corpus.scoring.score import ScoreReport
from paraforge.embeddings.trainer.train_model import EmbeddingsReport
from paraforge.interface.configuration import load_parameters
from paraforge.products.lexicon.extraction import LexiconReport
from paraforge.stages import metrics
from paraforge.stages.metrics import _FIGURES, headline, of_pivots, write_metrics
from paraforge.translation.stage.translate import TranslationReport
from tests.project import ROOT

STAGES = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
REPORTS: dict[str, Any] = {
    "translate": TranslationReport,
    "score": ScoreReport,
    "lexicon": LexiconReport,
    "embeddings": EmbeddingsReport,
}


def test_stages_have_both_metrics_files() -> None:
    measured = {stage for stage in STAGES if STAGES[stage].get("metrics")}
    for stage in measured:
        name = stage + ("-${item.name}" if "matrix" in STAGES[stage] else "")
        assert {f"metrics/{name}.json": {"cache": False}} in STAGES[stage]["outs"]
        assert STAGES[stage]["metrics"] == [{f"metrics/headlines/{name}.json": {"cache": False}}]
    assert set(_FIGURES) <= measured


@pytest.mark.parametrize("stage", sorted(STAGES.keys() - {"report"}))
def test_stages_read_and_write_declared_files(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report finds files beside the corpus, and parameters say which model mines triplets."""
    module, calls = import_module(f"paraforge.stages.{stage}"), MagicMock()
    for name, value in vars(module).items():
        if name != "main" and callable(value) and not isinstance(value, type):
            monkeypatch.setattr(module, name, getattr(calls, name))
    calls.build_paragram.return_value.pairs = 7
    monkeypatch.setattr("sys.argv", [stage, "word"])
    module.main(load_parameters(ROOT / "params.yaml"))
    given = [
        argument for _, arguments, named in calls.mock_calls for argument in (*arguments, *named.values())
    ]
    listed = [one for each in given for one in (each if isinstance(each, list) else [each])]
    paths = {one.as_posix() for one in listed if isinstance(one, Path)}
    wanted = [name for name in (*STAGES[stage]["deps"], *STAGES[stage]["outs"]) if isinstance(name, str)]
    expected = {name.replace("${item.name}", "word") for name in wanted if not name.startswith("inputs/")}
    assert expected - {"models/embeddings"} <= paths


def test_make_clean_removes_stage_outputs() -> None:
    removed = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\nclean:")[2].split()
    outs = {
        out.partition("/$")[0] for stage in STAGES.values() for out in stage["outs"] if isinstance(out, str)
    }
    left = {out for out in outs if out.startswith(("data/", "models/"))} - {*removed}
    assert not left, f"'clean' in the Makefile leaves {left}"


def test_metrics_table_fits_terminal() -> None:
    names = {"seconds"}.union(*_FIGURES.values())
    path = "metrics/headlines/embeddings-trigram.json"
    assert len("    ".join([path, *names])) < 180


@pytest.mark.parametrize("stage", REPORTS)
def test_metrics_come_from_stage_report(stage: str) -> None:
    there = {field.name for field in fields(REPORTS[stage])}
    assert {figure for figure in _FIGURES[stage].values() if isinstance(figure, str)} <= there


def test_pivot_metrics_are_sums_and_parts() -> None:
    alike = {"changes": {}, "shards": 1, "rate": 7}
    # Two pivots can have a source of the same name.
    x, more_x, y, all_x = (
        {"rows": rows, "rejected": {"a": number}, "frequent": {"a": {"share": number / rows}}}
        for rows, number in ((2, 1), (6, 1), (3, 1), (8, 2))
    )
    one = {**alike, "rows": 2, "kept": 1, "rejected": {"a": 1}, "sources": {"x": x}, "seconds": 0.5}
    other = {**alike, "rows": 9, "kept": 5, "rejected": {"a": 2, "b": 2}, "seconds": 2}
    other["sources"] = {"x": more_x, "y": {**y, "frequent": {}}}
    assert of_pivots("ingest", {"cs": one}) == one
    both = {"cs": one, "de": other}
    total = {"rows": 11, "kept": 6, "rejected": {"a": 3, "b": 2}, "changes": {}, "shards": 2, "seconds": 2.5}
    sources = {"x": all_x, "y": other["sources"]["y"]}
    assert of_pivots("ingest", both) == {**total, "rate": 7, "sources": sources, "pivots": both}
    trained = {name: {"seconds": 1, "bleu": 9, "forward": {"seconds": 2}} for name in both}
    forward = {"seconds": 4, "pivots": {name: {"seconds": 2} for name in both}}
    assert of_pivots("nmt", trained) == {"seconds": 2, "bleu": None, "forward": forward, "pivots": trained}
    del trained["de"]["forward"]
    assert of_pivots("nmt", trained)["forward"] is None


def test_headline_and_full_metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said: list[str] = []
    monkeypatch.setattr(metrics, "say_result", said.append)
    content = {"rows": 10, "failed": {"a": 1, "b": 2}, "mean_score": None, "seconds": 1.23456, "model": "x"}
    write_metrics("translate", content, result="done")
    assert read_json(Path("metrics/translate.json")) == content
    assert read_json(Path("metrics/headlines/translate.json")) == {"rows": 10, "failed": 3, "seconds": 1.2346}
    years = {"2012": {"pearson": 60.0}, "2013": {"pearson": 65.0}}
    found = headline("embeddings", {"pairs": 5, "best_score": 0.8, "sets": {}, "years": years})
    assert found == {"rows": 5, "development": 0.8, "sts": 62.5}
    sets = {"a": {"pearson": 10.0}, "b": {"pearson": 0.0}, "c": {"pearson": None}}
    assert headline("embeddings", {"sets": sets, "years": years})["sts"] == 62.5
    assert headline("embeddings", {"sets": sets, "years": {}})["sts"] == 5.0
    write_metrics("embeddings", {"pairs": 5, "sets": {}, "years": {}}, "embeddings-word")
    assert read_json(Path("metrics/headlines/embeddings-word.json")) == {"rows": 5}
    write_metrics("statistics", {"pairs": 7000})
    write_metrics("nmt", {"bleu": 23.45678, "chrf": None, "seconds": 12345.0})
    assert [said[0], *said[2:]] == ["done", "rows 7,000", "bleu 23.4568, seconds 12,345.0"]


@pytest.mark.parametrize(
    ("stage", "content", "figures"),
    [
        ("select",
         {"rows_in": 9, "kept": 4, "verdict": {"scores": {"paraphrase_score": {"passing": {"value": 0.1}}}}},
         {"rows": 9, "kept": 4, "wrong": 0.1}),
        ("score",
         {"rows": 5, "mean_overlap_3": 0.25,
          "verdicts": {"paraphrase_score": {"separation": {"value": 0.9}}}},
         {"rows": 5, "overlap_3": 0.25, "separation": 0.9}),
        ("lexicon", {"rows": 9, "pairs": 4, "entries": 0}, {"rows": 9, "kept": 4, "entries": 0}),
    ],
)  # fmt: skip
def test_headlines(stage: str, content: dict[str, Any], figures: dict[str, float]) -> None:
    assert headline(stage, content) == figures
