"""Finds the distinct sentences of a corpus, each of which is translated once, and maps rows to them. If their
number is limited, the others wait for a run with a higher limit. Also counts them, and draws a sample: those
with the smallest keys."""

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import reduce
from itertools import cycle, islice
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from paraforge.base.errors import InputError
from paraforge.base.files import (
    hash_json,
    read_json,
    remove_directory,
    temporary_directory,
    write_json,
)
from paraforge.base.progress import progress
from paraforge.base.shards.lineage import Smallest, text_keys
from paraforge.base.shards.pool import in_order, in_threads
from paraforge.base.shards.schema import COLUMNS
from paraforge.base.shards.store import (
    ShardDirectory,
    ShardRecord,
    read_parquet,
    shard_name,
    write_index,
    write_shard,
)
from paraforge.base.shards.work import replaced_directory

logger = logging.getLogger(__name__)

NOT_CHOSEN: Final = "not_chosen"
_VERSION = 3
_COMPLETE = "complete.json"
# Sentences to read at once.
_BLOCK = 1_000_000

# A row with a value in one of these columns does not wait for a translation.
_DONE = ("rejected", "translation", "failed")
PLACES = pa.schema([pa.field("sentence", pa.int64())])
_LIMITED_PLACES = PLACES.append(COLUMNS["failed"].remove_metadata())


@dataclass
class RowCounts:
    """Rows of a corpus that were rejected, had failed, came with a translation, or wait for one."""

    rejected: int = 0
    given: int = 0
    waiting: int = 0
    failed: int = 0


@dataclass(frozen=True)
class DistinctSentences:
    """The files on a corpus' distinct sentences, numbered from 0 in the order of their first rows.

    path: their directory.
    """

    path: Path

    @property
    def places(self) -> Path:
        """The shards aligned with the corpus: ``sentence``, null for a row that is not translated, and
        ``failed`` if sentences are left out."""
        return self.path / "places"

    @property
    def keys(self) -> Path:
        """The file of each sentence's key, 16 bytes (see :mod:`paraforge.base.shards.lineage`)."""
        return self.path / "keys.bin"

    @property
    def first_rows(self) -> NDArray[np.int64]:
        """The first row of each sentence in the corpus, ascending; memory-mapped."""
        return mapped_array(self.path / "first_rows.bin", "<i8")

    def __len__(self) -> int:
        return (self.path / "first_rows.bin").stat().st_size // 8

    @property
    def remedy(self) -> str:
        """What to do if one of the files is damaged."""
        return f"Delete {self.path} and run the same command again."

    def row_counts(self) -> RowCounts:
        """Return how many rows are rejected, failed, given, and waiting."""
        return RowCounts(**read_json(self.path / _COMPLETE)["rows"])

    def limit(self) -> int | None:
        """Return the limit that left sentences out; None if it left out none."""
        limit: int | None = read_json(self.path / _COMPLETE)["limit"]
        return limit

    def texts(
        self,
        corpus: ShardDirectory,
        sentences: NDArray[np.int64],
        threads: int = 1,
    ) -> Iterator[pa.Array]:
        """Yield the texts of sentences, one array per shard.

        sentences: ascending numbers of sentences. threads: threads that read shards.
        """
        first_rows = self.first_rows
        starts = np.cumsum([0, *corpus.rows])
        cuts = np.searchsorted(sentences, np.searchsorted(first_rows, starts))
        shards = np.flatnonzero(np.diff(cuts)).tolist()

        def read(place: int) -> pa.Array:
            shard = shards[place]
            rows = np.asarray(first_rows[sentences[cuts[shard] : cuts[shard + 1]]]) - starts[shard]
            if ((rows < 0) | (rows >= corpus.rows[shard])).any():
                raise InputError("damaged", self.path / "first_rows.bin", remedy=self.remedy)
            return corpus.read(shard, ["source_text"])["source_text"].take(pa.array(rows)).combine_chunks()

        return in_order(read, len(shards), threads)


def mapped_array(path: Path, kind: str) -> NDArray[Any]:
    """Map a file of numbers of one kind into memory, read-only."""
    # An empty file cannot be mapped.
    return np.memmap(path, kind, "r") if path.stat().st_size else np.empty(0, kind)


def waiting_columns(schema: pa.Schema) -> list[str]:
    """Return the columns that show which rows wait for a translation, and which rows share a sentence."""
    return ["first_row", *(name for name in _DONE if name in schema.names)]


def waiting_rows(table: pa.Table) -> pa.ChunkedArray:
    """Return which rows wait for a translation: those without one that were not rejected and have not
    failed."""
    return reduce(pc.and_, (pc.is_null(table[name]) for name in _DONE if name in table.column_names))


