"""The sample's hand-written sentence pairs: everyday talk as people say it, in both languages."""

from __future__ import annotations

from functools import lru_cache

from paraforge.errors import InputError
from paraforge.sample.lexicon import read_lines

TABLE = "handwritten.tsv"


@lru_cache(maxsize=1)
def read_handwritten() -> tuple[tuple[str, str], ...]:
    """The pairs (Czech, English) in the order of the table; InputError for a line without two columns."""
    pairs = []
    for number, line in read_lines(TABLE):
        columns = line.split("\t")
        if len(columns) != 2 or not all(column.strip() for column in columns):
            raise InputError("expected Czech, a tab, and English", TABLE, number)
        pairs.append((columns[0], columns[1]))
    return tuple(pairs)
