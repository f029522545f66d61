"""What looks odd in the first rows of a file of pairs: most likely it is not the column that was meant."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# Of fewer rows nothing is said.
_ROWS = 20
_MOST = 0.9
# Rows for each text of a column of labels.
_REPEATED = 20
_SHOWN = 40
_NUMBER = re.compile(r"\s*[-+]?[\d][\d.,:/%eE+-]*\s*")
_HEADINGS = re.compile(
    r"(source|target|src|tgt|ref|hyp|mt|text|sentence|sent|phrase|reference|translation|paraphrase|original|"
    r"hypothesis|premise|english|question)([ _-]?(text|sentence|lang|[12ab])|[ _-][a-z]{2})?|[st][12]|"
    r"(?-i:[a-z]{2})",
    re.I,
)


@dataclass(frozen=True)
class Oddity:
    """One observation; ``str()`` is a clause about it. is_header: whether it is about the first row."""

    text: str
    is_header: bool = False

    def __str__(self) -> str:
        return self.text


def oddities(rows: Mapping[str, Sequence[str | None]], places: Mapping[str, str]) -> list[Oddity]:
    """A side that is one text, a label or a number in every row, two equal sides, a header as a row.

    rows: the first rows of each side, a null as None. places: what a reader calls each side's place.
    """
    sides = {name: [text or "" for text in texts] for name, texts in rows.items()}
    count = min(map(len, sides.values()))
    found = []
    if count >= _ROWS:
        found += [Oddity(f"{places[name]} {odd}") for name, texts in sides.items() if (odd := oddity(texts))]
        same = sum(len(set(row)) == 1 for row in zip(*sides.values(), strict=True)) / count
        if same >= _MOST and not found:
            named = " and ".join(places[name] for name in sides)
            found.append(Oddity(f"{named} are the same in {same:.0%} of the first {count} rows"))
    if count > 1 and is_header([texts[0] for texts in sides.values()]):
        shown = ", ".join(repr(texts[0]) for texts in sides.values())
        found.append(Oddity(f"the first row is {shown}, which looks like a header", is_header=True))
    return found


def oddity(texts: Sequence[str]) -> str | None:
    """What a column of at least 20 texts is instead of sentences: one text, labels, or numbers."""
    if len(texts) < _ROWS:
        return None
    if len(set(texts)) == 1:
        return f"is {texts[0][:_SHOWN]!r} in every row" if texts[0] else "is empty in every row"
    if len(set(texts)) <= len(texts) / _REPEATED:
        return f"has {len(set(texts))} texts in {len(texts)} rows, {texts[0][:_SHOWN]!r} for one"
    numbers = sum(_NUMBER.fullmatch(text) is not None for text in texts)
    return (
        f"has a number in {numbers / len(texts):.0%} of the rows" if numbers >= _MOST * len(texts) else None
    )


def is_header(cells: Sequence[str]) -> bool:
    """Whether a row has the names of columns: different ones, and all of them known as such."""
    return len(set(cells)) == len(cells) > 1 and all(_HEADINGS.fullmatch(cell.strip()) for cell in cells)
