"""Examples of transfer tasks, and what readers of their files have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from paraforge.base.errors import InputError
from paraforge.base.text.lines import numbered_lines


@dataclass(frozen=True)
class Examples:
    """Texts `first`, or pairs of texts with `second`, and their labels: class names, or numbers,
    unchanged."""

    first: list[str]
    second: list[str] | None
    labels: list[str]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def texts(self) -> list[str]:
        """All texts, those of pairs one after the other."""
        return [*self.first, *(self.second or [])]

    def select(self, rows: Iterable[int]) -> Examples:
        """The examples with these numbers, in this order."""
        chosen = list(rows)
        second = None if self.second is None else [self.second[row] for row in chosen]
        return Examples([self.first[row] for row in chosen], second, [self.labels[row] for row in chosen])

    def repeated_in(self, other: Examples) -> int:
        """How many of these examples, regardless of labels, are among the others too."""
        others = set(other._keys())
        return sum(key in others for key in self._keys())

    @property
    def repeats(self) -> int:
        """How many of these examples, regardless of labels, repeat an earlier one."""
        return len(self) - len(set(self._keys()))

    def _keys(self) -> Iterator[tuple[str, str]]:
        return zip(self.first, self.second or [""] * len(self), strict=True)


def read_labelled(path: Path) -> Examples:
    """`label TAB text` a line. Raises InputError with file and line: another number of fields, a blank label,
    fewer than two classes."""
    rows = ((number, fields_of_line(path, number, text, 2)) for number, text in numbered_lines(path))
    return texts_of_rows(path, ((number, fields[0], fields[1]) for number, fields in rows))


def old_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file from before UTF-8 that are not blank, stripped: several tasks are distributed in
    Latin-1, and have been converted by some who passed them on."""
    data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    for number, line in enumerate(text.split("\n"), start=1):
        if stripped := line.strip():
            yield number, stripped


def read_polarity(paths: Sequence[Path]) -> Examples:
    """SentEval's two files of texts, one per line, the negative (or objective) class first; Latin-1 as they
    are distributed, or UTF-8. Raises InputError where a file is empty."""
    texts: list[str] = []
    labels: list[str] = []
    for label, path in enumerate(paths):
        found = [text for _, text in old_lines(path)]
        if not found:
            raise InputError("the file is empty", path)
        texts += found
        labels += [str(label)] * len(found)
    return Examples(texts, None, labels)


def pairs_of_rows(path: Path, rows: Sequence[tuple[int, list[str]]]) -> Examples:
    """Of rows of label, sentence, sentence."""
    labels, first, second = ([fields[place] for _, fields in rows] for place in range(3))
    _check_classes(path, labels)
    return Examples(first, second, labels)


def rows_with_header(path: Path, columns: Sequence[Sequence[str]]) -> list[tuple[int, list[str]]]:
    """Line number and fields of the columns, each of which has one of several names."""
    lines = numbered_lines(path)
    header = next(lines, None)
    if header is None:
        raise InputError("the file is empty", path)
    names = [name.strip().lower() for name in header[1].split("\t")]
    places = []
    for wanted in columns:
        place = next((names.index(name) for name in wanted if name in names), None)
        if place is None:
            raise InputError(f"no column {' or '.join(wanted)} in the header", path, header[0])
        places.append(place)
    rows: list[tuple[int, list[str]]] = []
    for number, text in lines:
        fields = fields_of_line(path, number, text, len(names))
        chosen = [fields[place] for place in places]
        if not all(chosen):
            raise InputError("a blank label or sentence", path, number)
        rows.append((number, chosen))
    return rows


def fields_of_line(path: Path, number: int, text: str, count: int) -> list[str]:
    fields = [field.strip() for field in text.split("\t")]
    if len(fields) != count:
        raise InputError(f"{len(fields)} fields, {count} are expected", path, number)
    return fields


def texts_of_rows(path: Path, rows: Iterator[tuple[int, str, str]]) -> Examples:
    texts: list[str] = []
    labels: list[str] = []
    for number, label, text in rows:
        # A blank text stays: the customer reviews as they are distributed have one.
        if not label.strip():
            raise InputError("a blank label", path, number)
        labels.append(label.strip())
        texts.append(text.strip())
    _check_classes(path, labels)
    return Examples(texts, None, labels)


def _check_classes(path: Path, labels: list[str]) -> None:
    if len(set(labels)) < 2:
        raise InputError(f"{len(set(labels))} distinct labels, two at least are needed", path)
