"""A user's bitext, looked at before a project is made of it: which side is English, and do lines pair."""

import csv
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import json as arrow_json
from pyarrow import parquet

from paraforge.base.errors import InputError, MissingPackageError
from paraforge.base.shards.schema import holds_text
from paraforge.base.text.lines import Reading, line_blocks, paired_blocks
from paraforge.base.text.paths import files_of
from paraforge.corpus.scoring.general import is_english
from paraforge.intake.bitext.examination import problems
from paraforge.intake.bitext.languages import (
    Languages,
    identified,
    is_header,
    is_identifiable,
    language_code,
    oddity,
    other_language,
)
from paraforge.intake.bitext.parameters import IngestParameters
from paraforge.intake.bitext.source import ONLY, FileSource

_SAMPLE_LINES = 500
_COMPRESSED = {".gz", ".bz2", ".xz", ".zst"}
_FORMATS = {".tsv": "tsv", ".txt": "tsv", ".csv": "csv", ".parquet": "parquet", ".jsonl": "jsonl"}
_ARRAY = "Of a JSON array jq -c '.[]' makes JSON lines, an object a line."
# Of the name of a column.
_MOST_WORDS = 3
_LANGUAGE = re.compile(r"[a-z]{2,3}([-_][A-Za-z]{2,4})?")
# Ends of names that are no languages.
_NO_LANGUAGES = {"txt", "tok", "src", "ref", "trg", "tgt", "raw", "bpe", "tc", "lc"}
_SIDES = ("source_text", "reference")
_NMT_SIDES = ("source", "target")


@dataclass(frozen=True)
class Bitext:
    """Two files, line n of one belonging to line n of the other, or two columns of one file.

    source, reference: the files, the second English if one of them is.
    languages: of both in this order; None where it is not known.
    lines: of each file.
    columns: where one file has both: the places of source and reference in it.
    reading: what else a source of it says: its format, whether it has a header.
    """

    source: Path
    reference: Path
    languages: tuple[str | None, str | None]
    lines: int
    columns: tuple[int | str, ...] = ()
    reading: Mapping[str, Any] = field(default_factory=lambda: {"format": "moses"})

    @property
    def choices(self) -> list[str]:
        """What to configure for it."""
        english = self.languages[1] is None or is_english(self.languages[1])
        return ["corpus=my", "translation=small", "select=quality", *([] if english else ["paragram=corpus"])]

    @property
    def places(self) -> dict[str, str]:
        """What to call the place of each side."""
        columns = [f"column {json.dumps(one, ensure_ascii=False)} of " for one in self.columns] or ["", ""]
        paths = (self.source, self.reference)
        return {side: f"{column}{path}" for side, column, path in zip(_SIDES, columns, paths, strict=True)}

    def entry(self, project: Path | None = None) -> dict[str, Any]:
        """The source that it is. project: the directory that paths inside it are relative to, if any."""
        paths = [_path_in(path, project) for path in (self.source, self.reference)]
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", _stem(self.reference)).strip(".-_") or "my-bitext"
        if self.columns:
            places = {"path": paths[1], "columns": dict(zip(_SIDES, self.columns, strict=True))}
        else:
            places = {"paths": dict(zip(_SIDES, paths, strict=True))}
        return {"name": name, **self.reading, **places}

    def problems(self) -> list[str]:
        """What configure will say of its first rows; what looks odd in them is logged."""
        source, target = self.languages
        return problems(IngestParameters(sources=[self.entry()]), Languages(source, target or "en"))

    def yaml(self, project: Path) -> str:
        """The group file that names it. project: the directory that paths inside it are relative to."""
        source = self.entry(project)
        languages = {
            f"{name}_language": one for name, one in zip(_NMT_SIDES, self.languages, strict=True) if one
        }
        first, *others = (f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in source.items())
        lines = [
            "# @package _global_",
            f"# Your bitext: {self.lines:,} pairs when it was looked at. Name more sources below this one.",
            "ingest:",
            "  kind: bitext",
            "  sources:",
            f"    - {first}",
            *(f"      {one}" for one in others),
            *(["nmt:"] if languages else []),
            *(f"  {key}: {json.dumps(value)}" for key, value in languages.items()),
        ]
        return "\n".join(lines) + "\n"


