"""The protocol of a parser (sentences in, bracketed constituency trees out), and opening one by name."""

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, cast

from paraforge.base.errors import InputError
from paraforge.base.plugins import found_modules
from paraforge.base.text.paths import expand

# Names that a parameter may have instead of a file. Other packages can add to them.
PARSERS = ("link-grammar", "stanza")
_FILE = "file"
_PACKAGE = "paraforge.base.parsing.parsers"


class Parser(Protocol):
    """A parser, ready to parse."""

    @property
    def fingerprint(self) -> str:
        """SHA-256 of everything that a parse depends on: program, dictionaries or models, settings."""

    def parse(self, sentences: Sequence[str]) -> list[str | None]:
        """Return a bracketed tree for each sentence, e.g. ``(S (NP I) (VP am) .)``; None if the parser found
        no tree or ran out of time."""


class ParserModule(Protocol):
    """The functions of a parser's module."""

    def open_parser(self, path: Path | None) -> Parser:
        """Open the parser; ``path`` is a file of trees, or None for a program or library.

        Raises:
            InputError: it is not installed, or the file cannot be read.
            MissingPackageError: its package is not installed.
        """

    def describe(self) -> str:
        """Return what is installed, for ``paraforge doctor``; raises what :meth:`open_parser` does."""


def parser_names() -> list[str]:
    """Return names of the parsers that are programs or libraries, installed or not."""
    return [name.replace("_", "-") for name in sorted(found_modules(_PACKAGE)) if name != _FILE]


def parser_module(name: str) -> ParserModule:
    """Return the module of a parser that is a program or library. Raises InputError: there is none of this
    name."""
    if name not in parser_names():
        raise InputError(
            f"no parser is called '{name}', and no file has this name",
            remedy=f"Use {', '.join(parser_names())}, or a file with a sentence, a tab and a tree "
            "on each line.",
        )
    return _module(name)


def _module(name: str) -> ParserModule:
    modules = {found.replace("_", "-"): module for found, module in found_modules(_PACKAGE).items()}
    return cast("ParserModule", importlib.import_module(modules[name]))


def open_parser(name: str) -> Parser:
    """Open a parser by its name, or a file of trees by its path.

    Raises:
        InputError: there is no such parser or file, or it is not installed.
        MissingPackageError: a package that it needs is not installed.
    """
    path = Path(expand(name))
    if name not in parser_names() and path.is_file():
        return _module(_FILE).open_parser(path)
    return parser_module(name).open_parser(None)
