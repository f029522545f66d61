"""Examines a bitext, a table of paraphrases or English text of a user before a project is made of it."""

import importlib.util
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from paraforge.base.errors import InputError, MissingPackageError
from paraforge.base.shards.schema import holds_bytes, holds_text
from paraforge.base.text.compression import SUFFIXES
from paraforge.base.text.language_codes import CODES, THREE_LETTERS
from paraforge.base.text.lines import Reading, line_blocks
from paraforge.base.text.paths import files_of
from paraforge.base.yaml_text import yaml_text
from paraforge.corpus.scoring.general import is_english
from paraforge.intake.bitext.examination import problems
from paraforge.intake.bitext.languages import (
    LANGUAGE,
    NO_WORD,
    Languages,
    identified,
    is_header,
    is_identifiable,
    language_code,
    other_language,
)
from paraforge.intake.bitext.parameters import TEXTS, IngestParameters
from paraforge.intake.bitext.readers.jsonl import json_lines
from paraforge.intake.bitext.readers.parquet import parquet_tables
from paraforge.intake.bitext.readers.tmx import tmx_texts
from paraforge.intake.bitext.readers.tsv import even_rows, separator_of
from paraforge.intake.bitext.source import LONGEST_NAME, ONLY

Place = int | str
"""Number or name of a column, as written in a source's parameters."""

SAMPLE_ROWS = 1_000
_FORMATS = {
    ".tsv": "tsv", ".tab": "tsv", ".txt": "tsv", ".csv": "csv", ".parquet": "parquet", ".pq": "parquet",
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".tmx": "tmx",
}  # fmt: skip
NO_LANGUAGES = {"txt", "tok", "src", "ref", "trg", "tgt", "hyp", "raw", "bpe", "tc", "lc", "mt"}
"""File endings that look like language codes but rarely are. Maltese (`mt`) is identified from its text."""
_NUMBER = re.compile(r"[-+]?\d[\d.,:/%eE+-]*|")
_MOST_WORDS = 3  # in the name of a column
# In a column of sentences, more than these shares of the texts have several words (or are not in ASCII),
# and are distinct.
_WORDY, _DISTINCT = 0.2, 0.05


def format_of(path: Path) -> str | None:
    """Return the format that a file's name states, or None."""
    suffixes = map(str.lower, reversed(path.suffixes))
    return next((_FORMATS[suffix] for suffix in suffixes if suffix in _FORMATS), None)


def text_columns(path: Path, form: str | None) -> tuple[dict[Place, str | None], dict[str, Any]]:
    """Find the columns of sentences and their languages.

    Returns the language of each such column, None if unclear, and the other settings of a source for this
    file: format, separator, header. A language in a column's name or in a TMX file is believed; others are
    identified from the texts.

    Raises:
        InputError: the file is missing, empty, damaged, or of no format that has columns.
        MissingPackageError: py3langid, which tells languages, is not installed.
    """
    if form is None:
        raise InputError(f"a table must end in {', '.join(_FORMATS)}, optionally compressed", path)
    if importlib.util.find_spec("py3langid") is None:
        raise MissingPackageError("py3langid", "pipeline")
    reading: dict[str, Any] = {"format": form}
    columns: dict[Place, list[str]] = {}
    if form == "tmx":
        columns.update(tmx_texts(path, SAMPLE_ROWS))
    elif form == "parquet":
        columns = _texts(next(parquet_tables(path, SAMPLE_ROWS)))
    elif form == "jsonl":
        columns = _objects(path)
    else:
        columns = _cells(path, form, reading)
    columns = {place: texts for place, texts in columns.items() if _has_sentences(texts)}
    codes = {place: _code(place) for place in columns}
    known = {
        place
        for place, code in codes.items()
        if code and (code in CODES or language_code(code) in THREE_LETTERS)
    }
    if known and all(codes.values()):
        known = set(codes)  # if one name is a known code, the others are codes too
    return {
        place: language_code(str(codes[place])) if place in known else identified(texts)
        for place, texts in columns.items()
    }, reading


