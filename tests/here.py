"""Commands and stages run in this process: quicker than as a process, and stopped where a test wants it."""

import contextlib
import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import settings
from typer.testing import CliRunner

from paraforge.base import interrupts
from paraforge.base.errors import Interrupted
from paraforge.interface import cli
from paraforge.interface.project import creation
from tests.project import stage_names


def run_command(
    *arguments: object, stdin: str | bytes | None = None, expect: int | None = 0, app: typer.Typer = cli.app
) -> Any:
    """Run a command here: what it raises is raised, and its exit code is checked, if one is
    expected; click's result."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert expect is None or result.exit_code == expect, result.output
    return result


def run_stage(name: str, after: int | None = None) -> bool:
    """Run a stage here, stopped at its n-th look for a signal if that is said; whether it ended."""
    sys.argv = [name, *stage_names()[name]]
    previous = interrupts._stop
    if after is not None:
        interrupts._stop = Countdown(after)  # type: ignore[assignment]
    try:
        importlib.import_module(f"paraforge.stages.{name}").main()
    except Interrupted:
        return False
    finally:
        interrupts._stop = previous
    return True


def fewer_examples(divisor: int) -> settings:
    """Try a property that runs a whole stage with fewer examples than the profile has."""
    return settings(max_examples=max(1, settings().max_examples // divisor))


class Countdown:
    """An event that is set after it has been looked at so many times."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    def is_set(self) -> bool:
        self.looks -= 1
        return self.looks < 0


@contextlib.contextmanager
def without_git_and_dvc() -> Iterator[None]:
    """Have ``init`` start neither git nor DVC, which take seconds; tests/test_projects.py tests both."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(creation, "_set_up_git", lambda directory: [])
        patch.setattr(creation, "_set_up_dvc", lambda directory, options: None)
        yield


@contextlib.contextmanager
def inside(project: Path) -> Iterator[None]:
    arguments, directory = sys.argv, Path.cwd()
    os.chdir(project)
    try:
        yield
    finally:
        os.chdir(directory)
        sys.argv = arguments
