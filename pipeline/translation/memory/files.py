"""Adds translations made elsewhere to a memory, from Parquet with one row per sentence."""

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.base.errors import InputError
from paraforge.base.shards.store import open_parquet, read_schema
from paraforge.base.text.normalisation import without_controls
from paraforge.intake.bitext.cleaning import as_ingested
from paraforge.translation.decoding.translator import Hypotheses, Hypothesis, is_runaway
from paraforge.translation.engines.imported import NAME as IMPORTED
from paraforge.translation.memory.memory import HypothesisRows, MemorySet, open_set

_BLOCK = 20_000
_MOST = 127
_LONGEST = 100_000


def import_file(path: Path, root: Path, name: str) -> tuple[MemorySet, int]:
    """Add a file of translations to a memory.

    path: Parquet with ``sentence`` and ``hypotheses`` (a text, or a list of texts, the best first), and
        optionally ``scores`` (a number or a list of numbers).
    root: directory of the memory. name: of the set, for ``translate.imported.name``.

    Returns the set and the number of sentences. Raises InputError if the file cannot be read or a row is
    wrong; then nothing is added.
    """
    if not name:
        raise InputError("imported translations need a name", path, remedy="Pass --name.")
    schema = read_schema(path)
    missing = [column for column in ("sentence", "hypotheses") if column not in schema.names]
    if missing:
        raise InputError(f"no column {', '.join(missing)}; it has {', '.join(schema.names)}", path)
    memory = open_set(root, {IMPORTED: name})
    counted = 0

    def tables() -> Iterator[tuple[pa.Table, dict[str, str]]]:
        nonlocal counted
        columns = [column for column in ("sentence", "hypotheses", "scores") if column in schema.names]
        try:
            with open_parquet(path) as file:
                for batch in file.iter_batches(_BLOCK, columns=columns):
                    yield _remembered(batch.to_pylist(), path, counted), {}
                    counted += batch.num_rows
        except UnicodeDecodeError as error:
            raise InputError(f"a text is not UTF-8: {error.reason}", path) from error

    memory.add(tables())
    return memory, counted


def _remembered(rows: list[dict[str, Any]], path: Path, before: int) -> pa.Table:
    """Convert rows of a file to the memory's.

    A sentence that ingestion would change (Unicode form, blanks, line breaks) is added in both forms.
    """
    results = []
    for number, row in enumerate(rows, start=before + 1):
        try:
            results.append(_hypotheses(row))
        except ValueError as error:
            raise InputError(f"row {number}: {error}", path) from error
    given = pa.array([row["sentence"] for row in rows], pa.string())
    ingested = as_ingested(given)
    other = np.flatnonzero(pc.not_equal(given, ingested).to_numpy(zero_copy_only=False))
    found = HypothesisRows()
    for result in [*results, *(results[place] for place in other)]:
        found.add(result)
    return found.table(pa.concat_arrays([given, ingested.take(pa.array(other))]))


def _hypotheses(row: dict[str, Any]) -> Hypotheses:
    """Read the hypotheses of a row. Raises ValueError if a value is wrong."""
    if not isinstance(row["sentence"], str):
        raise ValueError(f"the sentence is {_short(row['sentence'])}, not a text")
    texts = row["hypotheses"]
    texts = [texts] if isinstance(texts, str) else texts
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"hypotheses are {_short(texts)}, not one or more texts")
    if len(texts) > _MOST:
        raise ValueError(f"{len(texts)} hypotheses, more than {_MOST}")
    if max(map(len, [row["sentence"], *texts])) > _LONGEST:
        raise ValueError(f"a text of more than {_LONGEST:,} characters")
    given = row.get("scores")
    scores = given if isinstance(given, list) else [given] * (len(texts) if given is None else 1)
    if len(scores) != len(texts):
        raise ValueError(f"the numbers of scores ({len(scores)}) and hypotheses ({len(texts)}) differ")
    if not all(isinstance(score, int | float | None) for score in scores):
        raise ValueError(f"scores are {_short(given)}, not numbers")
    made = []
    for original, score in zip(texts, scores, strict=True):
        text = without_controls(original)  # as ingest does with its texts
        with np.errstate(over="ignore"):  # a number that is too large for the column is not a score
            number = float("nan") if score is None else float(np.float32(score))
        made.append(
            Hypothesis(
                text,
                number if np.isfinite(number) else float("nan"),
                0,
                non_finite=bool(np.isinf(number)),
                runaway=is_runaway(text, text.split()),
            )
        )
    return Hypotheses(tuple(made))


def _short(value: object) -> str:
    return textwrap.shorten(repr(value), 80, placeholder=" ...")
