"""Looking up: which sentences of a corpus the memory knows, and where it has them; in partitions
of the keys, which all processes share."""

import contextlib
import logging
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paraforge.base.errors import InputError
from paraforge.base.files import atomic_path, remove_directory, sha256_file
from paraforge.base.interrupts import check_interrupt
from paraforge.base.shards.resources import Resources, job_memory
from paraforge.base.shards.scheduler import open_jobs
from paraforge.translation.memory.distinct import mapped_array
from paraforge.translation.memory.memory import Segment

logger = logging.getLogger(__name__)

_BLOCK = 1 << 20
# Bits of a key that say where its mark is: at most 2^30 marks of a byte, for 268 million sentences and more.
_MOST_BITS = 30
# Of a key in a partition while it is looked up: number and halves, sorted and not, with their groups.
_BYTES = 128

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Recalled:
    """Where the memory has the sentences of a corpus.

    segments: in the order in which their rows are numbered.
    bases: number of the first row of each segment, and of all rows.
    places: of each sentence the number of its first row in the segments; for a sentence whose translation has
        failed the number of all rows is added; -1 where it is unknown.
    unknown: numbers of the sentences to be translated, rising; of several with one text the first.
    sentences: of the corpus in each segment. failed: of them, those whose translation has failed.
    """

    segments: list[Segment]
    bases: Numbers
    places: Numbers
    unknown: Numbers
    sentences: Numbers
    failed: int

    @property
    def rows(self) -> int:
        """Rows of all segments."""
        return int(self.bases[-1])

    def needed(self) -> list[Segment]:
        """The segments that have a sentence of the corpus."""
        return [self.segments[number] for number in np.flatnonzero(self.sentences)]

    def made_by(self, run: str) -> int:
        """Sentences whose segment this run made."""
        return sum(
            count
            for segment, count in zip(self.segments, self.sentences.tolist(), strict=True)
            if segment.run == run
        )

    def blocks(self, size: int = _BLOCK) -> Iterator[Numbers]:
        """``places`` in blocks of ``size`` sentences."""
        for begin in range(0, len(self.places), size):
            yield np.asarray(self.places[begin : begin + size])


def recall(
    keys: Path,
    segments: Sequence[Segment],
    failures: Collection[str],
    directory: Path,
    resources: Resources,
) -> Recalled:
    """Look every sentence up; of several segments that know it the first counts.

    A job has a part of the segments or of the sentences and spreads its keys over partitions; one looks up a
    partition; one puts a part of the sentences in order again. Memory does not grow with what is known or
    with the corpus, but for a mark of four to eight bytes per sentence and at most 1 GiB. Only segments that
    are needed are read as a whole. A damaged one is renamed, with a warning: its sentences are unknown.

    keys: file of the keys of the sentences, as ``keys.bin`` of ``DistinctSentences``.
    segments: what is known.
    failures: SHA-256 of segments whose failed sentences count as known, if nothing else knows them.
    directory: for files of the look-up, removed in the end, and for the result.
    resources: where to run.
    """
    segments = list(segments)
    while True:
        found, damaged = _recall(keys, segments, failures, directory, resources)
        if not damaged:
            damaged = _damaged(found)
        if not damaged:
            return found
        for segment in damaged:
            logger.warning(
                "%s is damaged: what its %d sentences are translated to is not known any more",
                segment.path,
                segment.sentences,
            )
            with contextlib.suppress(OSError):
                segment.path.rename(segment.path.with_suffix(".damaged"))
        segments = [segment for segment in segments if segment not in damaged]


@dataclass(frozen=True)
class _LookUp:
    """What the jobs of a look-up have in common.

    keys: as :func:`recall` gets them. count: of the sentences. rows: of all segments.
    partitions: of the keys. block: sentences of a part. directory: for files between jobs.

    A key's number is that of its row in the segments, plus ``rows`` where it failed; a sentence's is its own
    plus twice ``rows``. So the smallest number with a key says where it is known.
    """

    keys: Path
    count: int
    rows: int
    partitions: int
    block: int
    directory: Path

    def parts(self) -> list[tuple[int, int]]:
        """First and last sentence (exclusive) of each part."""
        return [(begin, min(begin + self.block, self.count)) for begin in range(0, self.count, self.block)]


