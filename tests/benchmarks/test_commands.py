"""Every command of results/ can still be typed: programs, options, tables' rows, targets and stages exist."""

import importlib
import re
import shlex
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from benchmarks.results import read
from experiments.tables import read_table
from paraforge.interface.cli import app

ROOT = Path(__file__).resolve().parents[2]
RECORDED = [(path.stem, line) for path in sorted((ROOT / "results").glob("*.jsonl")) for line in read(path)]
COMMANDS = {task: {line.command for one, line in RECORDED if one == task} - {""} for task, _ in RECORDED}


def test_every_line_has_its_command() -> None:
    assert not [f"{task}: {line.configuration['name']}" for task, line in RECORDED if not line.command]


@pytest.mark.parametrize("task", COMMANDS)
def test_recorded_commands_can_be_typed(task: str) -> None:
    for part in sorted({part for command in COMMANDS[task] for part in re.split(r"; | && ", command)}):
        program, *arguments = shlex.split(part)
        if program == "make":
            assert re.search(rf"^{arguments[0]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), part
        elif program == "dvc":
            stages = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
            assert arguments[0] == "repro" and {*arguments[1:]} <= {*stages}, part
        elif program == "pytest":
            assert all((ROOT / path).exists() for path in arguments), part
        elif program == "paraforge":
            check(command_of(program), arguments)
        else:
            assert (program, arguments[0]) == ("python", "-m"), part
            check(command_of(arguments[1]), arguments[2:])
            if arguments[1:3] == ["experiments", "run"]:
                row = arguments[arguments.index("--row") + 1]
                assert arguments[3] == task and any(fnmatchcase(name, row) for name in rows_of(task)), part


@cache
def rows_of(table: str) -> list[str]:
    return [row.name for row in read_table(table)[1]]


@cache
def command_of(module: str) -> Any:
    """What `paraforge`, or `python -m module`, runs."""
    if module == "paraforge":
        return typer.main.get_command(app)
    found = importlib.import_module(f"{module}.__main__" if module == "experiments" else module)
    program = getattr(found, "app", None)
    if program is None:
        program = typer.Typer()
        program.command()(found.main)
    return typer.main.get_command(program)


def check(command: Any, arguments: list[str]) -> None:
    """That click's command, or the subcommand that the arguments choose, has each of their options."""
    while hasattr(command, "list_commands"):
        name, *arguments = arguments
        command = command.get_command(None, name)
        assert command is not None, name
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    given = {argument.partition("=")[0] for argument in arguments if re.match(r"--?[a-z]", argument)}
    assert given <= known, f"{command.name}: no option {', '.join(sorted(given - known))}"