def find_distinct(
    ingested: ShardDirectory, root: Path, threads: int = 1, maximum: int | None = None
) -> DistinctSentences:
    """Assign numbers to the distinct sentences of a corpus, or reuse the files of an earlier run.

    A row is translated if it is not rejected, has not failed and has no translation yet. Each thread needs
    the memory of a few shards, whatever the size of the corpus.

    ingested: the corpus, with ``first_row`` (see :mod:`paraforge.base.shards.schema`).
    root: directory for the files, which have a subdirectory per corpus.
    threads: threads that read shards, make keys and write places; the result does not depend on them.
    maximum: most sentences, those with the smallest keys, so that a higher limit keeps all of them; the rows
        of the others fail as ``not_chosen``. About 50 bytes of memory for each. None: all.
    """
    distinct = _distinct_of(ingested, root, maximum)
    if _is_written(distinct):
        return distinct
    if root.is_dir():
        # The files of another corpus are large, and cheap to make again.
        for old in root.iterdir():
            remove_directory(old)
    with replaced_directory(distinct.path) as temporary:
        _write(ingested, DistinctSentences(temporary), threads, maximum)
    return distinct


def written_distinct(
    ingested: ShardDirectory, root: Path, maximum: int | None = None
) -> DistinctSentences | None:
    """Return the files that :func:`find_distinct` wrote for a corpus; None if there are none.

    Raises InputError if one of them was cut.
    """
    distinct = _distinct_of(ingested, root, maximum)
    return distinct if _is_written(distinct) else None


def _is_written(distinct: DistinctSentences) -> bool:
    """Return whether the files are there. Raises InputError if one of them was cut."""
    if not distinct.path.is_dir():
        return False
    if distinct.keys.stat().st_size != 16 * len(distinct):
        raise InputError("damaged", distinct.path, remedy=distinct.remedy)
    return True


def _distinct_of(ingested: ShardDirectory, root: Path, maximum: int | None) -> DistinctSentences:
    digests = [record.sha256 for record in ingested.records]
    return DistinctSentences(root / hash_json([_VERSION, digests, maximum])[:40])


def _write(ingested: ShardDirectory, target: DistinctSentences, threads: int, maximum: int | None) -> None:
    target.places.mkdir(parents=True)
    place_records: list[ShardRecord] = []
    names = ["source_text", *waiting_columns(ingested.schema)]
    rows = RowCounts()

    def numbered(log: BinaryIO) -> Iterator[tuple[int, pa.ChunkedArray, NDArray[np.int64]]]:
        """Yield the index of each shard, its new sentences, and the sentence number of each of its rows."""
        start = 0
        for index, table in enumerate(
            in_order(lambda shard: ingested.read(shard, names), len(ingested), threads)
        ):
            numbers, own = _number_rows(table, start, target.path / "first_rows.bin")
            (own + start).astype("<i8").tofile(log)
            log.flush()
            rejected = table.num_rows - table.column("rejected").null_count
            failed = table.num_rows - table["failed"].null_count if "failed" in table.column_names else 0
            rows.rejected += rejected
            rows.failed += failed
            rows.waiting += int((numbers >= 0).sum())
            rows.given += table.num_rows - rejected - failed - int((numbers >= 0).sum())
            yield index, table.column("source_text").take(pa.array(own)), numbers
            start += table.num_rows

    def written(
        shard: tuple[int, pa.ChunkedArray, NDArray[np.int64]],
    ) -> tuple[NDArray[np.uint64], ShardRecord]:
        index, texts, numbers = shard
        places = pa.table([pa.array(numbers, mask=numbers < 0)], schema=PLACES)
        return text_keys(pc.fill_null(texts, "")), write_shard(places, target.places / shard_name(index))

    # The row number and the key of every sentence so far stay on disk.
    with (
        (target.path / "first_rows.bin").open("wb") as log,
        (target.path / "keys.bin").open("wb") as key_file,
        progress(total=ingested.total_rows, unit="rows", description="distinct sentences") as bar,
        contextlib.closing(in_threads(written, numbered(log), threads)) as shards,
    ):
        for keys, record in shards:
            keys.astype("<u8").tofile(key_file)
            place_records.append(record)
            bar.update(record.rows)
    limit = maximum if maximum is not None and maximum < len(target) else None
    if limit is not None:
        logger.info("%d of %d distinct sentences are translated", limit, len(target))
        place_records = _limit(target, limit, len(place_records), rows)
    write_index(target.places, place_records, {"step": "places-of-sentences", "version": _VERSION})
    write_json(target.path / _COMPLETE, {"rows": asdict(rows), "limit": limit})


