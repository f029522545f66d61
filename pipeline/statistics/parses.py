"""The top two levels of constituency parses, from files of bracketed trees or by an installed parser."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from paraforge.errors import InputError, require
from paraforge.statistics.parameters import ParseFile, located
from paraforge.text.lines import numbered_lines

Row = tuple[str, int]
"""Source and line of a pair."""

EXTRA = "parse"
# Parsers put the sentence under one of these.
_WRAPPERS = frozenset({"", "ROOT", "TOP", "S1", "VROOT"})
_PIECE = re.compile(r"\(|\)|[^\s()]+")


def top_two_levels(tree: str) -> str:
    """The root and the labels below it: ``(ROOT (S (NP (PRP I)) (VP (VBP am)) (. .)))`` gives ``S NP VP .``.

    A wrapper that has only the sentence (``ROOT``, ``TOP``, no label) is not the root. Function tags and
    indices (``NP-SBJ-1``, ``NP=2``) are cut off, and empty elements (``-NONE-``) left out, as parsers do.

    Raises:
        ValueError: the brackets do not match, or there is more or less than one tree.
    """
    root, children = _levels(tree)
    while root in _WRAPPERS and len(children) == 1:
        inner = children[0][1]
        if not inner.startswith("("):
            break
        root, children = _levels(inner)
    labels = [_category(label) for label, _ in children]
    return " ".join([_category(root), *(label for label in labels if label != "-NONE-")])


def _category(label: str) -> str:
    """A label without function tags: ``NP-SBJ-1`` is ``NP``; ``-LRB-`` and ``-NONE-`` stay."""
    return label if label.startswith("-") else re.split(r"[-=|]", label, maxsplit=1)[0] or label


def _levels(tree: str) -> tuple[str, list[tuple[str, str]]]:
    """Label of a tree, and of each child its label and text; a word has itself as label."""
    pieces = list(_PIECE.finditer(tree))
    if not pieces or pieces[0].group() != "(":
        raise ValueError("a tree begins with '('")
    label = ""
    position = 1
    if position < len(pieces) and pieces[position].group() not in "()":
        label = pieces[position].group()
        position += 1
    children: list[tuple[str, str]] = []
    depth = 1
    start = 0
    child = ""
    for index in range(position, len(pieces)):
        piece = pieces[index]
        if piece.group() == "(":
            if depth == 1:
                start = piece.start()
                following = pieces[index + 1].group() if index + 1 < len(pieces) else ")"
                child = following if following not in "()" else ""
            depth += 1
        elif piece.group() == ")":
            depth -= 1
            if depth == 1:
                children.append((child, tree[start : piece.end()]))
            elif depth == 0:
                if index != len(pieces) - 1:
                    raise ValueError("there is text after the tree")
                return label, children
        elif depth == 1:
            children.append((piece.group(), piece.group()))
    raise ValueError("a bracket is not closed")


def read_parses(files: Sequence[ParseFile], wanted: Mapping[str, set[int]]) -> dict[Row, str]:
    """The top two levels of the parses of the rows wanted.

    Args:
        files: bracketed trees, one a line; parallel to a source's lines (a blank line has no tree), or keyed:
            source, line number and tree with tabs between them.
        wanted: line numbers, from 1, of each source.

    Raises:
        InputError: a file is missing; a wanted line has no well-formed tree, or no key.
    """
    parses: dict[Row, str] = {}
    for file in files:
        path = located(file.path)
        for number, source, line, tree in _rows(file, path):
            if line in wanted.get(source, ()):
                try:
                    parses[source, line] = top_two_levels(tree)
                except ValueError as error:
                    raise InputError(f"no bracketed tree: {error}", path, number) from error
    return parses


def _rows(file: ParseFile, path: Path) -> Iterator[tuple[int, str, int, str]]:
    for number, text in numbered_lines(path):
        if file.source is not None:
            yield number, file.source, number, text
            continue
        fields = text.split("\t", 2)
        if len(fields) != 3 or not fields[1].isdecimal():
            raise InputError("source, line number and tree are expected, tabs between", path, number)
        yield number, fields[0], int(fields[1]), fields[2]


def parse_with_stanza(sentences: Iterable[Sequence[str]]) -> list[str]:
    """Parse tokenised sentences with Stanza's constituency parser, whose English models the user has fetched.

    Raises:
        MissingPackageError: stanza is not installed.
        InputError: its models are not there.
    """
    stanza: Any = require("stanza", EXTRA)
    try:
        pipeline = stanza.Pipeline(
            "en",
            processors="tokenize,pos,constituency",
            tokenize_pretokenized=True,
            download_method=None,
            verbose=False,
        )
    except Exception as error:  # stanza has exceptions of its own for each kind of missing model
        raise InputError(
            f"statistics.parser: stanza cannot start: {error}",
            remedy="Fetch its models: python -c \"import stanza; stanza.download('en')\".",
        ) from error
    tokens = [list(sentence) for sentence in sentences]
    parsed = pipeline(tokens).sentences if tokens else []
    return [top_two_levels(str(sentence.constituency)) for sentence in parsed]
