"""Looks up which sentences of a corpus are in the memory, and where."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from paraforge.base.errors import InputError
from paraforge.base.shards.groups import run_query
from paraforge.translation.memory.distinct import mapped_array
from paraforge.translation.memory.memory import Segment

_BLOCK = 1 << 20
# Bits of a key that select its mark: at most 2^30 marks of one byte, for 268 million sentences and more.
_MOST_BITS = 30
_ENTRIES = pa.schema({"high": pa.uint64(), "low": pa.uint64(), "number": pa.int64()})
# A row of the memory is numbered from 0, plus the number of all rows if its sentence failed; a sentence of
# the corpus is numbered from twice that. So the smallest number with a key says where the sentence is known.
_LEAST = """
    SELECT number, min(number) OVER (PARTITION BY high, low) AS least
    FROM entries
    QUALIFY number >= {first}
    ORDER BY number
"""

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Recalled:
    """Where the memory has the sentences of a corpus.

    segments: the segments, in the order in which their rows are numbered.
    bases: number of the first row of each segment, then of all rows.
    places: for each sentence, the number of its first row in the segments, plus the number of all rows if its
        translation failed; -1 if unknown.
    unknown: ascending numbers of the sentences to translate; the first of several with one text.
    sentences: sentences of the corpus in each segment. failed: how many of these failed.
    """

    segments: list[Segment]
    bases: Numbers
    places: Numbers
    unknown: Numbers
    sentences: Numbers
    failed: int

    @property
    def rows(self) -> int:
        """The number of rows in all segments."""
        return int(self.bases[-1])

    def needed(self) -> list[Segment]:
        """Return the segments that contain a sentence of the corpus."""
        return [self.segments[number] for number in np.flatnonzero(self.sentences)]

    def made_by(self, run: str) -> int:
        """Return the number of sentences in segments that this run made."""
        return sum(
            count
            for segment, count in zip(self.segments, self.sentences.tolist(), strict=True)
            if segment.run == run
        )

    def blocks(self, size: int = _BLOCK) -> Iterator[Numbers]:
        """Yield ``places`` in blocks of ``size`` sentences."""
        for begin in range(0, len(self.places), size):
            yield np.asarray(self.places[begin : begin + size])


def recall(
    keys: Path,
    segments: Sequence[Segment],
    failures: Collection[str],
    directory: Path,
) -> Recalled:
    """Look up every sentence; the first segment that contains it counts.

    DuckDB sorts keys with a limit of 1 GB. Marks of four to eight bytes per sentence, at most 1 GiB, filter
    out sentences that are not in the corpus.

    keys: file of the sentences' keys, ``keys.bin`` of ``DistinctSentences``. segments: the memory's segments.
    failures: digests of segments whose failed sentences count as known if no other segment has them.
    directory: for the result; its content is removed first.

    Raises InputError if a segment is damaged or the disk is full.
    """
    bases = np.cumsum([0, *(segment.rows for segment in segments)])
    rows = int(bases[-1])
    keys_of_corpus = mapped_array(keys, "<u8").reshape(-1, 2)
    marks = _marks(keys_of_corpus)
    problems: list[InputError] = []

    def entries() -> Iterator[pa.RecordBatch]:
        for segment, base in zip(segments, bases.tolist(), strict=False):
            try:
                heads, known, failed = segment.keys()
            except InputError as error:  # DuckDB would rephrase it
                problems.append(error)
                return
            is_known = marks[known[:, 1] & np.uint64(len(marks) - 1)]
            is_known &= segment.digest in failures or ~failed
            yield _batch(known[is_known], (base + heads + rows * failed)[is_known])
        for begin in range(0, len(keys_of_corpus), _BLOCK):
            block = keys_of_corpus[begin : begin + _BLOCK]
            yield _batch(block, 2 * rows + np.arange(begin, begin + len(block)))

    result = run_query(
        _LEAST.format(first=2 * rows),
        {"entries": pa.RecordBatchReader.from_batches(_ENTRIES, entries())},
        directory,
        "the translation memory cannot be searched",
    )
    if problems:
        raise problems[0]
    sentences, failed = np.zeros(len(segments), np.int64), 0
    with (
        pq.ParquetFile(result) as file,
        (directory / "places.bin").open("wb") as places_file,
        (directory / "unknown.bin").open("wb") as unknown_file,
    ):
        for batch in file.iter_batches(_BLOCK):
            number, least = (column.to_numpy() for column in batch.columns)
            places = np.where(least < 2 * rows, least, -1)
            places.astype("<i8").tofile(places_file)
            (number[least == number] - 2 * rows).astype("<i8").tofile(unknown_file)
            known = places[places >= 0]
            found = np.searchsorted(bases, known % rows, "right") - 1
            sentences += np.bincount(found, minlength=len(segments))
            failed += int((known >= rows).sum())
    result.unlink()
    places, unknown = (mapped_array(directory / f"{name}.bin", "<i8") for name in ("places", "unknown"))
    return Recalled(list(segments), bases, places, unknown, sentences, failed)


def _batch(keys: NDArray[np.uint64], numbers: Numbers) -> pa.RecordBatch:
    columns = (keys[:, 0], keys[:, 1], numbers)
    return pa.record_batch([pa.array(np.ascontiguousarray(column)) for column in columns], schema=_ENTRIES)


def _marks(keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return marks of the keys. A key of the memory without a mark does not occur in this corpus."""
    bits = min(_MOST_BITS, max(16, (4 * len(keys)).bit_length()))
    marks = np.zeros(1 << bits, np.bool_)
    for begin in range(0, len(keys), _BLOCK):
        marks[keys[begin : begin + _BLOCK, 1] & np.uint64(len(marks) - 1)] = True
    return marks
