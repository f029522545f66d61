"""Parameters: one typed section per stage, all checked before any work."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from paraforge.base.errors import ConfigurationError, InputError, did_you_mean, replacement
from paraforge.base.yaml_text import read_yaml_text
from paraforge.interface.configuration.parameters import Parameters as Parameters
from paraforge.translation.training.parameters import LANGUAGE

PARAMETERS = Path("params.yaml")
Location = Sequence[str | int]
"""The keys and indices that lead to a value."""
# The regular expressions of parameters, with the explanations that errors show.
PATTERNS = {
    r"^[a-z][a-z0-9_.-]*$": "a lowercase letter, then lowercase letters, digits, '_', '.' or '-'",
    r"^[\w][\w.+-]*$": "letters, digits, '_', '.', '+' or '-', beginning with a letter, digit or '_'",
    r"\S": "a text that is not blank",
    r"^[a-z]{2,3}$": "a code of two or three lowercase letters, e.g. en",
    LANGUAGE: "the code of a language, e.g. cs, pt-BR or ces_Latn",
    r"^[a-z0-9][a-z0-9.+-]*$": "the Hub's identifier of a license, e.g. cc-by-4.0",
    r"^[a-z]{2,3}(-[A-Za-z0-9]+)*$": "the code of a language, e.g. cs or pt-BR",
    r"^(tcp|tls|ucx|ws|wss)://.+": "an address such as tcp://HOST:8786",
    r"^(auto|(cpu|cuda)(:[0-9]+)?)$": "auto, cpu, or cuda:0, cuda:1, ...",
    r"^(auto|[0-9]+(\.[0-9]+)? ?([kKMGTP]i?)?B?)$": "auto, or a size such as 4GB",
}


def load_parameters(path: Path = PARAMETERS) -> Parameters:
    """Read and check params.yaml.

    Raises:
        InputError: the file is missing or is not YAML.
        ConfigurationError: invalid values, each with its line and what is allowed.
    """
    try:
        text, content = read_yaml(path)
    except FileNotFoundError as error:
        raise InputError("no such file", path, remedy="Run 'paraforge configure' to write one.") from error
    if not isinstance(content, Mapping):
        raise InputError("no sections", path, remedy="Run 'paraforge configure' to write one.")

    def where(location: Location) -> str:
        line, _ = found_at(text, location)
        return str(path) if line is None else f"{path}:{line}"

    return check_parameters(content, where)


def read_yaml(path: Path) -> tuple[str, Any]:
    """Read a YAML file. Returns its text and its content.

    Raises:
        InputError: it is not UTF-8 or not valid for :func:`read_yaml_text`, with the line.
        FileNotFoundError: there is no such file.
    """
    if path.exists() and not path.is_file():  # reading a pipe could wait forever
        raise InputError("not a regular file", path)
    try:
        text = path.read_text(encoding="utf-8-sig")
        return text, read_yaml_text(text)
    except UnicodeDecodeError as error:
        raise InputError("not UTF-8 text", path) from error
    except yaml.YAMLError as error:
        raise not_yaml(error, path) from error


def not_yaml(error: yaml.YAMLError, path: Path) -> InputError:
    """Return a YAML error as an InputError with its line."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    return InputError(f"not YAML: {problem}", path, None if mark is None else mark.line + 1)


def check_parameters(content: Mapping[str, Any], where: str | Callable[[Location], str]) -> Parameters:
    """Check parameters. where: a name for them, or a function from a key's location to a name. Raises
    ConfigurationError that lists the invalid values, each with what is allowed."""
    try:
        return Parameters.model_validate(content)
    except ValidationError as error:
        raise describe_problems(error, Parameters, content, where) from error


def describe_problems(
    error: ValidationError, model: type[BaseModel], content: Any, where: str | Callable[[Location], str] = ""
) -> ConfigurationError:
    """Return what is wrong with the content of a model, one problem for each value."""
    return ConfigurationError([_describe(problem, model, content, where) for problem in error.errors()])


