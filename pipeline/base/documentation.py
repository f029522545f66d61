"""Finds the pages of this version's documentation, and what replaces removed names."""

import re
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent


def page(name: str) -> str:
    """Return the path of a page, such as ``models``, for an error or a help text to name."""
    installed = _PACKAGE / "docs"
    return str((installed if installed.is_dir() else _PACKAGE.parent / "docs") / f"{name}.md")


def replacement(name: str, *owners: str) -> str:
    """Return a sentence on what replaces a removed command, option or parameter, from the table in the
    changelog; empty if the table has no such name.

    name: a command, an option such as ``--format``, or a parameter's last name.
    owners: an option's command, or the sections of a parameter; the row must name one of them.
    """
    places = (_PACKAGE / "CHANGELOG.md", _PACKAGE.parent / "CHANGELOG.md")
    text = next((place.read_text(encoding="utf-8") for place in places if place.is_file()), "")
    for gone, use in re.findall(r"^\| (`.*?) \| (.*) \|$", text, re.MULTILINE):
        words = [word.partition(":")[0] for word in re.findall(r"`([^`]*)`", gone)]
        # "`plan --precision`, `--model`": the first name has the owner's, which the others share.
        names = {part for word in words for part in (word, word.split()[-1], word.rpartition(".")[2])}
        if name in names and (not owners or any(re.search(rf"\b{re.escape(one)}\b", gone) for one in owners)):
            return f"It was removed in this version; now: {use}"
    return ""
