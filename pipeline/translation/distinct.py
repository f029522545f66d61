"""Distinct sentences of a corpus: each is translated once, and every row knows which one is its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from paraforge.errors import InputError
from paraforge.files import hash_json, read_json, sha256_file, write_json
from paraforge.interrupts import check_interrupt
from paraforge.progress import progress
from paraforge.shards.store import (
    ShardDirectory,
    ShardRecord,
    ShardWriter,
    shard_name,
    write_index,
    write_shard,
)
from paraforge.shards.work import replaced_directory

_VERSION = 1
_COMPLETE = "complete.json"
_FLAG_BLOCK = 1 << 24

SENTENCES = pa.schema(
    [pa.field("sentence", pa.int64(), nullable=False), pa.field("source_text", pa.string())]
)
PLACES = pa.schema([pa.field("sentence", pa.int64()), pa.field("here", pa.bool_(), nullable=False)])


@dataclass
class RowCounts:
    """Rows of a corpus: ``rejected`` before, ``given`` with a translation, and ``waiting`` for one."""

    rejected: int = 0
    given: int = 0
    waiting: int = 0


@dataclass(frozen=True)
class DistinctSentences:
    """Files about the distinct sentences of a corpus, numbered from 0 in the order of their first rows.

    Attributes:
        path: directory of them all.
        sentences_per_task: sentence n stands in shard n // sentences_per_task of ``sentences``.
    """

    path: Path
    sentences_per_task: int

    @property
    def sentences(self) -> Path:
        """Shards with the columns ``sentence`` (its number) and ``source_text``."""
        return self.path / "sentences"

    @property
    def places(self) -> Path:
        """Shards aligned with the corpus: ``sentence``, null for a row that is not translated, and ``here``:
        whether the sentence's first row is in the same shard."""
        return self.path / "places"

    @property
    def donors(self) -> Path:
        """Numbers, rising, of the sentences that rows of other shards need: raw little-endian int64."""
        return self.path / "donors.bin"

    def row_counts(self) -> RowCounts:
        """Rows of the corpus by what becomes of them."""
        return RowCounts(**read_json(self.path / _COMPLETE)["rows"])


def find_distinct(ingested: ShardDirectory, root: Path, sentences_per_task: int) -> DistinctSentences:
    """Number the distinct sentences of a corpus, or take over what an earlier run wrote and is undamaged.

    A row is translated if it is not rejected and has no translation yet. Memory is that of a shard, whatever
    the size of the corpus.

    Args:
        ingested: the corpus, with ``first_row`` (see :mod:`paraforge.shards.schema`).
        root: directory under which the files are kept, one directory a corpus.
        sentences_per_task: sentences of a shard of ``sentences``.
    """
    found = _distinct_of(ingested, root, sentences_per_task)
    if _is_complete(found, ingested):
        return found
    if root.is_dir():
        for old in root.iterdir():  # of another corpus: cheap to write again, and as large as that corpus
            shutil.rmtree(old, ignore_errors=True)
    with replaced_directory(found.path) as temporary:
        _write(ingested, DistinctSentences(temporary, sentences_per_task))
    return found


def written_distinct(
    ingested: ShardDirectory, root: Path, sentences_per_task: int
) -> DistinctSentences | None:
    """What :func:`find_distinct` has written for a corpus; None where it has not, or it is damaged."""
    found = _distinct_of(ingested, root, sentences_per_task)
    return found if _is_complete(found, ingested) else None


def _distinct_of(ingested: ShardDirectory, root: Path, sentences_per_task: int) -> DistinctSentences:
    key = hash_json([_VERSION, sentences_per_task, [record.sha256 for record in ingested.records]])[:40]
    return DistinctSentences(root / key, sentences_per_task)


def _is_complete(found: DistinctSentences, ingested: ShardDirectory) -> bool:
    try:
        if sha256_file(found.donors) != read_json(found.path / _COMPLETE)["donors"]:
            return False
        sentences, places = ShardDirectory(found.sentences), ShardDirectory(found.places)
        return places.rows == ingested.rows and all(
            sha256_file(path) == record.sha256
            for directory in (sentences, places)
            for path, record in zip(directory.paths, directory.records, strict=True)
        )
    except (InputError, OSError, KeyError, TypeError):
        return False


