"""Markdown tables and text in which no character of foreign text is taken for markup."""

import re
from collections.abc import Iterable, Sequence

_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
# Characters that begin emphasis, code, links, images, formulas, headings and cells. An underscore inside a
# word does not.
_MARKUP = re.compile(r"[\\`*|~#$]|\](?=[(\[:])|(?<!\w)_|_(?!\w)")


def escape(text: str) -> str:
    """Return the text on one line, escaped so that it is shown literally."""
    return _MARKUP.sub(r"\\\g<0>", " ".join(text.split())).translate(_ENTITIES)


def code(text: str) -> str:
    """Return the text on one line as a code span, fenced by more backticks than its longest run of them."""
    line = " ".join(text.split())
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", line)), default=0))
    space = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{space}{line}{space}{fence}"


def clip(text: str | None, length: int = 200) -> str:
    """Return a sentence for a table, cut if it is very long."""
    line = " ".join((text or "").split())
    return line if len(line) <= length else line[: length - 1] + "…"


class Code(str):
    """Text of a table cell that is shown as code."""

    __slots__ = ()


def table(head: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> str:
    """Return a table of plain text and of :class:`Code`; the columns ``right`` are aligned to the right."""
    aligned = set(right)
    lines = [
        _row(map(escape, head)),
        "|" + "|".join("---:" if place in aligned else "---" for place in range(len(head))) + "|",
    ]
    return "\n".join([*lines, *(_row(map(_cell, row)) for row in rows)])


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Return lines of aligned columns of plain text: the first ``left`` to the left, the others to the
    right."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if place < left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [header, *rows]
    ]


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(text: str) -> str:
    # A bar ends the cell even inside a code span.
    return code(text).replace("|", "\\|") if isinstance(text, Code) else escape(text)
