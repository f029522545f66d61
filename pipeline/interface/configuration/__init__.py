"""Parameters: one section a stage, typed, and checked as a whole before any work."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from paraforge.base.errors import ConfigurationError, InputError, did_you_mean
from paraforge.base.yaml_text import read_yaml_text
from paraforge.interface.configuration.parameters import Parameters
from paraforge.interface.configuration.places import Location, known_keys, line_of, written

PARAMETERS = Path("params.yaml")
__all__ = ["PARAMETERS", "Parameters", "check_parameters", "load_parameters", "not_yaml", "read_yaml"]


def load_parameters(path: Path = PARAMETERS) -> Parameters:
    """Read and check params.yaml.

    Raises:
        InputError: the file is missing or is not YAML.
        ConfigurationError: values are not allowed; each is named with its line and what is allowed.
    """
    try:
        text, content = read_yaml(path)
    except FileNotFoundError as error:
        raise InputError("no such file", path, remedy="Run 'paraforge configure' to write one.") from error
    if not isinstance(content, Mapping):
        raise InputError("no sections", path, remedy="Run 'paraforge configure' to write one.")

    def where(location: Location) -> str:
        line = line_of(text, location)
        return str(path) if line is None else f"{path}:{line}"

    return check_parameters(content, where)


def read_yaml(path: Path) -> tuple[str, Any]:
    """Return the text of a YAML file and its content.

    Raises:
        InputError: it is not UTF-8, or what :func:`read_yaml_text` refuses; with the line.
        FileNotFoundError: there is no such file.
    """
    if path.exists() and not path.is_file():  # a pipe would be waited for without end
        raise InputError("not a regular file", path)
    try:
        text = path.read_text(encoding="utf-8")
        return text, read_yaml_text(text)
    except UnicodeDecodeError as error:
        raise InputError("not UTF-8 text", path) from error
    except yaml.YAMLError as error:
        raise not_yaml(error, path) from error


def not_yaml(error: yaml.YAMLError, path: Path) -> InputError:
    """Return what is wrong with a YAML file, and in which line."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    return InputError(f"not YAML: {problem}", path, None if mark is None else mark.line + 1)


def check_parameters(content: Mapping[str, Any], where: str | Callable[[Location], str]) -> Parameters:
    """Check parameters that were read from ``where``, a name or a function from a key's location to one.
    Raises ConfigurationError: values are not allowed; each is named with what is allowed."""
    try:
        return Parameters.model_validate(content)
    except ValidationError as error:
        raise ConfigurationError([_describe(one, content, where) for one in error.errors()]) from error


def _describe(problem: Any, content: Any, where: str | Callable[[Location], str]) -> str:
    location = written(content, problem["loc"])
    missing = problem["type"] == "missing"
    # What is missing is missing from what is around it.
    file = where if isinstance(where, str) else where(location[:-1] if missing else location)
    place = ": ".join(part for part in (file, ".".join(map(str, location))) if part)
    if problem["type"] == "extra_forbidden":
        close = did_you_mean(str(location[-1]), known_keys(Parameters, problem["loc"]))
        return f"{place}: there is no such parameter{close}"
    if missing:
        return f"{place}: missing"
    message = problem["msg"].removeprefix("Value error, ").removeprefix("Input ")
    value = repr(problem["input"])
    if problem["type"] == "value_error" and isinstance(problem["input"], dict | list):
        shown = ""  # it says itself what it is about
    else:
        shown = f": {value if len(value) <= 80 else f'{value[:77]}...'}"
    return f"{place}{shown}: {message[:1].lower()}{message[1:]}"