def _write(ingested: ShardDirectory, target: DistinctSentences) -> None:
    target.path.mkdir(parents=True, exist_ok=True)
    target.places.mkdir()
    writer = ShardWriter(target.sentences, SENTENCES, target.sentences_per_task)
    place_records: list[ShardRecord] = []
    wanted = ["source_text", "first_row", "rejected"]
    if "translation" in ingested.schema.names:
        wanted.append("translation")
    # Both files are mapped, not held: row number of every distinct sentence so far, and one byte a row for
    # whether the sentence that begins there is needed by another shard.
    first_rows = target.path / "first_rows.tmp"
    flags = target.path / "flags.tmp"
    count, start = 0, 0
    rows = RowCounts()
    needed = np.memmap(flags, np.uint8, "w+", shape=(max(1, ingested.total_rows),))
    with (
        first_rows.open("wb") as log,
        progress(total=ingested.total_rows, unit="rows", description="distinct sentences") as bar,
    ):
        for index, table in enumerate(ingested.tables(wanted)):
            check_interrupt()
            own, before, first = _own_rows(table, start, first_rows, count)
            own_rows = np.flatnonzero(own)
            (own_rows + start).astype("<i8").tofile(log)
            log.flush()
            writer.write(
                pa.table(
                    [
                        pa.array(np.arange(count, count + len(own_rows))),
                        table.column("source_text").take(own_rows),
                    ],
                    schema=SENTENCES,
                )
            )
            numbers, here = _numbers(own, before, first, start, count)
            needed[numbers[~here & (numbers >= 0)]] = 1
            places = pa.table([pa.array(numbers, mask=numbers < 0), pa.array(here)], schema=PLACES)
            place_records.append(write_shard(places, target.places / shard_name(index)))
            rejected = table.num_rows - table.column("rejected").null_count
            rows.rejected += rejected
            rows.waiting += int((numbers >= 0).sum())
            rows.given += table.num_rows - rejected - int((numbers >= 0).sum())
            count += len(own_rows)
            start += table.num_rows
            bar.update(table.num_rows)
    writer.close({"step": "distinct-sentences", "version": _VERSION})
    write_index(target.places, place_records, {"step": "places-of-sentences", "version": _VERSION})
    with target.donors.open("wb") as file:
        for block in _flagged(needed, count):
            block.astype("<i8").tofile(file)
    del needed
    first_rows.unlink()
    flags.unlink()
    note = {"sentences": count, "rows": asdict(rows), "donors": sha256_file(target.donors)}
    write_json(target.path / _COMPLETE, note)


def _own_rows(
    table: pa.Table, start: int, log: Path, count: int
) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]:
    """Which rows bring a new sentence, and where the others have theirs from.

    Returns:
        own (rows,): whether the row's sentence is new.
        earlier (rows,): number of a sentence that began in an earlier shard, or -1.
        first (rows,): row of the corpus in which the sentence begins if that is in this shard, or -1.
    """
    is_open = pc.is_null(table.column("rejected"))
    if "translation" in table.column_names:
        is_open = pc.and_(is_open, pc.is_null(table.column("translation")))
    waits = is_open.combine_chunks().to_numpy(zero_copy_only=False)
    rows = np.arange(start, start + table.num_rows)
    first = pc.fill_null(table.column("first_row"), -1).to_numpy().copy()
    first[first < 0] = rows[first < 0]
    first[~waits] = -1
    earlier = np.full(table.num_rows, -1, np.int64)
    outside = np.flatnonzero(waits & (first < start))
    if len(outside) and count:
        known = np.memmap(log, "<i8", "r", shape=(count,))
        places = np.minimum(np.searchsorted(known, first[outside]), count - 1)
        hit = np.asarray(known[places]) == first[outside]
        earlier[outside[hit]] = places[hit]
    first[earlier >= 0] = -1
    own = waits & (first == rows)
    # A first row that is not translated itself, because it came with a translation, stands for nothing here:
    # the first of the rows that name it takes its place.
    inside = (first >= start) & (first < start + table.num_rows)
    led = np.zeros(table.num_rows, np.bool_)
    led[inside] = own[first[inside] - start]
    stray = np.flatnonzero((first >= 0) & ~led)
    if len(stray):
        _, leaders, group = np.unique(first[stray], return_index=True, return_inverse=True)
        own[stray[leaders]] = True
        first[stray] = rows[stray[leaders]][group]
    return own, earlier, first


def _numbers(
    own: NDArray[np.bool_], earlier: NDArray[np.int64], first: NDArray[np.int64], start: int, count: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Sentence number of each row (-1 for none), and whether that sentence begins in this shard."""
    here = first >= start
    number_of_own = count + np.cumsum(own) - 1
    numbers = earlier.copy()
    numbers[here] = number_of_own[first[here] - start]
    return numbers, here


def _flagged(flags: NDArray[np.uint8], count: int) -> Iterator[NDArray[np.int64]]:
    for begin in range(0, count, _FLAG_BLOCK):
        yield begin + np.flatnonzero(flags[begin : min(count, begin + _FLAG_BLOCK)])
