"""Checks sources before long work begins: the first rows of each file, and rows spread over each source."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from paraforge.base.errors import ConfigurationError, InputError
from paraforge.base.text.lines import Reading
from paraforge.intake.bitext.cleaning import Findings
from paraforge.intake.bitext.languages import Languages, wrong_language
from paraforge.intake.bitext.parameters import TEXTS, IngestParameters, SampleSource
from paraforge.intake.bitext.report import RowCounts
from paraforge.intake.bitext.sources import (
    SourceFile,
    SourceFiles,
    part_table,
    read_file,
    read_part,
    read_row_numbers,
    resolve_files,
)

logger = logging.getLogger(__name__)

_Item = TypeVar("_Item")

_FIRST_BYTES = 1 << 16  # read of each text file
_ROWS = 1_000  # whose languages are identified
_PARTS = 20
_FILES = 5  # of each source, whose languages are identified
_PROBLEMS_A_SOURCE = 5  # not more, because a wrong column is wrong in every file


def problems(parameters: IngestParameters, languages: Languages | None = None) -> list[str]:
    """Find problems of the sources without reading whole files, and without writing anything.

    Checks the paths, and the first rows of each file as ingest would read and clean them. What may be
    intended is only logged as a warning.

    parameters: section ``ingest``. languages: the expected languages; None to skip that check.
    Returns the problems, each with its source and, if known, file and line.
    """
    messages: list[str] = []
    for source in parameters.sources:
        if isinstance(source, SampleSource):
            continue
        files = resolve_files(source, messages)
        if files is None:
            continue
        before = len(messages)
        looked_at = _spread(files.files, _FILES)
        for file in files.files:
            try:
                _look_at(file, parameters, languages if file in looked_at else None)
            except (InputError, OSError) as error:
                messages.append(f"source {source.name!r}: {error}")
            if len(messages) - before == _PROBLEMS_A_SOURCE:
                messages.append(f"source {source.name!r}: further files were not checked")
                break
        if files.drop_rows is not None:
            try:
                read_row_numbers(files.drop_rows)
            except (InputError, OSError) as error:
                messages.append(f"source {source.name!r}: {error}")
    return messages


def check_spread_rows(
    source: SourceFiles,
    parts: Sequence[Sequence[Path]],
    parameters: IngestParameters,
    languages: Languages | None,
) -> None:
    """Check the languages of both sides in up to 1,000 rows spread over a source.

    parts: for each file, the Parquet files of its cleaned rows.
    languages: the expected languages; None to skip the check.
    Raises ConfigurationError if a side is in another language, or if the sides are exchanged.
    """
    shards = _spread([path for paths in parts for path in paths], _PARTS)
    texts: dict[str, list[str]] = {side: [] for side in TEXTS[parameters.kind]}
    for path in shards if languages is not None else []:
        rows = read_part(path, [*texts, "rejected"])
        rows = rows.filter(rows["rejected"].is_null())
        few = min(rows.num_rows, _ROWS // len(shards))
        rows = rows.take(np.linspace(0, rows.num_rows - 1, few).astype(int))
        for side, collected in texts.items():
            collected += rows[side].to_pylist()
    if wrong := _wrong_language(texts, parameters, languages):
        raise ConfigurationError([f"source {source.name!r}: {source.files[0].main_path}: {wrong}"])


def _spread(items: Sequence[_Item], most: int) -> list[_Item]:
    """Return at most ``most`` items at equal distances, in order."""
    return [items[place] for place in np.linspace(0, len(items) - 1, min(len(items), most)).astype(int)]


def _look_at(file: SourceFile, parameters: IngestParameters, languages: Languages | None) -> None:
    """Log warnings about the first rows of a file.

    Raises InputError if the rows cannot be read, or are in other languages; None skips the latter check.
    """
    findings, counts, texts = Findings(), RowCounts(), TEXTS[parameters.kind]
    blocks = read_file(file, parameters.cleaning, Reading(block_bytes=_FIRST_BYTES))
    first = next(filter(len, blocks), None)
    if first is None:
        raise InputError("the file has no rows", file.main_path)
    rows = part_table(file, first, parameters.cleaning, parameters.kind, findings)
    counts.add(rows, texts)
    for warning in counts.report(findings).warnings():
        logger.warning("source %r: %s, first rows: %s", file.source.name, file.main_path, warning)
    kept = rows.filter(rows["rejected"].is_null())[:_ROWS]
    if wrong := _wrong_language({side: kept[side].to_pylist() for side in texts}, parameters, languages):
        raise InputError(wrong, file.main_path)


def _wrong_language(
    texts: Mapping[str, Sequence[str]], parameters: IngestParameters, languages: Languages | None
) -> str | None:
    """Return a message that says which sides are in another language or exchanged, with a remedy, or None."""
    if languages is None or not parameters.check_languages or parameters.kind == "paraphrases":
        return None
    return wrong_language(texts, languages)
