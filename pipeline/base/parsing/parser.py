"""The protocol of a parser (sentences in, bracketed constituency trees out), and opening one by name."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Protocol

from paraforge.base.errors import InputError
from paraforge.base.text.paths import expand

# Modules and classes of ``parsers/``.
_CLASSES = {"link-grammar": ("link_grammar", "LinkGrammar"), "stanza": ("stanza", "StanzaParser")}
# Names that a parameter may have instead of a file.
PARSERS = tuple(_CLASSES)


class Parser(Protocol):
    """A parser, ready to parse."""

    @property
    def fingerprint(self) -> str:
        """SHA-256 of everything that a parse depends on: program, dictionaries or models, settings."""

    @property
    def version(self) -> str:
        """Description of the installed version."""

    def parse(self, sentences: Sequence[str]) -> list[str | None]:
        """Return a bracketed tree for each sentence, e.g. ``(S (NP I) (VP am) .)``; None if the parser found
        no tree or ran out of time."""


def open_parser(name: str) -> Parser:
    """Open a parser by its name, or a file of trees by its path.

    Raises:
        InputError: there is no such parser or file, or it is not installed.
        MissingPackageError: a package that it needs is not installed.
    """
    if name in _CLASSES:
        module, parser = _CLASSES[name]
        opened: Parser = getattr(import_module(f"paraforge.base.parsing.parsers.{module}"), parser)()
        return opened
    path = Path(expand(name))
    if not path.is_file():
        raise InputError(
            f"there is no parser or file '{name}'",
            remedy=f"Use {', '.join(PARSERS)}, or a file with a sentence, a tab and a tree on each line.",
        )
    from paraforge.base.parsing.parsers.file import ParseTable

    return ParseTable(path)


def describe_parser(name: str) -> str:
    """Return a description of an installed parser, for ``paraforge doctor``.

    Raises the errors of :func:`open_parser`, and InputError if the parser cannot parse a sentence.
    """
    parser = open_parser(name)
    if parser.parse(["It works."]) == [None]:
        raise InputError(f"{name} cannot parse: its English dictionary or models are missing")
    return f"{parser.version}; constituency parses for statistics and paraphrasing"
