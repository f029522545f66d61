"""Translations on their way out of a memory and into it: plain Parquet, a row a sentence."""

import contextlib
import json
import tempfile
import textwrap
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.base.errors import InputError
from paraforge.base.files import atomic_path, hash_json
from paraforge.base.interrupts import check_interrupt
from paraforge.base.shards.groups import GroupRanker
from paraforge.base.shards.store import open_parquet, parquet_writer, read_parquet, read_schema
from paraforge.base.text.normalisation import without_controls
from paraforge.intake.bitext.cleaning import as_ingested
from paraforge.translation.decoding.translator import Hypotheses, Hypothesis, is_runaway
from paraforge.translation.engines.imported import NAME as IMPORTED
from paraforge.translation.memory.memory import HypothesisRows, MemorySet, open_set

_SET = b"paraforge.translations"
_BLOCK = 20_000
_MOST = 127
_LONGEST = 100_000
_FLAGS = ("output_truncated", "non_finite", "runaway")
EXPORTED = pa.schema(
    [
        pa.field("sentence", pa.string(), nullable=False),
        pa.field("hypotheses", pa.list_(pa.string()), nullable=False),
        pa.field("scores", pa.list_(pa.float32()), nullable=False),
        pa.field("source_truncated", pa.bool_()),
        *(pa.field(name, pa.list_(pa.bool_())) for name in _FLAGS),
        pa.field("model", pa.string()),
        pa.field("options", pa.string()),
        pa.field("libraries", pa.string()),
    ]
)


def export_set(memory: MemorySet, output: Path) -> int:
    """Write the sentences of a set, each once, without those that failed.

    output: Parquet with the columns of ``EXPORTED``: the best hypothesis first, its score a mean
        log-probability per token or null; ``options`` and ``libraries`` are JSON.

    Gives the number of sentences. Raises InputError: a file of the memory is damaged.
    """
    described = memory.description
    model = str(described.get("model", described.get(IMPORTED, "")))
    options = json.dumps({key: value for key, value in described.items() if key != "model"}, sort_keys=True)
    schema = EXPORTED.with_metadata({_SET: json.dumps(described)})
    segments = memory.segments()
    sentences = 0
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=".export-") as place:
        ranker = GroupRanker(Path(place))
        start = 0
        for segment in segments:
            heads, keys, failed = segment.keys()
            ranker.add(keys[~failed], start + heads[~failed], start + segment.rows)
            start += segment.rows
        ranker.finish()
        start = 0
        with atomic_path(output) as temporary, parquet_writer(temporary, schema) as writer:
            for segment in segments:
                check_interrupt()
                earlier, _ = ranker.ranks(start, start + segment.rows)
                start += segment.rows
                table = _by_sentence(read_parquet(segment.path), earlier == 0)
                constant = {"model": model, "options": options, "libraries": json.dumps(segment.libraries)}
                for name, value in constant.items():
                    table = table.append_column(name, pa.repeat(value, table.num_rows))
                writer.write_table(table.select(EXPORTED.names).cast(schema))
                sentences += table.num_rows
    return sentences


def _by_sentence(table: pa.Table, first: np.ndarray[Any, Any]) -> pa.Table:
    """One row a sentence that did not fail and is not in an earlier segment."""
    heads = np.flatnonzero(table.column("key").is_valid().to_numpy())
    wanted = first[heads] & table.column("failed").is_null().to_numpy()[heads]
    offsets = pa.array(np.append(heads, table.num_rows), pa.int32())

    def lists(name: str) -> pa.Array:
        return pa.ListArray.from_arrays(offsets, table.column(name).combine_chunks())

    columns = {
        "sentence": table.column("source_text").take(heads).combine_chunks(),
        "hypotheses": lists("translation"),
        "scores": lists("translation_score"),
        "source_truncated": table.column("source_truncated").take(heads).combine_chunks(),
        **{name: lists(name) for name in _FLAGS},
    }
    return pa.table(columns).filter(pa.array(wanted))


