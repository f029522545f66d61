"""Measurements are valid, the page is what they give, and benchmarks record by themselves."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks import pages
from benchmarks.pages import Finding, Table, _findings, _table, render
from benchmarks.results import Measurement, Paper, append, latest, read

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "results").glob("*.jsonl"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_lines_are_measurements(path: Path) -> None:
    assert read(path)


@pytest.mark.parametrize("page", pages.PAGES, ids=lambda page: page.stem)
def test_a_page_is_what_the_data_give(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == render(pages.PAGES[page]), "run 'make results'"


def test_every_table_of_the_papers_that_was_run_is_shown() -> None:
    sources = [
        (ROOT / "results" / f"{name}.yaml").read_text(encoding="utf-8") for name in ("papers", "results")
    ]
    shown = {task for text in sources for table in yaml.safe_load(text)["tables"] for task in table["tasks"]}
    declared = {path.stem for path in (ROOT / "experiments" / "tables").glob("*.yaml")}
    assert {path.stem for path in FILES} & declared <= shown


@pytest.mark.parametrize("description", pages.PAGES.values(), ids=lambda path: path.stem)
def test_every_table_of_encoders_has_what_nobody_trained_beside_them(description: Path) -> None:
    for entry in yaml.safe_load(description.read_text(encoding="utf-8"))["tables"]:
        table = Table.model_validate(entry)
        on_sets = any(str(name).startswith("sts") for name in [*table.columns, table.across])
        among = {"metrics", "scorers"} & {*table.tasks} or "TF-IDF" in table.text
        assert not on_sets or table.yardstick or among


def test_findings_come_first_with_a_link_to_their_table() -> None:
    table = Table(
        title="Mega-batches, M",
        tasks=["t"],
        columns={"x": "x"},
        findings=[Finding(of="PN", claim="more is better", verdict="does not hold", here="less is")],
    )
    held = table.model_copy(update={"findings": [table.findings[0].model_copy(update={"verdict": "holds"})]})
    lines = _findings([table, held])
    assert lines.index("## Findings that hold") < lines.index("## Findings that do not hold")
    assert "| PN | more is better | less is ([table](#mega-batches-m)) |" in lines


def test_one_figure_across_the_last_part_of_the_names() -> None:
    lines = [
        Measurement(task="t", configuration={"name": name}, figures={"x": value})
        for name, value in [("word, MAX, 1", 1.0), ("word, MAX, 2", 2.5), ("LSTM, 2", 3.0)]
    ]
    shown = _table(Table(title="T", tasks=["t"], across="x"), {"t": lines})
    assert "| | 1 | 2 |" in shown
    assert "| word, MAX | 1.0 | 2.5 |" in shown and "| LSTM |  | 3.0 |" in shown


@pytest.mark.parametrize("figures", [{}, {"columns": {"x": "x"}, "across": "x"}])
def test_a_table_shows_columns_or_one_figure_across(figures: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="set columns or across"):
        Table(title="T", tasks=["t"], **figures)


def test_command_commit_machine_and_date_are_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARAFORGE_RESULTS", str(tmp_path))
    written = append("speed", "of light", {"seconds": 1 / 3, "kept": 13396, "lost": None}, seeds=[1], beam=12)
    assert read(tmp_path / "speed.jsonl") == [written]
    assert written.figures == {"seconds": 0.333333, "kept": 13396}
    assert written.configuration == {"name": "of light", "beam": 12}
    assert written.command and written.hardware and re.fullmatch(r"\d{4}-\d\d-\d\d", written.date or "")
    assert written.commit is None or re.fullmatch(r"[0-9a-f]{12}\+?", written.commit)


@pytest.mark.parametrize(
    "line", ['{"task": "speed"}', "{", '{"task": "other", "configuration": {}, "figures": {"x": 1}}']
)
def test_a_line_that_is_none_is_named(tmp_path: Path, line: str) -> None:
    good = json.dumps({"task": "speed", "configuration": {}, "figures": {"x": 1}})
    (tmp_path / "speed.jsonl").write_text(f"{good}\n{line}\n")
    with pytest.raises(ValueError, match=r"speed\.jsonl, line 2"):
        read(tmp_path / "speed.jsonl")


def test_the_last_measurement_of_a_configuration_is_shown_beside_the_papers_figure() -> None:
    def line(value: float, paper: float | None = None) -> Measurement:
        known = Paper(source="Table 8", figures={"sts": paper}) if paper else None
        return Measurement(
            task="t",
            configuration={"name": "Word"},
            figures={"sts": value},
            deviations={"sts": 0.2},  # so one decimal is shown
            paper=known,
        )

    old, new = line(60.0), line(66.25, 66.2)
    assert latest([old, new]) == [new]
    table = Table(title="STS", tasks=["t"], columns={"sts": "2012"})
    shown = "\n".join(_table(table, {"t": [old, new]}))
    assert "| Word | 66.2±0.2 (66.2) |" in shown
    assert "60" not in shown
    assert "In parentheses: Table 8." in shown


def test_a_column_of_figures_of_several_names_shows_the_one_that_a_row_has() -> None:
    paper = Paper(source="Table 5", figures={"sick_e": 84.0})
    lines = [
        Measurement(task="t", configuration={"name": "R"}, figures={"sick_r": 81.5}),
        Measurement(task="t", configuration={"name": "E"}, figures={"sick_e": 80.0}, paper=paper),
    ]
    table = Table(title="Tasks", tasks=["t"], columns={"sick_r|sick_e": "fixed"})
    shown = "\n".join(_table(table, {"t": lines}))
    assert "| R | 81.5 |" in shown and "| E | 80.0 (84.0) |" in shown
    assert "In parentheses: Table 5." in shown


def test_the_yardstick_is_the_last_row() -> None:
    def line(task: str, name: str, value: float) -> Measurement:
        return Measurement(task=task, configuration={"name": name}, figures={"sts": value})

    metrics = [line("metrics", "chrf", 50.5), line("metrics", "tfidf-trigrams", 70.9)]
    known = {"t": [line("t", "Word", 60.5)], "metrics": metrics}
    shown = _table(Table(title="T", tasks=["t"], columns={"sts": "2014"}, yardstick=True), known)
    assert shown[-3:-1] == ["| Word | 60.5 |", "| TF-IDF, trigrams, untrained | 70.9 |"]


def test_a_table_without_all_the_rows_that_it_names_is_refused() -> None:
    """As one whose measurement was renamed."""
    line = Measurement(task="t", configuration={"name": "one"}, figures={"x": 1})
    table = Table(title="STS", tasks=["t"], columns={"x": "x"})
    for where, known in (({}, []), ({"name": ["one"]}, []), ({"name": ["one", "gone"]}, [line])):
        with pytest.raises(ValueError, match="no measurement"):
            _table(table.model_copy(update={"where": where}), {"t": known})


def test_the_check_fails_where_the_page_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "papers.md"
    description = ROOT / "results" / "papers.yaml"
    page.write_text(render(description).replace(" is ", " was ", 1))
    monkeypatch.setattr(pages, "PAGES", {page: description})
    monkeypatch.setattr("sys.argv", ["pages", "--check"])
    assert pages.main() == 1
