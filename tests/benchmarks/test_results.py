"""Measurements are valid, the page is what they give, benchmarks record by themselves, and the newest command
of each can still be typed; an older one belongs to its commit."""

import importlib
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from benchmarks import pages
from benchmarks.pages import Finding, Table, _findings, _table, render
from benchmarks.results import Measurement, Paper, append, latest, read
from experiments.tables import names, read_table

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "results").glob("*.jsonl"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_lines_are_measurements(path: Path) -> None:
    assert read(path)


@pytest.mark.parametrize("page", pages.PAGES, ids=lambda page: page.stem)
def test_a_page_is_what_the_data_give(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == render(pages.PAGES[page]), "run 'make results'"


def test_every_table_of_the_papers_that_was_run_is_shown() -> None:
    places = [ROOT / "results" / f"{name}.yaml" for name in ("papers", "results")]
    sources = [place.read_text(encoding="utf-8") for place in places]
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


LINES = [line for path in FILES for line in read(path)]
REWRITTEN = {"engines"}
"""Programs whose newest line an earlier version of them recorded."""
PROGRAMS = sorted(
    {path.stem for path in (ROOT / "benchmarks").glob("*.py") if "append(" in path.read_text()} - REWRITTEN
)


def test_every_line_has_its_command() -> None:
    assert not [f"{line.task}: {line.configuration['name']}" for line in LINES if not line.command]


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_newest_command_can_be_typed(program: str) -> None:
    """Its options are options of the program."""
    typed = [
        (line.date or "", part)
        for line in LINES
        for part in re.split(r"; | && ", line.command or "")
        if re.match(rf"python -m benchmarks\.{program}( |$)", part)
    ]
    if not typed:
        pytest.skip("nothing is recorded")
    newest = sorted(typed, key=lambda one: one[0])[-1][1]
    module = importlib.import_module(f"benchmarks.{program}")
    app = getattr(module, "app", None)
    if app is None:
        app = typer.Typer()
        app.command()(module.main)
    command, arguments = typer.main.get_command(app), shlex.split(newest)[3:]
    if hasattr(command, "get_command"):
        command = command.get_command(None, arguments[0])  # type: ignore[arg-type]  # the context is not used
        assert command is not None, newest
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    given = {argument.partition("=")[0] for argument in arguments if re.match(r"--?[a-z]", argument)}
    assert given <= known, f"{newest}: no option {', '.join(sorted(given - known))}"


def test_programs_of_experiments_exist() -> None:
    """The tables name modules and rows that are still here."""
    for name in names():
        for row in read_table(name)[1]:
            for command in row.commands:
                if command[:2] == ["python", "-m"]:
                    importlib.import_module(str(command[2]))
