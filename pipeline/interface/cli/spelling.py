"""How options are written: one spelling of one idea in every command."""

from enum import Enum
from typing import Any

import typer

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
