"""Draws random pairs from a published corpus, and formats numbers and texts for display."""

# ruff: noqa: S608 - names are quoted, and the condition is the user's own
from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from paraforge.base.errors import InputError
from paraforge.corpus.publication.datasets import Dataset
from paraforge.interface.query.database import (
    draw_key,
    fetch,
    files_literal,
    identifier,
    open_database,
    rows_at,
    rows_of,
)

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)"
_ROUNDING = 1e-5
_BAND = re.compile(rf"\s*({_NUMBER})\s*(?:-|\.\.|,|:)\s*({_NUMBER})\s*")
_LINEAGE = ("source", "line", "rank", "pivot")


def band_condition(text: str) -> str:
    """Return the SQL for paraphrase scores in a band such as ``0.6-0.8``, ``-0.1-0.2`` or ``0.6..0.8``.

    A band excludes its lower end and includes its upper end, in single precision, like ParaNMT's bands.
    Rounding can make the cosine of two equal averages slightly larger than 1; a band that ends in 1
    includes these. Raises InputError if the text is not two increasing numbers.
    """
    match = _BAND.fullmatch(text)
    if match is None or not float(match[1]) < float(match[2]):
        raise InputError(f"invalid band '{text}'", remedy="Write the lower end first: 0.6-0.8.")
    low, high = float(match[1]), float(match[2])
    high = 1 + _ROUNDING if high == 1 else high
    return f"paraphrase_score > {low!r}::FLOAT AND paraphrase_score <= {high!r}::FLOAT"


@dataclass(frozen=True)
class Sample:
    """Pairs drawn at random, in the order of the corpus, and the number of pairs that could be drawn."""

    pairs: pa.Table
    population: int


def sample_pairs(dataset: Dataset, count: int, seed: int, conditions: Sequence[str] = ()) -> Sample:
    """Draw ``count`` pairs uniformly without replacement: those with the smallest hashes of lineage and seed.

    The first pass reads only the columns of lineage and conditions; then the rows that it chose are read.
    dataset: see :func:`paraforge.corpus.publication.datasets.open_published`.
    count: below a million; if fewer pairs meet the conditions, all of these are returned.
    conditions: SQL conditions on the dataset's columns; a pair must meet all of them.
    Raises InputError if a condition is not valid SQL.
    """
    condition = " AND ".join(f"({condition}\n)" for condition in conditions) or "true"
    columns = ", ".join(map(identifier, dataset.schema.names))
    with open_database({dataset.name: dataset}) as connection:
        if not dataset.files:
            return Sample(fetch(connection, f"SELECT {columns} FROM {identifier(dataset.name)}"), 0)
        lineage = [identifier(name) for name in _LINEAGE if name in dataset.schema.names]
        drawn = fetch(
            connection,
            "SELECT count(*) AS population, arg_min(struct_pack(filename, file_row_number), "
            f"{draw_key(seed, *lineage)}, {count}) AS places "
            f"FROM {rows_of(dataset.files, 'filename = true', 'file_row_number = true')} WHERE {condition}",
        ).to_pylist()[0]
        rows = f"{identifier(dataset.name)} LIMIT 0"
        if drawn["places"]:
            order = f"list_position({files_literal(dataset.files)}, filename), file_row_number"
            rows = f"({rows_at(drawn['places'])}) ORDER BY {order}"
        pairs = fetch(connection, f"SELECT {columns} FROM {rows}")
    return Sample(pairs, int(drawn["population"]))


def format_fixed(number: float, digits: int) -> str:
    """Return a number with ``digits`` decimals; never "-0.00"."""
    return f"{round(number, digits) + 0.0:.{digits}f}"


def duration(seconds: float) -> str:
    """Return a time in seconds, minutes, hours or days, depending on its length."""
    if 0 < seconds < 1:
        return "under 1 s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.1f} min"
    hours = seconds / 3600
    return f"{hours:,.1f} h" if hours < 96 else f"{hours / 24:,.1f} days"


def one_line(text: str) -> str:
    """Return a text with a space for each line end or tab, and U+FFFD for other control characters."""
    return "".join(
        " " if character in "\t\n\r\v\f\x85\u2028\u2029" else character if _harmless(character) else "\ufffd"
        for character in text
    )


def shown_lines(text: str) -> str:
    """Return a text with U+FFFD for control characters; line ends stay."""
    return "\n".join(map(one_line, text.split("\n")))


def _harmless(character: str) -> bool:
    # str.isprintable() is False for emoji that are newer than this Python.
    return unicodedata.category(character) not in ("Cc", "Cs")


Pieces = list[tuple[str, bool]]
"""A text cut into pieces, each with whether it is a word that the other side lacks."""

_WORD = re.compile(r"\w+(?:['’]\w+)*")


def marked_words(first: str, second: str) -> tuple[Pieces, Pieces]:
    """Cut both texts into pieces, and mark the words that the other text lacks.

    Case is ignored. Repeated words count: if a text has "the" twice and the other has it once, the second
    "the" is marked.
    """
    counts = [Counter(word.group().lower() for word in _WORD.finditer(text)) for text in (first, second)]
    return _mark(first, counts[1]), _mark(second, counts[0])


def _mark(text: str, others: Counter[str]) -> Pieces:
    left = others.copy()
    pieces: Pieces = []
    position = 0
    for word in _WORD.finditer(text):
        if word.start() > position:
            pieces.append((text[position : word.start()], False))
        key = word.group().lower()
        pieces.append((word.group(), left[key] <= 0))
        left[key] -= 1
        position = word.end()
    if position < len(text):
        pieces.append((text[position:], False))
    return pieces
