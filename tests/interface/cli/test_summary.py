"""``paraforge summary``, also with missing metrics."""

import hashlib
import io
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from rich.console import Console

from paraforge.base.errors import InputError
from paraforge.base.files import write_json
from paraforge.corpus.publication.summary import load_summary, suggestions
from paraforge.corpus.selection.fate import Counts
from paraforge.interface.cli.corpora import show
from paraforge.interface.cli.settings import render
from tests.corpus.selection.corpora import random_pairs, with_columns
from tests.corpus.selection.published import publish_pairs
from tests.here import run_command


@pytest.fixture
def project(tmp_path: Path) -> Path:
    pairs = random_pairs(1_000, seed=7)
    steering = [text and f"\x1b]0;x\x07{text}\x9b31m" for text in pairs["translation"].to_pylist()]
    report = publish_pairs(tmp_path / "data", table=with_columns(pairs, translation=steering))
    write_json(tmp_path / "metrics" / "publish.json", report.metrics())
    write_json(tmp_path / "metrics" / "nmt.json", {"bleu": 37.71, "chrf": 58.5, "seconds": 3725.0})
    write_json(tmp_path / "metrics" / "translate.json", {"engine": "ctranslate2", "beam": 12})
    return tmp_path


def test_narrow_terminal_cuts_no_figure(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {}
    for width in ("200", "30"):
        monkeypatch.setenv("COLUMNS", width)
        monkeypatch.setattr("sys.stdout.isatty", lambda: True)
        texts[width] = render(lambda console: show(load_summary(project), console))
    figures = [
        Counter(re.findall(r"\d[\d.,]*", re.sub(r"\x1b\[[\d;]*m", "", text))) for text in texts.values()
    ]
    assert not figures[0] - figures[1]


def test_summary_counts_splits(project: Path) -> None:
    assert "test has" not in run_command("summary", project).stdout
    publish_pairs(project / "data", splits={"test": 30})
    assert "test has 30" in " ".join(run_command("summary", project).stdout.split())


def test_summary_content(project: Path) -> None:
    result = run_command("summary", project)
    text = result.stdout
    assert "paraphrase pairs made by back-translation" in " ".join(text.split())
    assert "BLEU 37.7, chrF 58.5 on held-out pairs" in text and "ctranslate2, beam 12" in text
    assert "duplicate" in text and "tatoeba" in text and "1,000" in text
    assert "(0.8, 1.0]" in text
    assert "Drawn at random from each score band." in text and "load_dataset" not in text
    assert "src:news+tatoeba|mt:3fa9c1d2|beam:12" in text.replace("\n", "")
    assert "62.1 min" in text
    assert "paraforge verify data/corpus" in text
    assert 'paraforge query data/corpus "SELECT reference, translation FROM corpus ORDER BY overlap_1' in text
    assert not {"\x1b", "\x9b", "\x07"} & {*text}
    assert not any(line.endswith(" ") for line in text.splitlines())


def test_summary_shows_misaligned_lines(project: Path) -> None:
    stretch = {"first": 1001, "last": 2000, "similarity": -0.1, "usual": 0.4}
    write_json(project / "metrics" / "score.json", {"out_of_step": {"news": [stretch]}})
    text = " ".join(run_command("summary", project).stdout.split())
    assert "see where news falls out of step, from line 1,001 on" in text
    assert "WHERE source = 'news' AND line >= 1001" in text


def test_summary_suggestions_are_current(project: Path) -> None:
    summary = load_summary(project)
    frequent = {"blank_source": {"share": 0.004, "examples": [[3, "a", "b"]]}}
    metrics = {"ingest": {"sources": {"news": {"frequent": frequent}}}}
    for kept, source in ((40, "sample.cs"), (50, "news")):
        reasons = Counter(duplicate=35, length=90 - 35 - kept, overlap=10)
        counts = Counts(100, kept=kept, rejected=reasons)
        corpus = replace(summary.corpus, counts=counts, sources={"sample": counts, source: counts})
        said = dict(suggestions(replace(summary, corpus=corpus, metrics=metrics)))
        told = "see why ingest rejects 1% of news as blank_source, e.g. 'a' | 'b'"
        assert said[told] == "grep blank_source logs/ingest.log"
        assert any(purpose.startswith("your own bitext") for purpose in said) == (source != "news")
        # The commonest reason of a filter, where more than half was rejected.
        assert ("see what 'length' rejects, 15% of all rows" in said) == (kept == 40)


def test_terminal_gets_colors(project: Path) -> None:
    screen = io.StringIO()
    show(load_summary(project), Console(file=screen, force_terminal=True, width=80, color_system="standard"))
    assert "\x1b[" in screen.getvalue()


def test_dry_run_is_labeled(project: Path) -> None:
    write_json(project / "metrics" / "translate.json", {"engine": "fake", "beam": 12})
    assert "this is a dry run" in run_command("summary", project).stdout


def test_summary_shows_every_pivot(project: Path) -> None:
    pivots = {"cs": {"engine": "none", "bleu": 9.0}, "de": {"engine": "fake", "bleu": 3.0, "chrf": 7.0}}
    for stage in ("nmt", "translate"):
        write_json(project / "metrics" / f"{stage}.json", {**pivots["cs"], "pivots": pivots})
    text = " ".join(run_command("summary", project).stdout.split())
    for told in ("BLEU 9.0 on held-out pairs from cs", "BLEU 3.0, chrF 7.0 on held-out pairs from de"):
        assert told in text
    assert not re.search(r"\bnone\b", text)
    assert "this is a dry run" in text


def test_summary_without_metrics_pairs_or_corpus(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no corpus yet"):
        load_summary(tmp_path)
    publish_pairs(tmp_path / "data", rows=100)
    shown = run_command("summary", tmp_path).stdout
    assert "Counts" in shown and "BLEU" not in shown
    publish_pairs(tmp_path / "data", rows=100, filters={"filters": [{"kind": "length", "minimum": 99}]})
    assert "see what 'length' rejects" in run_command("summary", tmp_path).stdout


def test_summary_omits_figures_of_later_run(project: Path) -> None:
    """A run that was stopped after translate has newer figures than the published corpus."""

    def entries(**digests: str) -> list[dict[str, str]]:
        return [{"path": path.replace("__", "/"), "md5": digest} for path, digest in digests.items()]

    def lock(translated: str, metrics: str = "") -> None:
        stages = {
            "translate": {"deps": entries(data__ingested="i"), "outs": entries(data__translated=translated)},
            "score": {"outs": [*entries(data__scored="s"), {"path": "metrics/score.json", "md5": metrics}]},
            "publish": {"deps": entries(data__translated="t", data__scored="s")},
        }
        (project / "dvc.lock").write_text(yaml.safe_dump({"schema": "2.0", "stages": stages}))

    lock("t")
    assert load_summary(project).get("translate", "beam") == 12
    lock("later")
    summary = load_summary(project)
    assert summary.get("translate", "beam") is None and summary.get("publish", "pairs") == summary.corpus.rows
    assert summary.later == ("ingest", "nmt", "translate")  # and what it was made from
    shown = " ".join(run_command("summary", project).stdout.split())
    assert "ctranslate2" not in shown and "These stages ran again after" in shown
    # Of a stage that was killed, the metrics are not those that DVC recorded.
    write_json(project / "metrics" / "score.json", {})
    digest = hashlib.md5((project / "metrics" / "score.json").read_bytes()).hexdigest()
    for recorded, later in ((digest, ()), ("0" * 32, ("paragram", "score"))):
        lock("t", recorded)
        assert load_summary(project).later == later
    (project / "dvc.lock").write_text("schema: '2.0'\nstages:\n  trans")
    assert load_summary(project).later == ()