def _has_sentences(texts: Sequence[str]) -> bool:
    """Return whether texts are sentences: not numbers, keys, addresses, labels, or names without spaces."""
    words = [NO_WORD.sub(" ", text).split() for text in texts]
    wordy = sum(len(tokens) > 1 or not "".join(tokens).isascii() for tokens in words)
    return wordy > _WORDY * len(texts) and len(set(texts)) > _DISTINCT * len(texts)


def _code(place: Place) -> str | None:
    """Return the last part of a column's name if it has the form of a language code, otherwise None."""
    code = LANGUAGE.fullmatch(str(place).rsplit(".", 1)[-1])
    return code[0] if code is not None and code[0] not in NO_LANGUAGES else None


def _texts(table: pa.Table) -> dict[Place, list[str]]:
    """Return the columns of text. A column of bytes counts as text if all its values are UTF-8."""
    columns: dict[Place, list[str]] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if holds_bytes(column.type):
            with suppress(pa.ArrowInvalid):
                column = column.cast(pa.string())
        if holds_text(column.type):
            columns[name] = [text or "" for text in column.to_pylist()]
    return columns


def _objects(path: Path) -> dict[Place, list[str]]:
    """Return the strings of the first objects by dotted name; "" for each object that lacks the name."""
    block = next(json_lines(path, Reading(strict=False)))
    lines = block.lines.slice(0, SAMPLE_ROWS).to_pylist()
    columns: dict[Place, list[str]] = {}
    for number, line in enumerate(lines, block.first):
        try:
            texts = dict(_strings(json.loads(line) if line else {}))
        except (ValueError, RecursionError, AttributeError) as error:
            remedy = "Write one object on each line."
            raise InputError("not a JSON object", path, number, remedy) from error
        for name, text in texts.items():
            columns.setdefault(name, []).append(text)
    return {name: [*texts, *[""] * (len(lines) - len(texts))] for name, texts in columns.items()}


