"""Parameters: one section a stage, typed, and checked as a whole before any work."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from paraforge.configuration.parameters import Parameters
from paraforge.errors import ConfigurationError, InputError

PARAMETERS = Path("params.yaml")

__all__ = ["PARAMETERS", "Parameters", "check_parameters", "load_parameters"]


def load_parameters(path: Path = PARAMETERS) -> Parameters:
    """Read and check params.yaml.

    Raises:
        InputError: the file is missing or is not YAML.
        ConfigurationError: values are not allowed; every one is named, with what is allowed.
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError("no such file", path, remedy="Run 'paraforge configure' to write one.") from error
    except UnicodeDecodeError as error:
        raise InputError("not UTF-8 text", path) from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = None if mark is None else mark.line + 1
        raise InputError(f"not YAML: {getattr(error, 'problem', None) or error}", path, line) from error
    if not isinstance(content, Mapping):
        raise InputError("no sections", path, remedy="Run 'paraforge configure' to write one.")
    return check_parameters(content, where=str(path))


def check_parameters(content: Mapping[str, Any], where: str) -> Parameters:
    """Check parameters that were read from ``where``.

    Raises:
        ConfigurationError: values are not allowed; every one is named, with what is allowed.
    """
    try:
        return Parameters.model_validate(content)
    except ValidationError as error:
        raise ConfigurationError([_describe(problem, where) for problem in error.errors()]) from error


def _describe(problem: Any, where: str) -> str:
    key = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        return f"{where}: {key}: there is no such parameter"
    if problem["type"] == "missing":
        return f"{where}: {key}: missing"
    message = problem["msg"].removeprefix("Value error, ").removeprefix("Input ")
    value = repr(problem["input"])
    shown = value if len(value) <= 80 else f"{value[:77]}..."
    return f"{where}: {key}: {shown}: {message[:1].lower()}{message[1:]}"
