"""Small corpora for the tests of selection, as translate and score write them."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa

from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import shard_name, write_index, write_shard
from paraforge.corpus.columns import COLUMNS, schema_of

WORDS = [
    "the", "cat", "dog", "house", "sees", "a", "small", "big", "red", "old", "new", "runs", "walks",
    "tree",
]  # fmt: skip
TRANSLATED = [
    "source", "line", "source_text", "reference", "translation", "translation_score", "rank",
    "source_truncated", "output_truncated", "non_finite", "runaway", "rejected", "failed", "first_row",
]  # fmt: skip


def with_columns(table: pa.Table, **columns: Iterable[object]) -> pa.Table:
    """``table`` with other values of some of its columns."""
    for name, values in columns.items():
        field = table.schema.field(name)
        place = table.schema.get_field_index(name)
        table = table.set_column(place, field, pa.array(values, field.type))
    return table


def random_pairs(rows: int, seed: int = 0) -> pa.Table:
    """All columns of ``rows`` pairs: some refused at ingest, some failed, some without a score."""
    random = np.random.default_rng(seed)

    def sentences() -> list[str]:
        lengths = random.integers(1, 12, rows)
        return [" ".join(random.choice(WORDS, length)) for length in lengths]

    fate = random.choice(["", "duplicate", "blank_source", "failed"], rows, p=[0.85, 0.05, 0.05, 0.05])
    judged = ~np.isin(fate, ["duplicate", "blank_source", "failed"])
    references, translations = sentences(), sentences()
    scores = np.round(random.random(rows) * 1.1 - 0.1, 2).astype(np.float32)
    unscored = ~judged | (random.random(rows) < 0.05)

    def score(low: float = 0.0) -> pa.Array:
        return pa.array(np.round(low + random.random(rows), 1).astype(np.float32), mask=~judged)

    source = np.where(np.arange(rows) < rows // 3, "tatoeba", "news")
    columns = {
        "source": pa.array(source),
        "line": pa.array(np.where(source == "tatoeba", np.arange(rows), np.arange(rows) - rows // 3) + 1),
        "source_text": pa.array([f"věta {number}" for number in range(rows)]),
        "reference": pa.array(references),
        "translation": pa.array(translations, mask=~judged),
        "translation_score": pa.array(-random.random(rows).astype(np.float32), mask=~judged),
        "rank": pa.array(np.zeros(rows, np.int8)),
        "source_truncated": pa.array(random.random(rows) < 0.01),
        "output_truncated": pa.array(random.random(rows) < 0.02),
        "non_finite": pa.array(np.zeros(rows, bool)),
        "runaway": pa.array(random.random(rows) < 0.03, mask=np.arange(rows) % 29 == 3),
        "rejected": pa.array(fate, mask=~np.isin(fate, ["duplicate", "blank_source"])),
        "failed": pa.array(np.full(rows, "engine_error"), mask=fate != "failed"),
        "first_row": pa.array(np.arange(rows), mask=~judged),
        "reference_tokens": pa.array([len(text.split()) for text in references], pa.int32()),
        "translation_tokens": pa.array([len(text.split()) for text in translations], pa.int32()),
        "paraphrase_score": pa.array(scores, mask=unscored),
        "overlap_1": score(),
        "overlap_2": score(),
        "overlap_3": score(),
        "copy_rate": score(),
        "digit_mismatch": pa.array(random.random(rows) < 0.1),
    }
    schema = schema_of(columns)
    return pa.table([columns[name] for name in schema.names], schema=schema)


def write_shards(table: pa.Table, directory: Path, rows: int, step: str = "translate") -> Path:
    """Write a table as shards of so many rows."""
    directory.mkdir(parents=True, exist_ok=True)
    records = [
        write_shard(table.slice(start, rows).combine_chunks(), directory / shard_name(index))
        for index, start in enumerate(range(0, table.num_rows, rows))
    ]
    fingerprints = {"model": "3fa9c1d2" * 8} if step == "translate" else {"vectors": "91ab77e0" * 8}
    parameters = {"beam": 12, "nbest": 1} if step == "translate" else {}
    write_index(
        directory,
        records,
        {"step": step, "version": 1, "parameters": parameters, "fingerprints": fingerprints},
    )
    return directory


def write_corpus(table: pa.Table, root: Path, rows: int) -> list[Path]:
    """Write ``translated`` and ``scored`` below ``root``; gives both."""
    translated = [name for name in table.column_names if name in TRANSLATED]
    scored = [name for name in table.column_names if name not in TRANSLATED]
    assert all(name in COLUMNS for name in table.column_names)
    return [
        write_shards(table.select(translated), root / "translated", rows),
        write_shards(table.select(scored), root / "scored", rows, "score"),
    ]


def resources(root: Path, workers: int = 1) -> Resources:
    """Resources with a work directory below ``root``; more than one worker is taken at its word."""
    return Resources(workers=workers, work=root / "work", in_process_rows=0 if workers > 1 else 20_000)
