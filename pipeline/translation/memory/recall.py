"""Looking up: which sentences of a corpus the memory knows, and where it has them; out of core."""

import contextlib
import logging
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from paraforge.base.errors import InputError
from paraforge.base.files import remove_directory, sha256_file
from paraforge.base.interrupts import check_interrupt
from paraforge.base.shards.groups import GroupRanker, Keys
from paraforge.base.shards.pool import in_threads
from paraforge.translation.memory.distinct import mapped_array
from paraforge.translation.memory.memory import Segment

logger = logging.getLogger(__name__)

_BLOCK = 1 << 20
# Bits of a key that say where its mark is: at most 2^30 marks of a byte, for 268 million sentences and more.
_MOST_BITS = 30


@dataclass(frozen=True)
class Recalled:
    """Where the memory has the sentences of a corpus.

    segments: in the order in which their rows are numbered.
    bases: number of the first row of each segment, and of all rows.
    places: of each sentence the number of its first row in the segments; for a sentence whose translation has
        failed the number of all rows is added; -1 where it is unknown.
    unknown: numbers of the sentences to be translated, rising; of several with one text the first.
    """

    segments: list[Segment]
    bases: NDArray[np.int64]
    places: NDArray[np.int64]
    unknown: NDArray[np.int64]

    @property
    def rows(self) -> int:
        """Rows of all segments."""
        return int(self.bases[-1])

    @property
    def failed(self) -> int:
        """Sentences whose translation has failed."""
        return sum(int((block >= self.rows).sum()) for block in self.blocks())

    def needed(self) -> list[Segment]:
        """The segments that have a sentence of the corpus."""
        found: set[int] = set()
        for block in self.blocks():
            rows = np.unique(block[block >= 0] % max(1, self.rows))
            found.update(np.unique(np.searchsorted(self.bases, rows, "right") - 1).tolist())
        return [self.segments[number] for number in sorted(found)]

    def made_by(self, run: str) -> int:
        """Sentences whose segment this run made."""
        mine = np.array([segment.run == run for segment in self.segments], bool)
        if not mine.any():
            return 0
        return sum(
            int(mine[np.searchsorted(self.bases, block[block >= 0] % self.rows, "right") - 1].sum())
            for block in self.blocks()
        )

    def blocks(self, size: int = _BLOCK) -> Iterator[NDArray[np.int64]]:
        """``places`` in blocks of ``size`` sentences."""
        for begin in range(0, len(self.places), size):
            yield np.asarray(self.places[begin : begin + size])


def recall(
    keys: NDArray[np.uint64],
    segments: Sequence[Segment],
    failures: Collection[str],
    directory: Path,
    threads: int = 1,
) -> Recalled:
    """Look every sentence up; of several segments that know it the first counts.

    Memory does not grow with what is known, and with the corpus by four to eight bytes per sentence. Only
    segments that are needed are read as a whole. A damaged one is renamed, with a warning: its sentences are
    unknown.

    keys: n x 2, of the sentences; may be mapped. segments: what is known.
    failures: SHA-256 of segments whose failed sentences count as known, if nothing else knows them.
    directory: for files of the look-up, removed in the end, and for the result.
    threads: that read segments; they change nothing.
    """
    segments = list(segments)
    while True:
        found, damaged = _recall(keys, segments, failures, directory, threads)
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


def _recall(
    keys: NDArray[np.uint64],
    segments: list[Segment],
    failures: Collection[str],
    directory: Path,
    threads: int,
) -> tuple[Recalled, list[Segment]]:
    bases = np.cumsum([0, *(segment.rows for segment in segments)])
    rows = int(bases[-1])
    marks = _marks(keys)
    remove_directory(directory)
    ranker = GroupRanker(directory / "keys")
    damaged, late = [], []
    found = in_threads(partial(_entries, marks), segments, threads)
    for segment, base, entries in zip(segments, bases[:-1].tolist(), found, strict=True):
        if entries is None:
            damaged.append(segment)
            continue
        heads, known, failed = entries
        ranker.add(known[~failed], base + heads[~failed])
        if segment.sha256 in failures and failed.any():
            late.append((known[failed], rows + base + heads[failed]))
    for known, numbers in late:
        ranker.add(known, numbers)
    del marks, found
    for begin in range(0, len(keys), _BLOCK):
        check_interrupt()
        block = np.asarray(keys[begin : begin + _BLOCK], np.uint64)
        ranker.add(block, 2 * rows + np.arange(begin, begin + len(block)))
    ranker.finish()
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "places.bin").open("wb") as places, (directory / "unknown.bin").open("wb") as unknown:
        for begin in range(0, len(keys), _BLOCK):
            numbers = np.arange(begin, min(begin + _BLOCK, len(keys)))
            _, first = ranker.ranks(2 * rows + begin, 2 * rows + begin + len(numbers))
            numbers[first == 2 * rows + numbers].astype("<i8").tofile(unknown)
            np.where(first < 2 * rows, first, -1).astype("<i8").tofile(places)
    ranker.remove()
    mapped = (mapped_array(directory / f"{name}.bin", "<i8") for name in ("places", "unknown"))
    return Recalled(segments, bases, *mapped), damaged


def _entries(
    marks: NDArray[np.bool_], segment: Segment
) -> tuple[NDArray[np.int64], Keys, NDArray[np.bool_]] | None:
    """What a segment's :meth:`Segment.keys` are, of marked ones; None where it is damaged."""
    try:
        heads, known, failed = segment.keys()
    except InputError:
        return None
    here = marks[known[:, 1] & np.uint64(len(marks) - 1)]
    return heads[here], known[here], failed[here]


def _marks(keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """A mark for each key: what of the memory has none is no sentence of this corpus."""
    bits = min(_MOST_BITS, max(16, (4 * len(keys)).bit_length()))
    marks = np.zeros(1 << bits, np.bool_)
    for begin in range(0, len(keys), _BLOCK):
        marks[keys[begin : begin + _BLOCK, 1] & np.uint64(len(marks) - 1)] = True
    return marks


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
