"""Translations that rows of other shards need, in one memory-mapped Arrow file sorted by sentence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paraforge.errors import IncompleteError, InputError
from paraforge.files import atomic_path, hash_json, read_json, sha256_file, write_json
from paraforge.interrupts import check_interrupt
from paraforge.shards.store import ShardDirectory
from paraforge.translation.distinct import DistinctSentences

# Rows of a record batch: what is decoded to fetch one row.
_BATCH_ROWS = 65_536


@dataclass(frozen=True)
class Donors:
    """The file of donors and, beside it, the sentence number of each of its rows.

    Attributes:
        path: Arrow IPC file; None where no shard needs another's translations.
        rows: rows in it.
    """

    path: Path | None
    rows: int

    @property
    def _numbers(self) -> Path:
        assert self.path is not None
        return self.path.with_suffix(".sentences")

    def fetch(self, sentences: NDArray[np.int64], schema: pa.Schema) -> pa.Table:
        """Rows of the given sentences, which rise; of each sentence in the order of rank.

        Only the pages that hold them are read.

        Raises:
            IncompleteError: a sentence is not there.
        """
        if self.path is None or not len(sentences):
            if len(sentences):
                raise IncompleteError(f"no donors, and {len(sentences)} sentences are asked of them")
            return schema.empty_table()
        numbers = np.memmap(self._numbers, "<i8", "r", shape=(self.rows,))
        left = np.searchsorted(numbers, sentences, "left")
        right = np.searchsorted(numbers, sentences, "right")
        if (left == right).any():
            raise IncompleteError(f"{self.path}: {int((left == right).sum())} sentences are missing")
        rows = ranges(left, right - left)
        batches = rows // _BATCH_ROWS
        with pa.memory_map(str(self.path)) as source, pa.ipc.open_file(source) as reader:
            taken = [
                pa.Table.from_batches([reader.get_batch(int(number))]).take(
                    pa.array(rows[batches == number] - number * _BATCH_ROWS)
                )
                for number in np.unique(batches)
            ]
        return pa.concat_tables(taken).cast(schema)


def ranges(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """``starts[0], starts[0] + 1, ...`` of ``lengths[0]`` numbers, then those of the next range."""
    ends = np.cumsum(lengths)
    offsets = np.repeat(starts - (ends - lengths), lengths)
    return np.asarray(offsets + np.arange(len(offsets)), np.int64)


def write_donors(distinct: DistinctSentences, hypotheses: ShardDirectory, root: Path) -> Donors:
    """Collect the rows of the sentences that other shards need, or take over an undamaged earlier file.

    Args:
        distinct: says which sentences these are.
        hypotheses: translated sentences, shard by shard as ``distinct.sentences``.
        root: directory for the file.
    """
    wanted_count = distinct.donors.stat().st_size // 8
    if not wanted_count:
        return Donors(None, 0)
    digest = sha256_file(distinct.donors)
    key = hash_json([digest, [record.sha256 for record in hypotheses.records]])[:40]
    path, notes = root / f"{key}.arrow", root / f"{key}.json"
    try:
        note = read_json(notes)
        if sha256_file(path) == note["sha256"]:
            found = Donors(path, int(note["rows"]))
            if sha256_file(found._numbers) == note["sentences"]:
                return found
    except (InputError, OSError, KeyError, TypeError):
        pass
    if root.is_dir():
        for old in root.iterdir():
            old.unlink(missing_ok=True)
    rows = 0
    numbers_path = path.with_suffix(".sentences")
    with atomic_path(path) as temporary, atomic_path(numbers_path) as numbers_temporary:
        with (
            pa.OSFile(str(temporary), "wb") as sink,
            pa.ipc.new_file(sink, hypotheses.schema.remove_metadata()) as writer,
            numbers_temporary.open("wb") as numbers,
        ):
            for table in _in_batches(_selected(distinct, hypotheses)):
                writer.write_table(table, max_chunksize=_BATCH_ROWS)
                table.column("sentence").to_numpy().astype("<i8").tofile(numbers)
                rows += table.num_rows
        sums = {"sha256": sha256_file(temporary), "sentences": sha256_file(numbers_temporary)}
    write_json(notes, {"rows": rows, **sums})
    return Donors(path, rows)


def _selected(distinct: DistinctSentences, hypotheses: ShardDirectory) -> Iterator[pa.Table]:
    wanted = np.memmap(distinct.donors, "<i8", "r")
    for index, table in enumerate(hypotheses.tables()):
        check_interrupt()
        begin = index * distinct.sentences_per_task
        here = wanted[slice(*np.searchsorted(wanted, [begin, begin + distinct.sentences_per_task]))]
        if len(here):
            chosen = np.isin(table.column("sentence").to_numpy(), here)
            yield table.filter(pa.array(chosen)).replace_schema_metadata(None)


def _in_batches(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in tables of ``_BATCH_ROWS`` rows, but for the last."""
    pending: list[pa.Table] = []
    held = 0
    for table in tables:
        pending.append(table)
        held += table.num_rows
        while held >= _BATCH_ROWS:
            merged = pa.concat_tables(pending)
            yield merged.slice(0, _BATCH_ROWS).combine_chunks()
            pending = [merged.slice(_BATCH_ROWS)]
            held -= _BATCH_ROWS
    if held:
        yield pa.concat_tables(pending).combine_chunks()
