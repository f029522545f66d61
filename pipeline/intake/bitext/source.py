"""Base classes of sources: their parameters, and the methods that find and read their files."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import Field, model_validator

from paraforge.base.section import Section
from paraforge.base.text.lines import Reading
from paraforge.base.text.paths import FilePath
from paraforge.intake.bitext.block import Block

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
    licence: str | None = Field(
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
