"""Defines what a reader implements: the parameters of a source, the blocks of rows that it yields, and the
reasons to reject rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import Field, model_validator

from paraforge.base.errors import InputError
from paraforge.base.section import Section
from paraforge.base.text.lines import FAULTS, LineBlock, Reading, finite_number
from paraforge.base.text.paths import FilePath

REASONS: dict[str, str] = {
    "malformed": "the row cannot be read: wrong number of columns, not JSON, a score that is not a number",
    "invalid_utf8": "the line is not UTF-8",
    "null_byte": "the text has a NUL character",
    "overlong_line": "the line has more than a megabyte; the rest of it was not read",
    "contaminated": "the row is in the source's list drop_rows",
    "damaged_characters": "a side has lost characters: U+FFFD, or UTF-8 that was read in another encoding",
    "control_characters": "a side has a control character other than tabs and line breaks",
    "blank_source": "the foreign side is blank",
    "blank_reference": "the reference is blank",
    "blank_translation": "the translation of an existing paraphrase corpus is blank",
    "too_long": "a side has more than max_characters characters or max_words words",
    "identical": "the two sides are the same",
    "length_ratio": "one side is more than max_length_ratio times as long as the other, by its script",
    "duplicate": "an earlier row has the same two sides, ignoring case and invisible characters",
}

NAMES = tuple(REASONS)
# Numbers for the reasons in a block: 0 means that the row is not rejected, n means NAMES[n - 1].
CODES: dict[str, int] = {name: number for number, name in enumerate(NAMES, start=1)}


REJECT_MALFORMED = (
    "Correct it, or set ingest.cleaning.malformed to 'reject' to have such rows counted and left out."
)


_FAULT_CODES = np.array([0, *(CODES[fault] for fault in FAULTS)], dtype=np.uint8)


@dataclass
class Block:
    """Consecutive rows of a source.

    lines: line (or record) number of each row in its file, from 1; int64.
    texts: a string array without nulls for each text column: ``source_text``, ``reference``, ``translation``.
    codes: for each row the reason to reject it, a value of :data:`CODES`, or 0.
    scores: float32 with nulls, if the source has a score column.
    """

    lines: NDArray[np.int64]
    texts: dict[str, pa.Array]
    codes: NDArray[np.uint8]
    scores: pa.Array | None = None

    def __post_init__(self) -> None:
        parts = {"codes": self.codes, "scores": self.scores, **self.texts}
        wrong = [name for name, part in parts.items() if part is not None and len(part) != len(self.lines)]
        wrong += [name for name, texts in self.texts.items() if texts.null_count]
        if wrong:
            raise ValueError(
                f"{', '.join(wrong)}: not one value for each of {len(self.lines)} lines, or a null"
            )

    def __len__(self) -> int:
        return len(self.lines)

    def refuse(self, rows: NDArray[np.bool_], reason: str) -> None:
        """Reject the rows of a mask for a reason; rows that have a reason keep it."""
        self.codes[rows & (self.codes == 0)] = CODES[reason]

    def reject(
        self,
        rows: NDArray[np.bool_],
        reason: str,
        path: Path,
        strict: bool,
        problem: str | Callable[[int], str],
    ) -> None:
        """Reject the rows of a mask because they cannot be read; rows that have a reason keep it.

        problem: message for the error, or a function that returns the message for the index of a row.
        Raises InputError for the first of these rows if the reading is strict.
        """
        new = rows & (self.codes == 0)
        if strict and new.any():
            row = int(new.argmax())
            told = problem if isinstance(problem, str) else problem(row)
            raise InputError(told, path, int(self.lines[row]), REJECT_MALFORMED)
        self.refuse(new, reason)


def reason_codes(lines: LineBlock) -> NDArray[np.uint8]:
    """Return the code of the reason to reject each line; 0 for good lines."""
    return _FAULT_CODES[lines.faults]


def reason_names(codes: NDArray[np.uint8]) -> pa.Array:
    """Return the names of the reasons with these codes; null for code 0."""
    return pa.array([None, *NAMES], pa.string()).take(pa.array(codes))


def parse_scores(texts: pa.Array, block: Block, path: Path, strict: bool) -> pa.Array:
    """Return the scores as float32: null for a blank text. Rows with other texts are rejected as malformed.

    Raises InputError if the reading is strict and a row that is not rejected yet has such a text.
    """
    trimmed = pc.utf8_trim_whitespace(texts)
    trimmed = pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, pa.string()), trimmed)
    try:
        scores = trimmed.cast(pa.float32())
    except pa.ArrowInvalid:
        scores = pa.array([finite_number(text or "") for text in trimmed.to_pylist()], pa.float32())
    wrong = pc.and_(trimmed.is_valid(), pc.invert(pc.fill_null(pc.is_finite(scores), False)))

    def problem(row: int) -> str:
        return f"the score is {trimmed[row].as_py()!r}, not a number"

    block.reject(np.asarray(wrong, dtype=bool), "malformed", path, strict, problem)
    return pc.if_else(wrong, pa.scalar(None, pa.float32()), scores)


ColumnPlace = int | str
LONGEST_NAME = 100
ONLY = "file"  # key of the path if one file has all columns


class NamedSource(Section):
    """A source of rows."""

    name: str = Field(
        pattern=r"^[\w][\w.+-]*$",
        max_length=LONGEST_NAME,
        description="unique name, which the column 'source' shows",
    )
    license: str | None = Field(
        None,
        pattern=r"\S",
        max_length=200,
        description="license of its text, e.g. CC-BY-4.0, for manifest and card",
    )

    @abstractmethod
    def column_names(self) -> set[str]:
        """Return the names of the source's columns."""


