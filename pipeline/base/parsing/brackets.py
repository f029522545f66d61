"""Bracketed constituency trees: the top two levels, labels without words, and templates."""

import re
from itertools import accumulate

# Parsers put the sentence under one of these.
_WRAPPERS = frozenset({"", "ROOT", "TOP", "S1", "VROOT"})
_LOOSE = "(X)"
_DEEPEST = 200
_MARKS = {".": ".?!\u2026", ",": ",", ":": ":;-\u2013\u2014"}
_PIECE = re.compile(r"\(|\)|[^\s()]+")


def top_two_levels(tree: str) -> str:
    """Return the root and the labels below it: ``(ROOT (S (NP (PRP I)) (VP (VBP am)) (. .)))`` gives ``S NP
    VP .``.

    A wrapper around the sentence (``ROOT``, ``TOP``, no label) does not count as the root. Function tags and
    indices (``NP-SBJ-1``, ``NP=2``) are cut off, and empty elements (``-NONE-``) are left out, as parsers do.

    Raises ValueError if the brackets do not match or are empty, or there is not exactly one tree.
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
    """Return a label without function tags: ``NP-SBJ-1`` is ``NP``; ``-LRB-`` and ``-NONE-`` stay."""
    return label if label.startswith("-") else re.split(r"[-=|]", label, maxsplit=1)[0] or label


def _levels(tree: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the label of a tree, and the label and text of each child. A word is its own label."""
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
                if not label and not children:
                    raise ValueError("a pair of brackets is empty")
                return label, children
        elif depth == 1:
            children.append((piece.group(), piece.group()))
    raise ValueError("a bracket is not closed")


def skeleton(tree: str) -> str:
    """Return a tree without words: ``(ROOT (S (NP (PRP I)) (VP am) .))`` gives ``(S (NP (PRP)) (VP) (.))``.

    Punctuation beside phrases is ``(.)``, ``(,)`` or ``(:)``, as in the Penn treebank; quotes and brackets
    are left out; other words beside phrases become ``(X)``, one for several in a row.

    Raises ValueError as :func:`top_two_levels`, and if a phrase is empty or brackets are nested more than 200
    deep.
    """
    depths = accumulate({"(": 1, ")": -1}.get(letter, 0) for letter in tree)
    if max(depths, default=0) > _DEEPEST:
        raise ValueError(f"brackets are nested more than {_DEEPEST} deep")
    return _skeleton(tree)


def _skeleton(tree: str) -> str:
    label, children = _levels(tree)
    while label in _WRAPPERS and len(children) == 1 and children[0][1].startswith("("):
        label, children = _levels(children[0][1])
    kept: list[str] = []
    phrases = any(text.startswith("(") for _, text in children)
    for _, text in children:
        if text.startswith("("):
            inner = _skeleton(text)
            if inner != "(-NONE-)":
                kept.append(inner)
        elif phrases:
            loose = _loose(text)
            if loose and not (loose == _LOOSE and kept[-1:] == [_LOOSE]):
                kept.append(loose)
    return f"({' '.join([_category(label), *kept])})"


def _loose(word: str) -> str:
    """Return the label of a word outside any phrase; empty for quotes and brackets."""
    if any(map(str.isalnum, word)):
        return _LOOSE
    return next((f"({label})" for label, marks in _MARKS.items() if word[0] in marks), "")


def template_of(tree: str) -> str:
    """Return the top two levels of a tree as a template: ``(S (NP) (VP) (.))``. Raises ValueError as
    :func:`skeleton`."""
    root, *labels = top_two_levels(skeleton(tree)).split()
    return f"({' '.join([root, *(f'({label})' for label in labels)])})"