def look_at(first: Path, second: Path) -> Bitext:
    """Read both files once, in bounded memory.

    Raises InputError: a file is missing, empty, no text or not named as files can be named in parameters,
    they have unequal numbers of lines, are the same, or their text is not in the languages that their names
    say.
    """
    files = (first, second)
    for path in files:
        _check_name(path)
    if first.samefile(second):
        raise InputError("both sides are the same file", first, remedy="--table names a file of both.")
    lines, texts = 0, ([], [])  # type: tuple[int, tuple[list[str], list[str]]]
    for blocks in paired_blocks(dict(zip(_SIDES, files, strict=True)), Reading(strict=False)):
        for found, block in zip(texts, blocks.values(), strict=True):
            found += block.lines.slice(0, max(0, _SAMPLE_LINES - len(found))).to_pylist()
        lines += len(next(iter(blocks.values())))
    languages = [_language(path, text) for path, text in zip(files, texts, strict=True)]
    if languages[0] is not None and languages[0] == languages[1]:
        raise InputError(f"both files seem to be in the same language ({languages[0]})", second)
    if languages[0] is not None and is_english(languages[0]):
        files, languages = (second, first), languages[::-1]
    return Bitext(*files, (languages[0], languages[1]), lines)


def look_at_table(path: Path) -> Bitext:
    """Find the two columns of a file that are an English text and one of another language, by its first rows;
    read it once, in bounded memory.

    Columns of numbers, of labels, of one text, and of words beside columns of sentences are passed over.

    Raises:
        InputError: the file is missing, empty, damaged, of no format that has columns, or has rows that a
            source of its format cannot have; it has not one English column and one of another language.
        MissingPackageError: py3langid, which tells languages, is not installed.
    """
    _check_name(path)
    endings = [one.lower() for one in path.suffixes[::-1]]
    form = next((_FORMATS[one] for one in endings if one in _FORMATS), None)
    if form is None:
        remedy = _ARRAY if ".json" in endings else None
        raise InputError(f"a table is named {', '.join(_FORMATS)}, perhaps compressed", path, remedy=remedy)
    columns, reading = _first_rows(path, form)
    columns = {place: texts for place, texts in columns.items() if any(texts) and oddity(texts) is None}
    # Names of files and of keys; Chinese has no spaces either.
    wordy = {
        place: sum(" " in text or not text.isascii() for text in texts) / len(texts)
        for place, texts in columns.items()
    }
    columns = {place: texts for place, texts in columns.items() if wordy[place] >= max(wordy.values()) / 5}
    languages = {place: identified(texts) for place, texts in columns.items()}
    if None in languages.values():
        raise MissingPackageError("py3langid", "pipeline")
    english = [place for place, one in languages.items() if one is not None and is_english(one)]
    foreign = [place for place in languages if place not in english]
    if len(english) != 1 or len(foreign) != 1:
        seen = ", ".join(f"{json.dumps(place)} in {one!r}" for place, one in languages.items()) or "none"
        raise InputError(
            f"of its columns with text one has to be English and one of another language: {seen}",
            path,
            remedy="Make the project without --table, and name the columns in configs/corpus/my.yaml.",
        )
    found = (foreign[0], english[0])
    entry = {"name": "table", **reading, "path": str(path), "columns": dict(zip(_SIDES, found, strict=True))}
    (source,) = IngestParameters(sources=[entry]).sources
    assert isinstance(source, FileSource)
    lines = sum(len(block) for block in source.read({ONLY: path}, Reading(strict=False)))
    return Bitext(path, path, (languages[found[0]], languages[found[1]]), lines, found, reading)


