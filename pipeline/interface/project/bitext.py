"""A user's bitext, table of paraphrases or English text, looked at before a project is made of it."""

import csv
import importlib.util
import json
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from paraforge.base.errors import InputError, MissingPackageError
from paraforge.base.shards.schema import holds_text
from paraforge.base.text.compression import refuse_lfs_pointer
from paraforge.base.text.language_codes import CODES, THREE_LETTERS
from paraforge.base.text.lines import Reading, line_blocks, paired_blocks
from paraforge.base.text.paths import files_of
from paraforge.base.yaml_text import yaml_text
from paraforge.corpus.scoring.general import is_english
from paraforge.intake.bitext.columns import LANGUAGE, is_header, oddity
from paraforge.intake.bitext.examination import problems
from paraforge.intake.bitext.languages import (
    Languages,
    identified,
    is_identifiable,
    language_code,
    other_language,
)
from paraforge.intake.bitext.parameters import IngestParameters
from paraforge.intake.bitext.readers.jsonl import json_blocks
from paraforge.intake.bitext.readers.tmx import TmxSource, tmx_languages
from paraforge.intake.bitext.source import ONLY, FileSource

_SAMPLE_LINES = 1_000
_COMPRESSED = {".gz", ".bz2", ".xz", ".zst"}
_FORMATS = {
    ".tsv": "tsv",
    ".tab": "tsv",
    ".txt": "tsv",
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".tmx": "tmx",
}
# A language that is neither named nor identified.
_UNKNOWN = "und"
# Of the name of a column.
_MOST_WORDS = 3
# Ends of names that are no languages.
_NO_LANGUAGES = {"txt", "tok", "src", "ref", "trg", "tgt", "hyp", "raw", "bpe", "tc", "lc"}
_SIDES = ("source_text", "reference")
_PARAPHRASES = ("reference", "translation")
_REFERENCES = ("reference",)
_KINDS = {_SIDES: "bitext", _PARAPHRASES: "paraphrases", _REFERENCES: "references"}
# The language that English text alone is translated to, and the models, until others are named.
_PIVOT = "cs"
_MODEL_THERE = "models/opus-mt-en-cs"


