"""The newest recorded command of each benchmark can still be typed; an older one belongs to its commit."""

import importlib
import re
import shlex
from pathlib import Path

import pytest
import typer

from benchmarks.results import read
from experiments.tables import names, read_table

ROOT = Path(__file__).resolve().parents[2]
LINES = [line for path in sorted((ROOT / "results").glob("*.jsonl")) for line in read(path)]
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