def _recall(
    keys: Path,
    segments: list[Segment],
    failures: Collection[str],
    directory: Path,
    resources: Resources,
) -> tuple[Recalled, list[Segment]]:
    bases = np.cumsum([0, *(segment.rows for segment in segments)])
    remove_directory(directory)
    (directory / "partitions").mkdir(parents=True)
    count = keys.stat().st_size // 16
    total = count + sum(segment.sentences for segment in segments)
    wanted = max(total * _BYTES // job_memory(resources), min(resources.worker_count(), total // _BLOCK))
    partitions = 1 << max(0, wanted - 1).bit_length()
    look_up = _LookUp(keys, count, int(bases[-1]), partitions, _BLOCK, directory / "partitions")
    _write_marks(keys, look_up.directory / "marks.bin")
    groups = np.split(np.arange(len(segments)), np.flatnonzero(np.diff(bases[1:] // _BLOCK)) + 1)
    given = [
        [(segments[i], int(bases[i]), segments[i].sha256 in failures) for i in group] for group in groups
    ]
    pieces = [*((group, None) for group in given), *(([], part) for part in look_up.parts())]
    spread = [(look_up, number, *piece) for number, piece in enumerate(pieces)]
    # Processes take seconds to start.
    with open_jobs(resources, total, jobs=None if total > 4 * _BLOCK else 1) as jobs:
        damaged = set().union(*jobs.results(_spread, spread, description="look up: spread"))
        sorting = [(look_up, number, len(spread)) for number in range(look_up.partitions)]
        jobs.results(_sort, sorting, description="look up: find")
        placing = [(look_up, part, bases) for part in look_up.parts()]
        placed = jobs.results(_place, placing, description="look up: place")
    for name in ("places", "unknown"):
        with (directory / f"{name}.bin").open("wb") as whole:
            for begin, _ in look_up.parts():
                np.load(look_up.directory / f"{name}-{begin}.npy").astype("<i8").tofile(whole)
    remove_directory(look_up.directory)
    places, unknown = (mapped_array(directory / f"{name}.bin", "<i8") for name in ("places", "unknown"))
    sentences = sum((counts for counts, _ in placed), np.zeros(len(segments), np.int64))
    failed = sum(failed for _, failed in placed)
    recalled = Recalled(segments, bases, places, unknown, sentences, failed)
    return recalled, [segment for segment in segments if segment.path in damaged]


def _spread(
    look_up: _LookUp, number: int, segments: list[tuple[Segment, int, bool]], part: tuple[int, int] | None
) -> list[Path]:
    """Write the keys of some segments, as far as they are marked, and of a part of the sentences, by
    partition. Gives the segments that are damaged.

    segments: with the number of the first row, and whether failed sentences count.
    """
    found, numbers, damaged = [np.empty((0, 2), np.uint64)], [np.empty(0, np.int64)], []
    marks = mapped_array(look_up.directory / "marks.bin", "?")
    for segment, base, failures in segments:
        try:
            heads, known, failed = segment.keys()
        except InputError:
            damaged.append(segment.path)
            continue
        here = marks[known[:, 1] & np.uint64(len(marks) - 1)]
        here &= ~failed if not failures else True
        found.append(known[here])
        numbers.append((base + heads + look_up.rows * failed)[here])
    if part is not None:
        found.append(_keys(look_up.keys)[part[0] : part[1]])
        numbers.append(2 * look_up.rows + np.arange(*part))
    keys, rows = np.concatenate(found), np.concatenate(numbers)
    partition = _partition(keys[:, 0], look_up.partitions)
    order = np.argsort(partition, kind="stable")
    cuts = np.searchsorted(partition[order], np.arange(look_up.partitions + 1))
    table = np.stack([keys[order, 0], keys[order, 1], rows[order].view(np.uint64)])
    _save(look_up, f"spread-{number}", table)
    _save(look_up, f"spread-{number}-cuts", cuts)
    return damaged


def _partition(high: NDArray[np.uint64], partitions: int) -> NDArray[np.uint16]:
    return (high >> np.uint64(48)).astype(np.uint16) >> np.uint16(16 - partitions.bit_length() + 1)


def _slices(directory: Path, stem: str, count: int, number: int) -> NDArray[np.uint64]:
    """What each of ``count`` jobs has left for the job with this number."""
    found = []
    for name in (f"{stem}-{job}" for job in range(count)):
        begin, end = np.load(directory / f"{name}-cuts.npy", mmap_mode="r")[number : number + 2]
        found.append(np.load(directory / f"{name}.npy", mmap_mode="r")[:, begin:end])
    return np.concatenate(found, axis=1)


def _sort(look_up: _LookUp, number: int, count: int) -> None:
    """Find the smallest number with the key of each sentence of a partition, and write both by part."""
    high, low, rows = _slices(look_up.directory, "spread", count, number)
    order = np.argsort(high)
    is_first = np.diff(high[order], prepend=~high[order[:1]]) != 0
    if (low[order] != low[order][is_first][np.cumsum(is_first) - 1]).any():  # equal halves of other keys
        order = np.lexsort((low, high))
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = (np.diff(high[order]) != 0) | (np.diff(low[order]) != 0)
    rows = rows[order].view(np.int64)
    least = rows
    if len(rows):
        least = np.minimum.reduceat(rows, np.flatnonzero(is_first))[np.cumsum(is_first) - 1]
    mine = rows >= 2 * look_up.rows
    sentences, least = rows[mine] - 2 * look_up.rows, least[mine]
    order = np.argsort(sentences)
    cuts = np.searchsorted(sentences[order], np.arange(0, look_up.count + look_up.block, look_up.block))
    table = np.stack([sentences[order], least[order]])
    _save(look_up, f"found-{number}", table)
    _save(look_up, f"found-{number}-cuts", cuts)


def _place(look_up: _LookUp, part: tuple[int, int], bases: Numbers) -> tuple[Numbers, int]:
    """Write where a part of the sentences is known, and which of them are unknown. Gives how many are in each
    segment, and how many have failed."""
    begin, end = part
    sentences, least = _slices(look_up.directory, "found", look_up.partitions, begin // look_up.block)
    first = np.empty(end - begin, np.int64)
    first[sentences - begin] = least
    numbers = np.arange(begin, end)
    _save(look_up, f"unknown-{begin}", numbers[first == 2 * look_up.rows + numbers])
    places = np.where(first < 2 * look_up.rows, first, -1)
    _save(look_up, f"places-{begin}", places)
    rows = places[places >= 0]
    segments = np.searchsorted(bases, rows % max(1, look_up.rows), "right") - 1
    return np.bincount(segments, minlength=len(bases) - 1), int((rows >= look_up.rows).sum())


def _save(look_up: _LookUp, name: str, values: NDArray[Any]) -> None:
    # A worker that was given up may still write what another has written.
    with atomic_path(look_up.directory / f"{name}.npy") as path, path.open("wb") as file:
        np.save(file, values)


def _keys(path: Path) -> NDArray[np.uint64]:
    return mapped_array(path, "<u8").reshape(-1, 2)


def _write_marks(keys: Path, path: Path) -> None:
    """A mark for each key: what of the memory has none is no sentence of this corpus."""
    given = _keys(keys)
    bits = min(_MOST_BITS, max(16, (4 * len(given)).bit_length()))
    marks = np.zeros(1 << bits, np.bool_)
    for begin in range(0, len(given), _BLOCK):
        check_interrupt()
        marks[given[begin : begin + _BLOCK, 1] & np.uint64(len(marks) - 1)] = True
    marks.tofile(path)


def _damaged(found: Recalled) -> list[Segment]:
    """Segments that are needed and do not have the bytes that they were entered with."""
    segments = found.needed()
    # hashlib releases the interpreter lock, so threads read several files at once.
    with ThreadPoolExecutor() as pool:
        whole = list(pool.map(_is_whole, segments))
    return [segment for segment, good in zip(segments, whole, strict=True) if not good]


def _is_whole(segment: Segment) -> bool:
    try:
        return sha256_file(segment.path) == segment.sha256
    except OSError:
        return False
