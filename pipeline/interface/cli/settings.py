"""What commands share: one spelling of an option, options of parameters, ``--set KEY=VALUE``, ``--columns``,
what is said of wrong ones, and scores."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from enum import Enum
from functools import reduce, wraps
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin

import typer

from paraforge.base.errors import ConfigurationError

if TYPE_CHECKING:
    from pydantic import BaseModel

    Parameters = TypeVar("Parameters", bound=BaseModel)


DEVICE_HELP = "where the model runs: cpu, cuda, cuda:1, ...; auto is a GPU where there is one"

SPREADSHEET = typer.Option(
    False, "--safe-for-spreadsheets", help="csv, tsv: an apostrophe before texts that look like formulas"
)
SENTENCES = typer.Argument(
    metavar="INPUT", help="sentences, one per line; plain, gz, bz2, xz or zst; - for standard input"
)
TRANSLATIONS = typer.Argument(
    metavar="OUTPUT", help="TSV: line, rank, score, text; .gz is compressed; - for standard output"
)
DEVELOPMENT = typer.Option([], help="STS file or directory that chooses the model among its evaluations")
TEST_SETS = typer.Option([], "--test", help="STS file or directory to evaluate on at the end")


def group(text: str, **options: Any) -> typer.Typer:
    """A command that is several commands; ``text`` is its help."""
    return typer.Typer(
        help=text, rich_markup_mode=None, add_completion=False, no_args_is_help=True, **options
    )


def options_of(
    section: type[BaseModel], *keys: str, **named: str
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option for each of these parameters. Their values come as its first argument, the
    content of the whole section, for :func:`checked`.

    Name, default and help of an option are the parameter's; where it may be null, an option that is not given
    is null.

    section: a class of parameters that all have defaults.
    keys: parameters, e.g. ``network.word_dimension``. named: those whose option has another name.
    """
    defaults = section()
    paths = {key.split(".")[-1]: key.split(".") for key in keys}
    paths |= {name: key.split(".") for name, key in named.items()}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)
        _, *others = signature.parameters.values()
        listed = [_option(name, defaults, path) for name, path in paths.items()]
        listed += [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in others]

        @wraps(command)
        def run(**given: Any) -> None:
            values = defaults.model_dump()
            for name, path in paths.items():
                reduce(dict.__getitem__, path[:-1], values)[path[-1]] = given.pop(name)
            command(values, **given)

        vars(run)["__signature__"] = signature.replace(parameters=listed)
        run.__annotations__ = {one.name: one.annotation for one in listed}
        return run

    return decorate


def _option(name: str, defaults: BaseModel, path: list[str]) -> inspect.Parameter:
    """The option of the parameter at ``path``."""
    owner: Any = reduce(getattr, path[:-1], defaults)
    field = type(owner).model_fields[path[-1]]
    kind: Any = field.annotation
    choices = None
    if get_origin(kind) is Literal:
        kind, choices = str, "|".join(get_args(kind))
    elif get_origin(kind) is list:
        kind = list[str]
    # A flag without its opposite, which typer would add.
    spelled = [f"--{name.replace('_', '-')}"] if kind is bool else []
    value = getattr(owner, path[-1])
    # An option that has a value cannot be left null.
    absent = ("null", "not given") if value is None else (r"; null .*", "")
    description = re.sub(*absent, field.description or "")
    default = typer.Option(value, *spelled, help=description, metavar=choices)
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def checked(parameters: type[Parameters], content: dict[str, Any]) -> Parameters:
    """Parameters of this class. Raises ConfigurationError: values are not allowed; every one is named."""
    from pydantic import ValidationError

    try:
        return parameters.model_validate(content)
    except ValidationError as error:
        problems = [
            f"{'.'.join(str(part) for part in problem['loc']) or 'model'}: {problem['msg']}"
            for problem in error.errors()
        ]
        raise ConfigurationError(problems) from error


def column_pair(text: str) -> tuple[int, int]:
    """Two different columns, counted from 0, such as `0,1`; ConfigurationError for anything else."""
    first, _, second = text.partition(",")
    if not all(part.strip().isdecimal() for part in (first, second)) or int(first) == int(second):
        raise ConfigurationError([f"--columns {text}: two different columns, such as 0,1"])
    return int(first), int(second)


def put_setting(content: dict[str, Any], setting: str) -> None:
    """Set `a.b.0.c=value`; of several parts of an encoder, `encoder.dimension` sets that of each."""
    import yaml

    from paraforge.base.yaml_text import read_yaml_text

    key, equals, text = setting.partition("=")
    if not equals or not key:
        raise ConfigurationError([f"--set {setting}: KEY=VALUE is expected, e.g. training.epochs=3"])
    try:
        value = read_yaml_text(text)
    except yaml.YAMLError as error:
        raise ConfigurationError([f"--set {setting}: {str(error).splitlines()[0]}"]) from error
    *path, last = key.split(".")
    targets: list[Any] = [content]
    for name in path:
        targets = [_step(target, name, setting) for target in targets]
    for target in targets:
        parts = target.get("parts") if isinstance(target, dict) else None
        if parts and last not in ("kind", "parts"):
            for part in parts:
                part[last] = value
        elif isinstance(target, dict):
            target[last] = value
        else:
            raise ConfigurationError([f"--set {setting}: there is nothing to set"])


def _step(target: Any, name: str, setting: str) -> Any:
    if isinstance(target, list) and name.isdecimal() and int(name) < len(target):
        return target[int(name)]
    if isinstance(target, dict):
        # An encoder that is not named is the default one.
        return target.setdefault(name, {"kind": "average"} if name == "encoder" else {})
    raise ConfigurationError([f"--set {setting}: there is no {name}"])


def score_lines(best_score: float | None, years: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A line for the development score, where there is one, and one for each year's Pearson and Spearman."""
    lines = [] if best_score is None else [f"development score {best_score:.2f}"]
    return lines + [
        f"{name:20} Pearson {score['pearson'] or 0:6.2f}  Spearman {score['spearman'] or 0:6.2f}"
        + (
            f"  ({score['development_pairs']} of its {score['pairs']} pairs chose the epoch)"
            if "development_pairs" in score
            else ""
        )
        for name, score in years.items()
    ]


def name_values(command: Any) -> None:
    """Give every argument and option of a command, or of the commands of a group, a name for its value.

    Names are in capitals: what the parameter was given, otherwise the argument's name or the option's type.
    """
    for inner in getattr(command, "commands", {}).values():
        name_values(inner)
    for parameter in command.params:
        if parameter.metavar is None and not getattr(parameter, "is_flag", False):
            argument = parameter.param_type_name == "argument"
            parameter.metavar = parameter.name.upper() if argument else _metavar(parameter)


def _metavar(option: Any) -> str:
    # Of an older typer the option has a type of click, with a name.
    kind = option.type_descriptor.annotation if hasattr(option, "type_descriptor") else option.type
    name = (kind.__name__ if isinstance(kind, type) else str(getattr(kind, "name", kind))).lower()
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "|".join(str(choice.value) for choice in kind)
    for metavar, words in {"PATH": ("path",), "N": ("int",), "X": ("float",)}.items():
        if any(word in name for word in words):
            return metavar
    return "TEXT"
