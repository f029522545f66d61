"""Recorded measurements are valid, the page matches them, and the newest commands still parse."""

import importlib
import json
import re
import shlex
from pathlib import Path

import pytest
import typer
import yaml

from benchmarks import pages
from benchmarks.pages import Table, render
from benchmarks.results import append, read
from experiments.tables import names, read_table

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "results").glob("*.jsonl"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_result_lines_are_measurements(path: Path) -> None:
    assert read(path)


@pytest.mark.parametrize("page", pages.PAGES, ids=lambda page: page.stem)
def test_results_page_matches_data(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == render(pages.PAGES[page]), "run 'make results'"


def test_all_run_paper_tables_are_shown() -> None:
    places = [ROOT / "results" / f"{name}.yaml" for name in ("papers", "results")]
    sources = [place.read_text(encoding="utf-8") for place in places]
    shown = {task for text in sources for table in yaml.safe_load(text)["tables"] for task in table["tasks"]}
    declared = {path.stem for path in (ROOT / "experiments" / "tables").glob("*.yaml")}
    assert {path.stem for path in FILES} & declared <= shown


@pytest.mark.parametrize("description", pages.PAGES.values(), ids=lambda path: path.stem)
def test_encoder_tables_have_untrained_rows(description: Path) -> None:
    for entry in yaml.safe_load(description.read_text(encoding="utf-8"))["tables"]:
        table = Table.model_validate(entry)
        on_sets = any(str(name).startswith("sts") for name in [*table.columns, table.across])
        among = {"metrics", "scorers"} & {*table.tasks} or "TF-IDF" in table.text
        assert not on_sets or table.yardstick or among


def test_measurement_records_command_commit_machine_and_date(
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
def test_invalid_result_line_is_named(tmp_path: Path, line: str) -> None:
    good = json.dumps({"task": "speed", "configuration": {}, "figures": {"x": 1}})
    (tmp_path / "speed.jsonl").write_text(f"{good}\n{line}\n")
    with pytest.raises(ValueError, match=r"speed\.jsonl, line 2"):
        read(tmp_path / "speed.jsonl")


LINES = [line for path in FILES for line in read(path)]
REWRITTEN = {"engines"}
"""Programs whose newest line an earlier version of them recorded."""
PROGRAMS = sorted(
    {path.stem for path in (ROOT / "benchmarks").glob("*.py") if "append(" in path.read_text()} - REWRITTEN
)


def test_result_lines_have_commands() -> None:
    assert not [f"{line.task}: {line.configuration['name']}" for line in LINES if not line.command]


@pytest.mark.parametrize("program", PROGRAMS)
def test_newest_recorded_command_parses(program: str) -> None:
    """All options of the command are options of the program today."""
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


def test_experiment_programs_exist() -> None:
    """The tables refer only to modules and rows that exist."""
    for name in names():
        for row in read_table(name)[1]:
            for command in row.commands:
                if command[:2] == ["python", "-m"]:
                    importlib.import_module(str(command[2]))