def _describe(
    problem: Any, model: type[BaseModel], content: Any, where: str | Callable[[Location], str]
) -> str:
    missing = problem["type"] in ("missing", "union_tag_not_found")
    parts = tuple(problem["loc"])
    if problem["type"].startswith("union_tag"):  # reported at its parent too
        parts = (*parts, problem["ctx"]["discriminator"].strip("'"))
    location = _written(content, parts, missing)
    # A missing key is reported at its parent.
    file = where if isinstance(where, str) else where(location[:-1] if missing else location)
    message = problem["msg"].removeprefix("Value error, ").removeprefix("Input ")
    message = message.replace(" after validation", "")
    message = f"{message[:1].lower()}{message[1:]}"
    value = repr(problem["input"])
    shown = value if len(value) <= 80 else f"{value[:77]}..."
    if problem["type"] == "extra_forbidden":
        name, schema = str(location[-1]), model.model_json_schema()
        known = _names_in(schema)
        similar = did_you_mean(name, _names_at(schema, location[:-1]), 0.5) or did_you_mean(name, known)
        suggestion = " here" if name in known else similar
        replaced_by = replacement(name, *map(str, location[:-1]))
        message, shown = f"there is no such parameter{f'. {replaced_by}' if replaced_by else suggestion}", ""
    elif missing:
        message, shown = "missing", ""
    elif problem["type"] == "union_tag_invalid":
        shown, message = repr(problem["ctx"]["tag"]), f"should be one of {problem['ctx']['expected_tags']}"
    elif problem["type"] in ("model_type", "model_attributes_type", "dict_type"):
        message = "should be a mapping of keys to values"
    elif problem["type"] == "string_pattern_mismatch":
        message = f"should be {PATTERNS.get(problem['ctx']['pattern'], problem['ctx']['pattern'])}"
    elif problem["type"] == "value_error" and isinstance(problem["input"], dict | list):
        shown = ""  # the message names its subject itself
    return ": ".join(filter(None, (file, ".".join(map(str, location)), shown, message)))


def _names_in(schema: Mapping[str, Any]) -> list[str]:
    """Return the names of all parameters in a JSON schema."""
    models = [schema, *schema.get("$defs", {}).values()]
    return sorted({name for model in models for name in model.get("properties", {})})


def _names_at(schema: Mapping[str, Any], location: Location) -> list[str]:
    """Return the names of the parameters in the section at a location of a JSON schema."""

    def expand(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        if "$ref" in node:
            yield from expand(schema["$defs"][node["$ref"].rpartition("/")[2]])
        for choice in (*node.get("anyOf", ()), *node.get("oneOf", ())):
            yield from expand(choice)
        yield node

    nodes = [*expand(schema)]
    for part in location:
        below = [
            node.get("items") if isinstance(part, int) else node.get("properties", {}).get(part)
            for node in nodes
        ]
        below += [node.get("additionalProperties") for node in nodes]
        nodes = [choice for inner in below if isinstance(inner, dict) for choice in expand(inner)]
    return sorted({name for node in nodes for name in node.get("properties", {})})


def _written(content: Any, location: Location, missing: bool) -> Location:
    """Return a problem's location without the union kinds that pydantic adds. missing: whether the last part
    is a key that the content lacks."""
    result: list[str | int] = []
    for depth, part in enumerate(location):
        inside = (isinstance(content, dict) and part in content) or (
            isinstance(content, list) and isinstance(part, int) and part < len(content)
        )
        if inside:
            content = content[part]
        if inside or (missing and depth == len(location) - 1):
            result.append(part)
    return result


def found_at(text: str, location: Location) -> tuple[int | None, int]:
    """Find a location in a YAML text. Returns the line, from 1, of its innermost part that exists, None if
    not even the first one does; and how many of its parts exist."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    line = None
    for depth, part in enumerate(location):
        if isinstance(node, yaml.MappingNode):
            pair = next(((key, value) for key, value in node.value if key.value == str(part)), None)
            if pair is None:
                return line, depth
            line, node = pair[0].start_mark.line + 1, pair[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
        else:
            return line, depth
    return line, len(location)