@dataclass(frozen=True)
class Bitext:
    """Two files, line n of one belonging to line n of the other, or two columns of one file; or one text.

    source, reference: the files, the second English if one of them is.
    languages: of both in this order; None where it is not known.
    lines: of each file.
    columns: where one file has all sides: their places in it.
    reading: what else a source of it says: its format, whether it has a header.
    sides: what the columns are: of paraphrases, both are English; of English text alone there is one.
    """

    source: Path
    reference: Path
    languages: tuple[str | None, str | None]
    lines: int
    columns: tuple[int | str, ...] = ()
    reading: Mapping[str, Any] = field(default_factory=lambda: {"format": "moses"})
    sides: tuple[str, ...] = _SIDES

    @property
    def kind(self) -> str:
        """Of ingest's kinds."""
        return _KINDS[self.sides]

    @property
    def choices(self) -> list[str]:
        """What to configure for it."""
        if self.kind == "paraphrases":
            return ["corpus=my", "translation=none", "select=quality"]
        if self.kind == "references":
            return ["corpus=my", "translation=ready", "select=quality"]
        english = self.languages[1] is None or is_english(self.languages[1])
        return ["corpus=my", "translation=small", "select=quality", *([] if english else ["paragram=corpus"])]

    @property
    def places(self) -> dict[str, str]:
        """What to call the place of each side."""
        columns = [f"column {json.dumps(one, ensure_ascii=False)} of " for one in self.columns]
        paths = (self.source, self.reference)[-len(self.sides) :]
        places = [f"{column}{path}" for column, path in zip(columns or [""] * len(paths), paths, strict=True)]
        return dict(zip(self.sides, places, strict=True))

    def entry(self, project: Path | None = None) -> dict[str, Any]:
        """Return the source that it is. project: the directory that paths inside it are relative to, if
        any."""
        paths = [_path_in(path, project) for path in (self.source, self.reference)][-len(self.sides) :]
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", _stem(self.reference)).strip(".-_") or "my-bitext"
        if self.columns:
            places = {"path": paths[-1], "columns": dict(zip(self.sides, self.columns, strict=True))}
        else:
            places = {"paths": dict(zip(self.sides, paths, strict=True))}
        return {"name": name, **self.reading, **places}

    def problems(self) -> list[str]:
        """Return what configure will say of its first rows; what looks odd in them is logged."""
        source, target = self.languages
        parameters = IngestParameters.model_validate({"kind": self.kind, "sources": [self.entry()]})
        return problems(parameters, Languages(source, target or "en"))

    def yaml(self, project: Path) -> str:
        """Return the group file that names it. project: the directory that paths inside it are relative
        to."""
        source = self.entry(project)
        source_language, target_language = (one or _UNKNOWN for one in self.languages)
        nmt = {"source_language": source_language, "target_language": target_language}
        text = f"Your bitext: {self.lines:,} pairs"
        if self.kind == "references":
            nmt = {"source_language": _PIVOT, "target_language": "en", "forward": _MODEL_THERE}
            text = f"Your sentences: {self.lines:,}"
        if self.kind == "paraphrases":
            nmt = {}
        content = {"ingest": {"kind": self.kind, "sources": [source]}} | ({"nmt": nmt} if nmt else {})
        return f"# {text} when it was looked at. Name more under sources.\n{yaml_text(content)}"


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
    """Find the two columns of a file that are an English text and one of another language, or two English
    texts, by its first 1,000 rows; read it once, in bounded memory.

    Columns of numbers, labels, one text, and of words beside columns of sentences are passed over. A language
    that a header, a field or a TMX file names counts; others are identified.

    Raises:
        InputError: the file is missing, empty, damaged, of no format that has columns, or has rows that a
            source of its format cannot have; it does not have two such columns.
        MissingPackageError: py3langid, which tells languages, is not installed.
    """
    languages, reading = _text_columns(path)
    english = [place for place, one in languages.items() if one is not None and is_english(one)]
    foreign = [place for place in languages if place not in english]
    if (len(english), len(foreign)) not in ((1, 1), (2, 0)):
        remedy = "Make the project without --table, and name the columns in configs/corpus/my.yaml."
        if (len(english), len(foreign)) == (1, 0):
            remedy = (
                "For English alone use --english. A bitext has the same sentences in another language in a "
                "second column, and a corpus of paraphrases has a second English column."
            )
        raise InputError(
            "of its columns with text one must be English and one of another language, or two English: "
            f"{_seen(languages)}",
            path,
            remedy=remedy,
        )
    sides = _SIDES if foreign else _PARAPHRASES
    found = (foreign[0], english[0]) if foreign else (english[0], english[1])
    return _table(path, found, (languages[found[0]], languages[found[1]]), reading, sides)


def look_at_english(path: Path) -> Bitext:
    """Look at English sentences, one per line, or in the one English column of a table; read once, in bounded
    memory.

    Raises:
        InputError: as :func:`look_at_table`, the text is in another language, or not one column is English.
        MissingPackageError: py3langid, which tells the languages of columns, is not installed.
    """
    _check_name(path)
    form = _format_of(path) or "tsv"
    blocks = iter(line_blocks(path, Reading(strict=False))) if form == "tsv" else iter(())
    first = next(blocks, None)
    texts = [] if first is None else first.lines.slice(0, _SAMPLE_LINES).to_pylist()
    if first is not None and not any("\t" in text for text in texts):
        language = _language(path, texts)
        if language is not None and not is_english(language):
            raise InputError(f"its text is in {language!r}, not in English", path)
        lines = len(first) + sum(map(len, blocks))
        return Bitext(path, path, (None, "en"), lines, sides=_REFERENCES)
    languages, reading = _text_columns(path, form)
    english = [place for place, one in languages.items() if one is not None and is_english(one)]
    if len(english) != 1:
        raise InputError(
            f"one of its columns with text must be English: {_seen(languages)}",
            path,
            remedy="Write the sentences alone to a file, one per line.",
        )
    return _table(path, (english[0],), (None, "en"), reading, _REFERENCES)