def _strings(item: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in item.items():
        if isinstance(value, dict):
            yield from _strings(value, f"{prefix}{name}.")
        elif isinstance(value, str):
            yield f"{prefix}{name}", value


def _cells(path: Path, form: str, reading: dict[str, Any]) -> dict[Place, list[str]]:
    """Return the columns of a CSV or TSV file by name if it has a header, otherwise by number.

    Writes the settings ``separator`` and ``header`` to ``reading``.
    """
    separator = separator_of(path) if form == "csv" else None
    if separator is not None:
        reading["separator"] = separator
    rows = even_rows(path, separator)
    reading["header"] = bool(rows) and _is_header(rows, form)
    names = rows[0] if reading["header"] else range(len(rows[0]) if rows else 0)
    return dict(zip(names, map(list, zip(*rows[reading["header"] :], strict=True)), strict=False))


def _is_header(rows: list[list[str]], form: str) -> bool:
    """Return whether the first row is a header: it has known names, or a word above a column of numbers.

    In a CSV file, which usually has a header, short texts suffice. The first name may be blank, as pandas
    writes its index.
    """
    first, *others = rows
    names = first[1:] if first[0] == "" else first
    if len(set(first)) < len(first) or not all(0 < len(cell.split()) <= _MOST_WORDS for cell in names):
        return False
    numbers = [all(map(_NUMBER.fullmatch, texts)) for texts in zip(*others, strict=True)]
    above = (cell.isalpha() for cell, numeric in zip(first, numbers, strict=bool(others)) if numeric)
    return form == "csv" or is_header(names) or any(above)


# Code of a language that no file name states and that was not identified.
_UNKNOWN = "und"
# English text without translations is translated to this language and back, unless the user changes it.
_PIVOT = "cs"
_MODEL_THERE = "models/opus-mt-en-cs"


@dataclass(frozen=True)
class Bitext:
    """The texts that a project starts with: parallel files, or columns of one file.

    kind: value of ``ingest.kind``. languages: code of each side; None if unknown.
    paths: file of each side. lines: number of lines of each file.
    columns: column of each side, if one file has all sides.
    reading: other settings of the source, such as its format and whether it has a header.
    """

    kind: str
    languages: Mapping[str, str | None]
    paths: Mapping[str, Path]
    lines: int = 0
    columns: Mapping[str, Place] | None = None
    reading: Mapping[str, Any] = field(default_factory=lambda: {"format": "moses"})

    @property
    def choices(self) -> list[str]:
        """Arguments of ``paraforge configure`` that suit these texts."""
        if self.kind == "paraphrases":
            return ["corpus=my", "translation=none", "select=quality"]
        if self.kind == "references":
            return ["corpus=my", "translation=ready", "select=quality"]
        scorer = [] if is_english(self.languages["reference"] or "en") else ["paragram=corpus"]
        return ["corpus=my", "translation=small", "select=quality", *scorer]

    @property
    def places(self) -> dict[str, str]:
        """Description of the file, and the column if there are columns, of each side."""
        columns = self.columns or {}
        names = {side: f"column {json.dumps(name, ensure_ascii=False)} of " for side, name in columns.items()}
        return {side: f"{names.get(side, '')}{path}" for side, path in self.paths.items()}

    def entry(self) -> dict[str, Any]:
        """Return an item of ``ingest.sources`` for these texts."""
        paths = {side: os.fspath(path.resolve()) for side, path in self.paths.items()}
        stem = self.paths["reference"].name.split(".")[0]
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", stem)[:LONGEST_NAME].strip(".-_") or "my-bitext"
        places: dict[str, Any] = {"paths": paths}
        if self.columns is not None:
            places = {"path": paths["reference"], "columns": dict(self.columns)}
        return {"name": name, **self.reading, **places}

    def problems(self) -> list[str]:
        """Return the problems that ``paraforge configure`` will report in the first rows; log warnings."""
        target = self.languages["reference"] or "en"
        return problems(self.parameters(), Languages(self.languages.get("source_text"), target))

    def parameters(self) -> IngestParameters:
        """Return a section ``ingest`` with this source alone."""
        return IngestParameters.model_validate({"kind": self.kind, "sources": [self.entry()]})

    def yaml(self) -> str:
        """Return the text of the file ``configs/corpus/my.yaml``, which names this source."""
        content: dict[str, Any] = {"ingest": {"kind": self.kind, "sources": [self.entry()]}}
        text = f"Your bitext: {self.lines:,} pairs"
        if self.kind == "bitext":
            source, target = (self.languages[side] or _UNKNOWN for side in ("source_text", "reference"))
            content["nmt"] = {"source_language": source, "target_language": target}
        elif self.kind == "references":
            content["nmt"] = {"source_language": _PIVOT, "target_language": "en", "forward": _MODEL_THERE}
            text = f"Your sentences: {self.lines:,}"
        return f"# {text} when it was looked at. Name more under sources.\n{yaml_text(content)}"


def look_at(first: Path, second: Path) -> Bitext:
    """Describe two parallel files; read them once, in bounded memory.

    The file in English becomes the reference; without one, the second file does.

    Raises InputError if a file is missing, empty or not text, or if its name cannot be written in parameters;
    if the files are the same, have different numbers of lines, or are in one language; or if a text is not
    in the language that the file's name states.
    """
    files = {"source_text": first, "reference": second}
    for path in files.values():
        _check_name(path)
    if first.samefile(second):
        raise InputError(
            "both sides are the same file", first, remedy="If one file has both sides, use --table."
        )
    bitext, texts = _read(Bitext("bitext", dict.fromkeys(files), files))
    languages = {
        side: _language(path, texts[side], first if path == second else second)
        for side, path in files.items()
    }
    source, target = languages.values()
    if source is not None and source == target:
        remedy = "If both are English paraphrases, write them to one TSV file, and use --table."
        raise InputError(f"both files seem to be in the same language ({source})", second, remedy=remedy)
    if source is not None and is_english(source):
        files = {"source_text": second, "reference": first}
        languages = {"source_text": target, "reference": source}
    return replace(bitext, languages=languages, paths=files)


def look_at_table(path: Path) -> Bitext:
    """Describe a table with one English and one other column of sentences, or with two English columns.

    The first 1,000 rows decide which columns these are. The file is read once, in bounded memory.

    Raises InputError if :func:`text_columns` does, if a row is not valid in
    the file's format, or if the columns with sentences are others than these.
    """
    _check_name(path)
    languages, reading = text_columns(path, format_of(path))
    english = [place for place, code in languages.items() if code is not None and is_english(code)]
    foreign = [place for place in languages if place not in english]
    if (len(english), len(foreign)) not in ((1, 1), (2, 0)):
        if reading["format"] in ("tsv", "csv", "jsonl"):
            next(line_blocks(path))  # names a line that is not UTF-8, which was left out
        seen = ", ".join(
            f"{json.dumps(place, ensure_ascii=False)} {f'in {code!r}' if code else 'of unknown language'}"
            for place, code in languages.items()
        )
        problem = f"one column must be English and one in another language, or two English; it has {seen}"
        remedy = (
            "For English alone use --english. Otherwise make the project without --table, and set the "
            "columns in configs/corpus/my.yaml."
        )
        if not languages:
            problem = "no column has sentences"
            remedy = f"Check that the file has the format that its name states. {remedy}"
        raise InputError(problem, path, remedy=remedy)
    english.sort(key=lambda place: "ref" not in str(place).lower())  # a column named like "ref" comes first
    kind = "bitext" if foreign else "paraphrases"
    columns = dict(zip(TEXTS[kind], [*foreign, *english], strict=True))
    sides = {side: languages[place] for side, place in columns.items()}
    return _read(Bitext(kind, sides, dict.fromkeys(columns, path), columns=columns, reading=reading))[0]


def look_at_english(path: Path) -> Bitext:
    """Describe a file of English sentences, one per line; read it once, in bounded memory.

    Raises InputError if the file is missing, empty, not text, a table, or in another language.
    """
    _check_name(path)
    bitext, texts = _read(Bitext("references", {"reference": "en"}, {"reference": path}))
    if format_of(path) not in (None, "tsv") or any("\t" in text for text in texts["reference"]):
        raise InputError("it has columns", path, remedy="Write the sentences alone to a file, one per line.")
    language = _language(path, texts["reference"], path)
    if language is not None and not is_english(language):
        raise InputError(f"its text is in {language!r}, not in English", path)
    return bitext


def _read(bitext: Bitext) -> tuple[Bitext, dict[str, list[str]]]:
    """Read all rows once. Returns ``found`` with the number of lines, and the first texts of each side."""
    source: Any = bitext.parameters().sources[0]
    texts: dict[str, list[str]] = {side: [] for side in bitext.paths}
    lines = 0
    paths = bitext.paths if bitext.columns is None else {ONLY: bitext.paths["reference"]}
    for block in source.read(paths, Reading(strict=False)):
        lines += len(block)
        for side, block_texts in block.texts.items():
            texts[side] += block_texts.slice(0, max(0, SAMPLE_ROWS - len(texts[side]))).to_pylist()
    return replace(bitext, lines=lines), texts


def _check_name(path: Path) -> None:
    if "$" in str(path.resolve()) and path.exists():  # the project will contain the resolved path
        raise InputError("the name looks like an environment variable", path.resolve(), remedy="Rename it.")
    if files_of(str(path)) != [path]:
        raise InputError("the name looks like a pattern of files", path, remedy="Rename the file.")


def _language_in_name(path: Path) -> str | None:
    """Return the language code in a file's name, such as "cs" in ``news.cs.gz``, or None."""
    endings = [ending[1:] for ending in map(str.lower, reversed(path.suffixes)) if ending not in SUFFIXES]
    codes = [ending for ending in endings if LANGUAGE.fullmatch(ending) and ending not in NO_LANGUAGES]
    return next(filter(is_identifiable, codes), codes[0] if codes[:1] == endings[:1] else None)


def _language(path: Path, text: list[str], other_side: Path) -> str | None:
    """Return the language of the text: the one in the file's name, or else the one identified, or None.

    other_side: the other file, or the same file if there is only one. An ending that both files have and
        that is no identifiable language is not taken for a language: ``a.dat`` and ``b.dat``.

    Raises InputError if the text is in another language than the name states.
    """
    named, identified_language = _language_in_name(path), identified(text)
    if named is None or (named == _language_in_name(other_side) and not is_identifiable(named)):
        return identified_language
    other = other_language(text, named)
    if identified_language is not None and is_english(named) != is_english(identified_language):
        other = identified_language
    if other is not None:
        raise InputError(
            f"its name says {named!r}, but its text looks like {other!r}",
            path,
            remedy="Rename the file if the name is wrong, or pass the right file.",
        )
    # Models and tokenizers are named with two-letter codes.
    return named if len(named) == 2 else language_code(named)