def _first_rows(path: Path, form: str) -> tuple[dict[int | str, list[str]], dict[str, Any]]:
    """The columns of text in the first rows, and what a source of them says beside its path and columns."""
    reading: dict[str, Any] = {"format": form}
    if form == "parquet":
        try:
            batches = list(islice(parquet.ParquetFile(path).iter_batches(_SAMPLE_LINES), 1))
        except pa.ArrowInvalid as error:
            raise InputError(f"no Parquet file: {error}", path) from error
        return _texts(pa.Table.from_batches(batches)) if batches else {}, reading
    lines = next(line_blocks(path, Reading(strict=False))).lines.slice(0, _SAMPLE_LINES).to_pylist()
    if form == "jsonl":
        for number, line in enumerate(lines, 1):
            if line and not _is_object(line):
                raise InputError("not a JSON object", path, number, _ARRAY if number == 1 else None)
        try:
            return _texts(arrow_json.read_json(pa.BufferReader("\n".join(lines).encode()))), reading
        except pa.ArrowInvalid as error:
            raise InputError(f"its first lines are no JSON objects of one kind: {error}", path) from error
    rows = [line.split("\t") for line in lines]
    if form == "csv":
        try:
            found = {each: list(csv.reader(lines, delimiter=each)) for each in ",;"}
        except csv.Error as error:
            raise InputError(f"its first lines are no comma-separated values: {error}", path) from error
        reading["separator"] = max(found, key=lambda each: len(_even(found[each])))
        if len(_even(rows)) > len(_even(found[reading["separator"]])):
            raise InputError(
                "its columns are separated by tabs", path, remedy="Give it a name that ends in .tsv."
            )
        rows = found[reading["separator"]]
    named = _has_header(rows, form)
    names: Sequence[int | str] = rows[0] if named else range(len(rows[0]))
    even = [row for row in rows[named:] if len(row) == len(names)]
    return dict(zip(names, map(list, zip(*even, strict=True)), strict=bool(even))), reading | {
        "header": named
    }


def _is_object(line: str) -> bool:
    """Whether the line is a JSON object."""
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _even(rows: list[list[str]]) -> list[list[str]]:
    """The rows that have as many columns as the first one, if it has several."""
    return [row for row in rows if len(row) == len(rows[0]) > 1]


def _has_header(rows: list[list[str]], form: str) -> bool:
    """Whether the first row names the columns: it has known names, or a name above numbers; in a CSV file,
    where that is usual, short texts."""
    first, *others = rows
    if len(set(first)) < len(first) or not all(0 < len(cell.split()) <= _MOST_WORDS for cell in first):
        return False
    columns = zip(*_even([first, *others]), strict=True)
    above = (str(oddity(texts)).startswith("has a number") and cell.isalpha() for cell, *texts in columns)
    return form == "csv" or is_header(first) or any(above)


def _texts(table: pa.Table) -> dict[int | str, list[str]]:
    """The columns of text, nested ones by a name with dots."""
    while any(pa.types.is_struct(one.type) for one in table.schema):
        table = table.flatten()
    return {
        field.name: [text or "" for text in column.to_pylist()]
        for field, column in zip(table.schema, table.columns, strict=True)
        if holds_text(field.type)
    }


def _check_name(path: Path) -> None:
    if "$" in str(path) and path.exists():
        raise InputError("variables have such names", path, remedy="Give the file another name.")
    if files_of(str(path)) != [path]:
        raise InputError("patterns of files have such names", path, remedy="Give the file another name.")


def _language(path: Path, text: list[str]) -> str | None:
    """What the text is in, if that can be identified, otherwise what the name says. Raises InputError: the
    text is in another language than the name says."""
    ends = [one[1:] for one in reversed(path.suffixes) if one not in _COMPRESSED]
    codes = [one for one in ends if _LANGUAGE.fullmatch(one.lower()) and one.lower() not in _NO_LANGUAGES]
    named = next(filter(is_identifiable, codes), codes[0] if codes[:1] == ends[:1] else None)
    found = identified(text)
    other = found if named is None else other_language(text, named)
    if found is not None and named is not None and is_english(named) != is_english(found):
        other = found
    if named is not None and other is not None:
        raise InputError(
            f"its name says {named!r}, and its text looks like {other!r}",
            path,
            remedy="Rename the file if the name is wrong, or give the other one.",
        )
    # Models and tokenisers go by codes of two letters.
    return found if named is None else named if len(named) == 2 else language_code(named)


def _stem(path: Path) -> str:
    return path.name.split(".")[0]


def _path_in(path: Path, project: Path | None) -> str:
    absolute = path.resolve()
    is_inside = project is not None and absolute.is_relative_to(project.resolve())
    return os.fspath(absolute.relative_to(project.resolve()) if project and is_inside else absolute)
