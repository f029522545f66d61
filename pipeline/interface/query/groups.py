"""The groups of a published corpus: sentences that say the same, a list each."""

# ruff: noqa: S608 - names are quoted
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from paraforge.base.errors import IncompleteError, InputError
from paraforge.base.files import write_whole
from paraforge.base.interrupts import check_interrupt
from paraforge.base.progress import progress
from paraforge.base.shards.schema import TEXT_COLUMNS, column
from paraforge.base.shards.store import ShardWriter, shard_name, write_index, write_shard
from paraforge.base.shards.work import replaced_directories
from paraforge.base.yaml_text import yaml_text
from paraforge.corpus.publication.card import CONFIGS_NAME, configs
from paraforge.corpus.publication.datasets import Dataset, kept_pairs
from paraforge.corpus.publication.groups import GROUP
from paraforge.corpus.publication.manifest import describe_columns, stem_of
from paraforge.interface.query.database import arrow_reader, explained, open_database, rows_of

STEP = "groups"
# Read at once; a larger group is read as a whole.
ROWS = 50_000
SCHEMA = pa.schema(
    [
        column(GROUP, pa.int64(), "as in the corpus"),
        column("sentences", pa.list_(pa.string()), "each once, in the order of the pairs, references first"),
        column("pairs", pa.int32(), "pairs of the corpus that they are of"),
        column("paraphrase_score", pa.float32(), "mean of the pairs"),
    ]
)
_SCORE = "paraphrase_score"


def export_groups(corpus: Dataset, output: Path) -> tuple[int, int]:
    """Write a row for each group of a corpus into a directory, by number, in the files of its split.

    output: the directory, which is replaced as a whole. Memory does not grow with the corpus.

    Returns groups and pairs. Raises InputError: the corpus has no groups, or a file is damaged.
    """
    kept_pairs(corpus, TEXT_COLUMNS)
    if GROUP not in corpus.schema.names:
        raise InputError(
            "it has no groups", corpus.directory, remedy="Set publish.group_score, then 'dvc repro publish'."
        )
    groups = pairs = 0
    with replaced_directories(output) as (directory,):
        records = []
        with progress(total=corpus.rows, unit="pairs", description=STEP) as bar:
            for split in corpus.splits.values():
                writer = ShardWriter(directory, SCHEMA, stem=stem_of(split.files[0].name))
                for table in _groups(split):
                    writer.write(table)
                    groups += table.num_rows
                    done = int(np.sum(table["pairs"]))
                    pairs += done
                    bar.update(done)
                records += writer.close()
        records = records or [write_shard(SCHEMA.empty_table(), directory / shard_name(0))]
        if pairs != corpus.rows:
            raise IncompleteError(f"{STEP}: {pairs:,} pairs in groups of {corpus.rows:,}")
        patterns = {
            name: f"{stem_of(split.files[0].name)}-*.parquet"
            for name, split in corpus.splits.items()
            if split.rows or not corpus.rows
        }
        write_index(directory, records, {"step": STEP, "groups": groups, "pairs": pairs})
        write_whole(
            directory / CONFIGS_NAME, yaml_text(configs({"default": (patterns, describe_columns(SCHEMA))}))
        )
    return groups, pairs


def _groups(split: Dataset) -> Iterator[pa.Table]:
    """The groups of a split, by their number."""
    columns = [GROUP, *TEXT_COLUMNS, *([_SCORE] if _SCORE in split.schema.names else [])]
    listed = ", ".join(f'"{name}"' for name in columns)
    files = rows_of(split.files, "filename = true", "file_row_number = true")
    with open_database([split]) as connection, explained():
        ordered = connection.sql(f'SELECT {listed} FROM {files} ORDER BY "group", filename, file_row_number')
        rest: pa.Table | None = None
        for batch in arrow_reader(ordered, ROWS):
            check_interrupt()
            rows = pa.Table.from_batches([batch])
            rows = rows if rest is None else pa.concat_tables([rest, rows])
            numbers = rows[GROUP].to_numpy()
            last = int(np.searchsorted(numbers, numbers[-1]))  # the last group may go on
            rest = rows.slice(last).combine_chunks()
            if last:
                yield _joined(rows.slice(0, last))
        if rest is not None and rest.num_rows:
            yield _joined(rest)


def _joined(rows: pa.Table) -> pa.Table:
    """One row a group of rows that are sorted by it."""
    groups, starts, pairs = np.unique(rows[GROUP].to_numpy(), return_index=True, return_counts=True)
    place = np.repeat(np.arange(len(groups)), pairs)
    texts = pa.chunked_array([chunk for name in TEXT_COLUMNS for chunk in rows[name].chunks], pa.string())
    codes = texts.combine_chunks().dictionary_encode().indices.to_numpy()
    owner = np.concatenate([place, place])
    # Every sentence once in its group, where it is first; all references are before all translations.
    _, first = np.unique(np.stack([owner, codes]), axis=1, return_index=True)
    first = np.sort(first)
    first = first[np.argsort(owner[first], kind="stable")]
    sentences = texts.take(pa.array(first)).combine_chunks()
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owner[first], minlength=len(groups)))])
    scores = np.full(rows.num_rows, np.nan)
    if _SCORE in rows.column_names:
        scores = rows[_SCORE].to_numpy(zero_copy_only=False).astype(np.float64)
    known = ~np.isnan(scores)
    counts = np.add.reduceat(known.astype(np.int64), starts)
    means = np.add.reduceat(np.where(known, scores, 0.0), starts) / np.maximum(counts, 1)
    return pa.table(
        [
            groups,
            pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), sentences),
            pairs.astype(np.int32),
            pa.array(means.astype(np.float32), mask=counts == 0),
        ],
        schema=SCHEMA,
    )