def import_file(path: Path, root: Path, name: str | None) -> tuple[MemorySet, int]:
    """Add a file of translations to a memory.

    path: Parquet with ``sentence`` and ``hypotheses`` (a text, or a list of texts, the best first), perhaps
        ``scores`` (a number or a list of them), and what else :func:`export_set` writes.
    root: directory of the memory.
    name: of the set, for translations made elsewhere; None: the set that the file was exported from.

    Gives the set and the number of sentences. Raises InputError: the file cannot be read, or a row is wrong;
    nothing is added then.
    """
    schema = read_schema(path)
    missing = [column for column in ("sentence", "hypotheses") if column not in schema.names]
    if missing:
        raise InputError(f"no column {', '.join(missing)}; it has {', '.join(schema.names)}", path)
    memory = open_set(root, _description(schema, path, name))
    counted = 0

    def tables() -> Iterator[tuple[pa.Table, dict[str, str]]]:
        nonlocal counted
        for block in _blocks(path, [column for column in EXPORTED.names if column in schema.names]):
            check_interrupt()
            for begin, rows, libraries in _by_libraries(block, path, counted):
                yield _remembered(rows, path, begin), libraries
            counted += len(block)

    memory.add(tables())
    return memory, counted


def _description(schema: pa.Schema, path: Path, name: str | None) -> dict[str, Any]:
    if name is not None:
        return {IMPORTED: name}
    with contextlib.suppress(KeyError, ValueError, RecursionError):
        description = json.loads((schema.metadata or {})[_SET])
        if isinstance(description, dict) and description:
            hash_json(description)
            return description
    raise InputError(
        "it does not say which model and options made it", path, remedy="Give the translations a --name."
    )


def _blocks(path: Path, columns: list[str]) -> Iterator[list[dict[str, Any]]]:
    """Rows of a file. Raises InputError: a part of it cannot be read, or is not UTF-8."""
    try:
        with open_parquet(path) as file:
            for batch in file.iter_batches(_BLOCK, columns=columns):
                yield batch.to_pylist()
    except UnicodeDecodeError as error:
        raise InputError(f"a text is not UTF-8: {error.reason}", path) from error


def _by_libraries(
    rows: list[dict[str, Any]], path: Path, before: int
) -> Iterator[tuple[int, list[dict[str, Any]], dict[str, str]]]:
    """Rows that the same versions of libraries made, and the number of rows before them."""
    for given, group in groupby(enumerate(rows), lambda item: item[1].get("libraries")):
        numbered = list(group)
        first = before + numbered[0][0]
        try:
            found = json.loads(given or "{}")
            libraries = {str(key): str(value) for key, value in found.items()}
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise InputError(
                f"row {first + 1}: libraries are {_short(given)}, not versions by name as JSON", path
            ) from error
        yield first, [row for _, row in numbered], libraries


def _remembered(rows: list[dict[str, Any]], path: Path, before: int) -> pa.Table:
    """Rows of a file as the memory keeps them.

    A sentence that ingest would leave in another form, because of its Unicode form, blanks or line breaks, is
    there in both forms.
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
    """Hypotheses of a row. Raises ValueError: something in it cannot be."""
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
    scores = _listed(row, "scores", len(texts), int | float | None, "numbers")
    flags = {name: _listed(row, name, len(texts), bool | None, "true or false") for name in _FLAGS}
    if not isinstance(row.get("source_truncated"), bool | None):
        raise ValueError(f"source_truncated is {_short(row['source_truncated'])}, not true or false")
    made = []
    for place, given in enumerate(texts):
        text = without_controls(given)  # as ingest sees to the texts that it reads
        with np.errstate(over="ignore"):  # what is too large for the column is no score
            score = float("nan") if scores[place] is None else float(np.float32(scores[place]))
        runaway = flags["runaway"][place]
        made.append(
            Hypothesis(
                text,
                score if np.isfinite(score) else float("nan"),
                0,
                bool(flags["output_truncated"][place]),
                bool(flags["non_finite"][place]) or bool(np.isinf(score)),
                is_runaway(text, text.split()) if runaway is None else bool(runaway),
            )
        )
    return Hypotheses(tuple(made), bool(row.get("source_truncated")))


def _listed(row: dict[str, Any], name: str, count: int, kind: Any, words: str) -> list[Any]:
    """What a row says of each hypothesis; one value is that of the only one. Raises ValueError."""
    given = row.get(name)
    values = given if isinstance(given, list) else [given] * (count if given is None else 1)
    if len(values) != count:
        raise ValueError(f"{len(values)} {name} of {count} hypotheses")
    if not all(isinstance(value, kind) for value in values):
        raise ValueError(f"{name} are {_short(given)}, not {words}")
    return values


def _short(value: object) -> str:
    return textwrap.shorten(repr(value), 80, placeholder=" ...")
