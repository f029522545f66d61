"""What stages write beside their output: everything, and a headline that fits a terminal."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from paraforge.base.files import read_json
from paraforge.corpus.scoring.score import ScoreReport
from paraforge.embeddings.trainer.train_model import EmbeddingsReport
from paraforge.products.lexicon.extraction import LexiconReport
from paraforge.stages import metrics
from paraforge.stages.metrics import _FIGURES, headline, of_pivots, write_metrics
from paraforge.stages.results import _PARTS, result_line
from paraforge.translation.memory.distinct import NOT_CHOSEN
from paraforge.translation.stage.translate import TranslationReport
from tests.project import ROOT

STAGES = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
REPORTS: dict[str, Any] = {
    "translate": TranslationReport,
    "score": ScoreReport,
    "lexicon": LexiconReport,
    "embeddings": EmbeddingsReport,
}


def test_every_stage_has_both_files_in_dvc_yaml() -> None:
    measured = {stage for stage in STAGES if STAGES[stage].get("metrics")}
    for stage in measured:
        name = stage + ("-${item.name}" if "matrix" in STAGES[stage] else "")
        assert {f"metrics/{name}.json": {"cache": False}} in STAGES[stage]["outs"]
        assert STAGES[stage]["metrics"] == [{f"metrics/headlines/{name}.json": {"cache": False}}]
    assert set(_FIGURES) <= measured


def test_make_clean_removes_what_every_stage_makes() -> None:
    removed = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\nclean:")[2].split()
    outs = {
        out.partition("/$")[0] for stage in STAGES.values() for out in stage["outs"] if isinstance(out, str)
    }
    left = {out for out in outs if out.startswith(("data/", "models/"))} - {*removed}
    assert not left, f"'clean' in the Makefile leaves {left}"


def test_the_table_of_all_stages_fits_a_terminal() -> None:
    names = {"seconds"}.union(*_FIGURES.values())
    path = "metrics/headlines/embeddings-trigram.json"
    assert len("    ".join([path, *names])) < 180


@pytest.mark.parametrize("stage", REPORTS)
def test_figures_are_of_what_the_stage_reports(stage: str) -> None:
    there = {field.name for field in fields(REPORTS[stage])}
    assert {figure for figure in _FIGURES[stage].values() if isinstance(figure, str)} <= there


def test_every_stage_ends_with_one_line() -> None:
    assert set(_PARTS) <= set(STAGES)
    for stage in set(STAGES) - set(_PARTS):
        text = (ROOT / "stages" / f"{stage}.py").read_text(encoding="utf-8")
        assert "result=" in text or "say_result(" in text, (
            f"{stage} needs a line in _PARTS of stages/results.py"
        )


@pytest.mark.parametrize(
    ("stage", "content", "line"),
    [
        ("ingest", {"kept": 18, "rows": 20, "rejected": {"too_long": 2}, "seconds": 0.34},
         "18 of 20 pairs kept; 10.0% too long; 0.3 s"),
        ("ingest", {"kept": 17, "rows": 20, "rejected": {"short": 1, "too_long": 2}},
         "17 of 20 pairs kept; 10.0% too long"),
        ("nmt", {"origin": "none", "bleu": None, "seconds": 0.0}, "no model; 0.0 s"),
        ("translate",
         {"rows": 100, "translated": 90, "failed": {"a": 4, NOT_CHOSEN: 6}, "sentences_per_second": None},
         "90 of 100 rows translated; 6.0% left for later; 4.0% failed"),
        ("score", {"rows": 5, "scored": 5, "mean_paraphrase_score": 0.5, "mean_overlap_3": 0.25},
         "5 of 5 pairs scored; mean paraphrase score 0.50, trigram overlap 25.0%"),
        ("triplets", {"triplets": 7, "encoder": "word", "rows": 0}, "7 triplets"),
        ("triplets", {"triplets": 0, "encoder": "none", "rows": 1, "clusters": 1},
         "no triplets; 1 pair in 1 cluster"),
        ("translate",
         {"rows": 2000, "translated": 1990, "failed": {"a": 10}, "sentences_per_second": 1234.4,
          "seconds": 2},
         "1,990 of 2,000 rows translated; 0.5% failed; 1,234 sentences per second; 2.0 s"),
        ("translate", {"rows": 5, "translated": 5, "failed": {}, "sentences_per_second": None, "seconds": 2},
         "5 of 5 rows translated; 2.0 s"),
        ("score",
         {"rows": 5, "scored": 0, "mean_paraphrase_score": None, "mean_overlap_3": None, "seconds": 1},
         "0 of 5 pairs scored; 1.0 s"),
        ("score",
         {"rows": 9, "scored": 9, "mean_paraphrase_score": None, "verdicts":
          {"paraphrase_score": {"separation": {"value": 0.9, "low": 0.9, "high": 0.9}}}},
         "9 of 9 pairs scored; separates right from mismatched pairs with 0.90"),
        ("statistics", {"pairs": 7}, "7 pairs described"),
        ("paraphraser", {"origin": "trained_here", "bleu": 3.14, "pairs": {"used": 8, "pairs": 9}},
         "a model, trained here; BLEU 3.1; 8 of 9 pairs in both directions"),
        ("translate",
         {"rows": 5, "translated": 5, "failed": {}, "sentences_from_memory": 1, "sentences": 4,
          "sentences_per_second": None},
         "5 of 5 rows translated; 1 of 4 sentences from memory"),
        ("paragram", {"model": "general"}, "the built-in English scorer"),
        ("paragram", {"model": "word", "dimension": 8}, "a trained model (word) of 8 dimensions, as given"),
        ("paragram", {"model": None, "words": 7, "dimension": 8, "trained": True, "pairs": 9},
         "7 word vectors of 8 numbers, trained on 9 pairs"),
        ("lexicon", {"entries": 7, "words_with_paraphrases": 5, "pairs": 3, "rows": 4},
         "7 entries for 5 words; counted in 3 of 4 pairs"),
        ("embeddings", {"pairs": 5, "best_score": 70.0}, "trained on 5 pairs; development 70.0"),
    ],
)  # fmt: skip
def test_result_lines(stage: str, content: dict[str, Any], line: str) -> None:
    assert result_line(stage, content) == line


def test_metrics_of_pivots_are_sums_and_those_of_each() -> None:
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


def test_a_headline_and_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    write_metrics("statistics", {"pairs": 7})
    assert [said[0], said[2]] == ["done", "7 pairs described"]


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
        ("lexicon", {"rows": 9, "pairs": 4, "entries": 7}, {"rows": 9, "kept": 4, "entries": 7}),
    ],
)  # fmt: skip
def test_headlines(stage: str, content: dict[str, Any], figures: dict[str, float]) -> None:
    assert headline(stage, content) == figures