def _format_of(path: Path) -> str | None:
    endings = [one.lower() for one in path.suffixes[::-1]]
    return next((_FORMATS[one] for one in endings if one in _FORMATS), None)


def _seen(languages: Mapping[int | str, str | None]) -> str:
    return ", ".join(f"{json.dumps(place)} in {one!r}" for place, one in languages.items()) or "none"


def _table(
    path: Path,
    found: tuple[int | str, ...],
    languages: tuple[str | None, str | None],
    reading: Mapping[str, Any],
    sides: tuple[str, ...],
) -> Bitext:
    """Return the columns of a file as what a project is made of; all rows are read once."""
    entry = {"name": "table", **reading, "path": str(path), "columns": dict(zip(sides, found, strict=True))}
    (source,) = IngestParameters.model_validate({"kind": _KINDS[sides], "sources": [entry]}).sources
    assert isinstance(source, FileSource)
    lines = sum(len(block) for block in source.read({ONLY: path}, Reading(strict=False)))
    return Bitext(path, path, languages, lines, found, reading, sides)


def _text_columns(path: Path, form: str | None = None) -> tuple[dict[int | str, str | None], dict[str, Any]]:
    """Return the columns of sentences in a file's first rows with their languages, and what a source says
    beside its path and columns. Raises as :func:`look_at_table`. form: of the file, where its name does not
    say it."""
    _check_name(path)
    form = _format_of(path) or form
    if form is None:
        raise InputError(f"a table is named {', '.join(_FORMATS)}, perhaps compressed", path)
    if importlib.util.find_spec("py3langid") is None:
        raise MissingPackageError("py3langid", "pipeline")
    columns, reading = _first_rows(path, form)
    columns = {place: texts for place, texts in columns.items() if any(texts) and oddity(texts) is None}
    # Names of files and of keys; Chinese has no spaces either.
    wordy = {
        place: sum(" " in text or not text.isascii() for text in texts) / len(texts)
        for place, texts in columns.items()
    }
    columns = {place: texts for place, texts in columns.items() if wordy[place] >= max(wordy.values()) / 5}
    named = _named_languages(list(columns))
    return {place: named.get(place) or identified(texts) for place, texts in columns.items()}, reading


def _named_languages(places: Sequence[int | str]) -> dict[int | str, str]:
    """Return the languages that the names of columns say: codes that are known, and others where all are
    codes."""
    codes = {}
    for place in places:
        code = LANGUAGE.fullmatch(str(place).rsplit(".", 1)[-1])
        if isinstance(place, str) and code is not None and code[0] not in _NO_LANGUAGES:
            codes[place] = code[0]
    known = {place for place, code in codes.items() if language_code(code) in THREE_LETTERS or code in CODES}
    return {
        place: language_code(code)
        for place, code in codes.items()
        if place in known or (known and len(codes) == len(places))
    }


def _first_rows(path: Path, form: str) -> tuple[dict[int | str, list[str]], dict[str, Any]]:
    """Return the columns of text in the first rows, and what a source of them says beside its path and
    columns."""
    reading: dict[str, Any] = {"format": form}
    if form == "parquet":
        refuse_lfs_pointer(path)
        try:
            batches = list(islice(parquet.ParquetFile(path).iter_batches(_SAMPLE_LINES), 1))
        except pa.ArrowInvalid as error:
            raise InputError(f"no Parquet file: {error}", path) from error
        return _texts(pa.Table.from_batches(batches)) if batches else {}, reading
    if form == "tmx":
        return _first_units(path), reading
    if form == "jsonl":
        return _first_objects(path), reading
    lines = next(line_blocks(path, Reading(strict=False))).lines.slice(0, _SAMPLE_LINES).to_pylist()
    rows = [line.split("\t") for line in lines]
    if form == "csv":
        try:
            found = {each: list(csv.reader(lines, delimiter=each)) for each in ",;"}
        except csv.Error as error:
            raise InputError(f"its first lines are no comma-separated values: {error}", path) from error
        reading["separator"] = max(found, key=lambda each: len(_even(found[each])))
        if len(_even(rows)) > len(_even(found[reading["separator"]])):
            raise InputError(
                "its columns are separated by tabs", path, remedy="Rename it so that it ends in .tsv."
            )
        rows = found[reading["separator"]]
    named = _has_header(rows, form)
    names: Sequence[int | str] = rows[0] if named else range(len(rows[0]))
    even = [row for row in rows[named:] if len(row) == len(names)]
    columns = dict(zip(names, map(list, zip(*even, strict=True)), strict=bool(even)))
    columns.pop("", None)  # the index, as pandas writes it
    return columns, reading | {"header": named}