def _number_rows(table: pa.Table, start: int, log: Path) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the sentence number of each row of a shard, -1 for none, and the rows that begin a sentence.

    start: number of the shard's first row. log: first rows of the sentences of earlier shards.
    """
    waiting = np.flatnonzero(waiting_rows(table).combine_chunks().to_numpy(zero_copy_only=False))
    named = pc.fill_null(table.column("first_row"), -1).to_numpy()[waiting]
    first = np.where(named < 0, start + waiting, named)
    known = mapped_array(log, "<i8")
    places = np.searchsorted(known, first)
    began = places < len(known)
    began[began] = known[places[began]] == first[began]
    # If the first row with a sentence came with a translation, the first other row that waits for one
    # represents the sentence.
    _, leaders, group = np.unique(first[~began], return_index=True, return_inverse=True)
    numbers = np.full(table.num_rows, -1, np.int64)
    numbers[waiting[began]] = places[began]
    numbers[waiting[~began]] = len(known) + np.argsort(np.argsort(leaders))[group]
    return numbers, waiting[~began][np.sort(leaders)]


def _limit(target: DistinctSentences, limit: int, shards: int, rows: RowCounts) -> list[ShardRecord]:
    """Keep the sentences with the smallest keys, with new numbers. Returns the new places."""
    keys = mapped_array(target.keys, "<u8").reshape(-1, 2)
    smallest = Smallest(limit)
    for begin in range(0, len(keys), _BLOCK):
        high, low = np.ascontiguousarray(keys[begin : begin + _BLOCK].T)
        smallest.add(pa.table({"key": high, "low": low, "number": np.arange(begin, begin + len(high))}))
    order = [(name, "ascending") for name in ("key", "low", "number")]
    kept = np.sort(smallest.rows().sort_by(order)["number"].to_numpy()[:limit])
    for values, path in ((keys, target.keys), (target.first_rows, target.path / "first_rows.bin")):
        with path.with_suffix(".kept").open("wb") as file:
            for begin in range(0, limit, _BLOCK):
                values[kept[begin : begin + _BLOCK]].tofile(file)
        path.with_suffix(".kept").replace(path)
    records = []
    for path in (target.places / shard_name(index) for index in range(shards)):
        before = pc.fill_null(read_parquet(path)["sentence"], -1).to_numpy()
        number = np.minimum(np.searchsorted(kept, before), limit - 1)
        lost = (before >= 0) & (kept[number] != before)
        rows.waiting -= int(lost.sum())
        rows.failed += int(lost.sum())
        failed = pc.if_else(pa.array(lost), NOT_CHOSEN, pa.scalar(None, pa.string()))
        places = pa.array(number, mask=lost | (before < 0))
        records.append(write_shard(pa.table([places, failed], schema=_LIMITED_PLACES), path))
    return records


# Sentences that are kept for measuring how long translation takes.
KEPT = 50_000


@dataclass(frozen=True)
class Population:
    """Distinct sentences that wait for a translation.

    rows: rows of the corpus. sentences: distinct sentences in rows that wait for a translation.
    text_bytes: UTF-8 bytes of the distinct sentences.
    sample: some of them in random order.
    """

    rows: int
    sentences: int
    text_bytes: int
    sample: list[str]


def survey(corpus: ShardDirectory, kept: int = KEPT, maximum: int | None = None) -> Population:
    """Count the distinct sentences of a corpus and keep a sample of them, in one pass.

    Memory does not grow with the corpus. The same sentences give the same sample, however they are divided
    into shards.

    corpus: shards with the columns that ingest writes. kept: sentences to keep.
    maximum: most sentences to translate. If the corpus has more, ``text_bytes`` is an estimate.
    """
    kept = min(kept, maximum or kept)
    smallest = Smallest(kept)
    sentences = text_bytes = start = 0
    columns = ["source_text", *waiting_columns(corpus.schema)]
    with (
        temporary_directory() as place,
        (place / "first_rows.bin").open("wb") as log,
        progress(total=corpus.total_rows, unit="rows", description="sentences") as bar,
    ):
        for table in corpus.tables(columns):
            _, rows = _number_rows(table, start, place / "first_rows.bin")
            (rows + start).astype("<i8").tofile(log)
            log.flush()
            own = table.select(["source_text"]).take(pa.array(rows))
            sentences += own.num_rows
            text_bytes += pc.sum(pc.binary_length(own["source_text"])).as_py() or 0
            smallest.add(own.append_column("key", pa.array(text_keys(own["source_text"])[:, 0])))
            start += table.num_rows
            bar.update(table.num_rows)
    sample = smallest.rows().sort_by("key").slice(0, kept)["source_text"].to_pylist()
    left = min(sentences, maximum or sentences)
    return Population(corpus.total_rows, left, round(text_bytes * left / max(1, sentences)), sample)


def blocks(population: Population, size: int) -> Iterator[list[str]]:
    """Yield samples of ``size`` sentences without end. A sentence only repeats once all have been used."""
    sentences = cycle(population.sample)
    while block := list(islice(sentences, size)):
        yield block
