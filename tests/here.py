"""Runs commands and stages in this process: faster than a separate one, and can be stopped anywhere."""

import contextlib
import importlib
import inspect
import math
import os
import resource
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import typer
from hypothesis import settings
from typer.testing import CliRunner

import paraforge
from paraforge.base.errors import Interrupted
from paraforge.interface import cli
from paraforge.interface.project import creation
from paraforge.stages.common import parameters_of
from tests.project import stage_names

_PROJECT = str(Path(paraforge.__file__).parent)


@contextlib.contextmanager
def few_files(more: int = 60) -> Iterator[None]:
    """Limit the open files of this process to a few more than now."""
    usual = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len([*Path("/dev/fd").iterdir()]) + more, usual[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, usual)


def run_command(
    *arguments: object, stdin: str | bytes | None = None, expect: int | None = 0, app: typer.Typer = cli.app
) -> Any:
    """Run a command in this process and return click's result. Its errors are raised, and the expected exit
    code is checked."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert expect is None or result.exit_code == expect, result.output
    return result


def run_stage(name: str) -> None:
    """Run a stage in this process."""
    sys.argv = [name, *stage_names()[name]]
    importlib.import_module(f"paraforge.stages.{name}").main(parameters_of(name))


def fewer_examples(divisor: int) -> settings:
    """Try a property that runs a whole stage with fewer examples than the profile."""
    return settings(max_examples=max(1, settings().max_examples // divisor))


@dataclass
class Calls:
    """The number of project functions that have been called."""

    count: int = 0


@contextlib.contextmanager
def ended_at(last: float = math.inf) -> Iterator[Calls]:
    """End the block like a signal does, when this thread calls the n-th function of the project. Count the
    calls."""
    calls = Calls()

    def watch(frame: FrameType, event: str, argument: object) -> None:
        # Not where a generator goes on, which can be its removal: an exception there is lost.
        is_call = event == "call" and not frame.f_code.co_flags & inspect.CO_GENERATOR
        if is_call and _PROJECT in frame.f_code.co_filename:
            calls.count += 1
            if calls.count >= last:
                sys.setprofile(None)
                raise SystemExit(Interrupted.exit_code)

    sys.setprofile(watch)
    try:
        yield calls
    finally:
        sys.setprofile(None)


@contextlib.contextmanager
def without_git_and_dvc() -> Iterator[None]:
    """Let ``init`` start neither git nor DVC, which take seconds; tests/test_projects.py tests both."""
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