def _first_units(path: Path) -> dict[int | str, list[str]]:
    """Return the texts of the first units of a TMX file by language, of the two languages that most have."""
    tags = Counter(tag for tag, _ in tmx_languages(path, _SAMPLE_LINES).most_common(2))
    if len(tags) < 2:
        return {}
    source = TmxSource(
        format="tmx", name="table", path=str(path), columns=dict(zip(_SIDES, tags, strict=True))
    )
    block = next(source.read({ONLY: path}, Reading(strict=False)))
    return {
        tag: block.texts[side].slice(0, _SAMPLE_LINES).to_pylist()
        for side, tag in zip(_SIDES, tags, strict=True)
    }


def _first_objects(path: Path) -> dict[int | str, list[str]]:
    """Return the fields of text in the first objects of a JSON file, nested ones by a name with dots."""
    block = next(json_blocks(path, Reading(strict=False)))
    columns: dict[str, list[Any]] = {}
    for number, line in enumerate(block.lines.slice(0, _SAMPLE_LINES).to_pylist(), block.first):
        try:
            item = json.loads(line) if line else {}
        except (ValueError, RecursionError):
            item = None
        if not isinstance(item, dict):
            raise InputError("not a JSON object", path, number)
        for name, value in _leaves(item).items():
            columns.setdefault(name, []).append(value)
    return {
        name: [value or "" for value in values]
        for name, values in columns.items()
        if all(value is None or isinstance(value, str) for value in values)
    }


def _leaves(item: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in item.items():
        found |= _leaves(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return found


def _even(rows: list[list[str]]) -> list[list[str]]:
    """Return the rows that have as many columns as the first one, if it has several."""
    return [row for row in rows if len(row) == len(rows[0]) > 1]


def _has_header(rows: list[list[str]], form: str) -> bool:
    """Return whether the first row names the columns: it has known names, or a name above numbers; in a CSV
    file, where that is usual, short texts. The first name may be blank: pandas writes an index so."""
    first, *others = rows
    names = first[1:] if first[0] == "" else first
    if len(set(first)) < len(first) or not all(0 < len(cell.split()) <= _MOST_WORDS for cell in names):
        return False
    columns = zip(*_even([first, *others]), strict=True)
    above = (str(oddity(texts)).startswith("has a number") and cell.isalpha() for cell, *texts in columns)
    return form == "csv" or is_header(names) or any(above)


def _texts(table: pa.Table) -> dict[int | str, list[str]]:
    """Return the columns of text, nested ones by a name with dots."""
    while any(pa.types.is_struct(one.type) for one in table.schema):
        table = table.flatten()
    return {
        field.name: [text or "" for text in column.to_pylist()]
        for field, column in zip(table.schema, table.columns, strict=True)
        if holds_text(field.type)
    }


def _check_name(path: Path) -> None:
    if "$" in str(path) and path.exists():
        raise InputError("variables have such names", path, remedy="Rename the file.")
    if files_of(str(path)) != [path]:
        raise InputError("patterns of files have such names", path, remedy="Rename the file.")


def _language(path: Path, text: list[str]) -> str | None:
    """Return what the text is in, if that can be identified, otherwise what the name says. Raises InputError:
    the text is in another language than the name says."""
    ends = [one[1:] for one in reversed(path.suffixes) if one not in _COMPRESSED]
    codes = [one for one in ends if LANGUAGE.fullmatch(one.lower()) and one.lower() not in _NO_LANGUAGES]
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