class FileSource(NamedSource):
    """Files of one format. A subclass has a field ``format``, a literal with the format's name."""

    drop_rows: FilePath | None = Field(
        None,
        description="file of row numbers to reject as contaminated (counted from 0, in the first column, "
        "perhaps with a header)",
    )

    @abstractmethod
    def patterns(self) -> dict[str, list[str]]:
        """Return paths and patterns of files: for one key if each file has all columns, or else by column."""

    @abstractmethod
    def read(self, paths: Mapping[str, Path], reading: Reading) -> Iterator[Block]:
        """Read one file, or parallel files line by line.

        paths: a file for each key of :meth:`patterns`.
        Raises InputError if a file cannot be read; with the line if known.
        """


class ColumnSource(FileSource):
    """Files that each have all columns."""

    path: FilePath | list[FilePath] = Field(
        min_length=1,
        description="a file, a pattern of files, or a list of them; environment variables ($NAME) are "
        "expanded",
    )
    columns: dict[str, ColumnPlace]

    def patterns(self) -> dict[str, list[str]]:
        """Return ``path`` as a list."""
        return {ONLY: [self.path] if isinstance(self.path, str) else self.path}

    def column_names(self) -> set[str]:
        """Return the names of the source's columns."""
        return set(self.columns)


class NamedColumnSource(ColumnSource):
    """Files with named columns."""

    @model_validator(mode="after")
    def _names(self) -> NamedColumnSource:
        if any(isinstance(place, int) for place in self.columns.values()):
            raise ValueError("this format has named columns: use their names")
        return self

    @property
    def names(self) -> dict[str, str]:
        """Return the name of each column in the files."""
        return {column: str(place) for column, place in self.columns.items()}


class SeparatedSource(ColumnSource):
    """Files of lines with columns by number, or by name if there is a header."""

    header: bool = Field(False, description="whether the first line names the columns")

    @model_validator(mode="after")
    def _allowed(self) -> SeparatedSource:
        named = [place for place in self.columns.values() if isinstance(place, str)]
        if named and not self.header:
            raise ValueError(
                f"column {named[0]!r} is a name: set 'header: true', or give the column's number"
            )
        if any(isinstance(place, int) and place < 0 for place in self.columns.values()):
            raise ValueError("columns are counted from 0")
        return self
