"""An examination of rows before they are paid for: the first of each file, and some spread over a source."""

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paraforge.base.errors import ConfigurationError, InputError
from paraforge.base.shards.store import read_parquet
from paraforge.base.text.lines import Reading
from paraforge.intake.bitext.block import Block
from paraforge.intake.bitext.cleaning import clean
from paraforge.intake.bitext.languages import Languages, language_problem, mixture, oddities
from paraforge.intake.bitext.parameters import Cleaning, IngestParameters, SampleSource
from paraforge.intake.bitext.sources import (
    Problems,
    SourceFile,
    SourceFiles,
    read_file,
    read_row_numbers,
    resolve_files,
)

logger = logging.getLogger(__name__)

_Item = TypeVar("_Item")

_FIRST_BYTES = 1 << 16  # of a text file that is only looked at
_SIDES = ("source_text", "reference")
_ROWS_IDENTIFIED = 200  # of a file, whose languages are identified
_ROWS_SPREAD = 1_000  # of a source that has been read
_PARTS_IDENTIFIED = 20
_FILES_IDENTIFIED = 5  # of a source, spread over all
_PROBLEMS_A_SOURCE = 5  # a wrong column is wrong in each of a thousand files


def problems(parameters: IngestParameters, languages: Languages | None = None) -> list[str]:
    """Everything wrong with the sources that shows without reading them whole.

    Checks their paths, and the first rows of each file as ingest would read and clean them. Nothing is made
    or written. What looks odd and may be meant is a warning.

    parameters: section ``ingest``. languages: what the rows should be in; not looked at where None.

    Returns the problems, each naming its source and, where there is one, file and line.
    """
    found = Problems()
    for source in parameters.sources:
        if isinstance(source, SampleSource):
            continue
        files = resolve_files(source, found)
        if files is None:
            continue
        before = len(found)
        identified = _spread(files.files)
        for file in files.files:
            try:
                rows = _first_rows(file, parameters.cleaning)
                if file in identified:
                    _judge(file, rows, parameters, languages)
            except (InputError, OSError) as error:
                found.add(source.name, error)
            if len(found) - before == _PROBLEMS_A_SOURCE:
                found.add(source.name, "further files were not checked")
                break
        if files.drop_rows is not None:
            try:
                read_row_numbers(files.drop_rows)
            except (InputError, OSError) as error:
                found.add(source.name, error)
    return found.listed()


def check_first_rows(
    sources: Sequence[SourceFiles], parameters: IngestParameters, languages: Languages | None
) -> None:
    """What :func:`problems` says of the first rows, before files are read whole; of a few files of a source.

    Raises ConfigurationError: they are not in the languages that they should be in.
    """
    found = Problems()
    for source in sources:
        for file in _spread(source.files):
            try:
                rows = _first_rows(file, parameters.cleaning)
            except (InputError, OSError):
                continue  # reading the whole says it better
            try:
                _judge(file, rows, parameters, languages)
            except InputError as error:
                found.add(source.name, error)
    if len(found):
        raise ConfigurationError(found.listed())


def check_spread_rows(
    source: SourceFiles,
    parts: Sequence[Sequence[Path]],
    parameters: IngestParameters,
    languages: Languages | None,
) -> None:
    """Look for other languages in rows spread over all of a source, of which the first rows were right.

    parts: of each file, the Parquet files of its cleaned rows.

    Raises ConfigurationError: too many rows are in another language, with the first of them.
    """
    if languages is None or not _has_languages(parameters):
        return
    shards = [(file, path) for file, paths in zip(source.files, parts, strict=True) for path in paths]
    taken: dict[str, list[str]] = {side: [] for side in _SIDES}
    places: list[tuple[Path, int]] = []
    for file, path in _spread(shards, _PARTS_IDENTIFIED):
        rows = read_parquet(path, ["line", *_SIDES, "rejected"])
        rows = rows.filter(rows["rejected"].is_null())
        few = min(rows.num_rows, _ROWS_SPREAD // min(len(shards), _PARTS_IDENTIFIED))
        rows = rows.take(np.linspace(0, rows.num_rows - 1, few).astype(int))
        places += [(file.main_path, line) for line in rows["line"].to_pylist()]
        for side, texts in taken.items():
            texts += rows[side].to_pylist()
    wrong = mixture(taken, languages, _places(source.files[0]))
    if wrong is not None and wrong.row is not None:
        found = Problems()
        found.add(source.name, InputError(wrong.text, *places[wrong.row]))
        raise ConfigurationError(found.listed())


def _has_languages(parameters: IngestParameters) -> bool:
    return parameters.check_languages and parameters.kind == "bitext"


def _spread(items: Sequence[_Item], most: int = _FILES_IDENTIFIED) -> list[_Item]:
    """A few of them, in their order."""
    return [items[place] for place in np.linspace(0, len(items) - 1, min(len(items), most)).astype(int)]


@dataclass(frozen=True)
class _FirstRows:
    """The first rows that a reader takes: all sides, and lines and sides of those that ingest keeps."""

    sides: dict[str, list[str]]
    lines: list[int]
    kept: dict[str, list[str]]


def _first_rows(file: SourceFile, cleaning: Cleaning) -> _FirstRows:
    """Raises InputError: they cannot be read."""
    reading = Reading(block_bytes=_FIRST_BYTES)
    for block in read_file(file, cleaning, reading):
        if len(block):
            cleaned = clean(
                block, cleaning, {name: file.path_of(name) for name in block.texts}, reading.changes
            )
            taken, kept = (np.flatnonzero(one.codes == 0)[:_ROWS_IDENTIFIED] for one in (block, cleaned))
            return _FirstRows(_taken(block, taken), block.lines[kept].tolist(), _taken(cleaned, kept))
    raise InputError("the file has no rows", file.main_path)


def _taken(block: Block, rows: NDArray[np.intp]) -> dict[str, list[str]]:
    return {name: texts.take(pa.array(rows)).to_pylist() for name, texts in block.texts.items()}


def _places(file: SourceFile) -> dict[str, str]:
    """What to call each side's place."""
    columns = getattr(file.source, "columns", {})
    return {side: f"column {place}" for side, place in columns.items()} or {
        side: path.name for side, path in file.paths.items()
    }


def _judge(
    file: SourceFile, rows: _FirstRows, parameters: IngestParameters, languages: Languages | None
) -> None:
    """Log what looks odd in the first rows. Raises InputError: they are in other languages."""
    columns = getattr(file.source, "columns", {})
    places = _places(file)
    for oddity in oddities(rows.sides, places):
        remedy = "Name other columns in its 'columns'" if columns else "Name other files in its 'paths'"
        if oddity.is_header:
            remedy = "Give the source 'header: true'" if columns else "Remove the line"
        logger.warning("source %r: %s: %s. %s", file.source.name, file.main_path, oddity, remedy)
    if languages is None or not _has_languages(parameters):
        return
    named = columns or getattr(file.source, "paths", {})
    exchanged = {"source_text": named["reference"], "reference": named["source_text"]}
    sides = {side: rows.kept[side] for side in _SIDES}
    key = "columns" if columns else "paths"
    wrong = language_problem(sides, languages, places, f"{key}: {json.dumps(exchanged, ensure_ascii=False)}")
    if wrong is not None:
        raise InputError(wrong.text, file.main_path, None if wrong.row is None else rows.lines[wrong.row])
