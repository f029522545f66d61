"""The bitexts that benchmarks translate."""

import gzip
from collections.abc import Iterable
from pathlib import Path


def read_bitext(paths: Iterable[Path], limit: int) -> tuple[list[str], list[str]]:
    """English and the foreign side of TSV files: their last two columns."""
    rows: list[list[str]] = []
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
            rows += [line.rstrip("\n").split("\t") for line in file]
    rows = rows[:limit] if limit else rows
    return [row[-2] for row in rows], [row[-1] for row in rows]
