"""Finds clusters of rows that share keys, directly or through other rows, over a whole corpus and out of
core."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from paraforge.base.compiled import compiled
from paraforge.base.errors import reading
from paraforge.base.files import atomic_path, remove_directory
from paraforge.base.progress import progress
from paraforge.base.shards.groups import GroupRanks, Keys, Rows, rank_groups

_BLOCK = 1 << 20


def find_clusters(
    keys: Iterable[NDArray[np.uint64]],
    rows: int,
    links: int,
    ranking: Path,
    output: Path,
    description: str,
    sizes: Path | None = None,
) -> tuple[int, int]:
    """Write the cluster of each row: the number of the first row that it is connected to.

    Memory does not grow with the corpus; on disk it takes about 25 bytes per key while it runs.

    keys: 128-bit keys of blocks of rows, in order: (rows, links, 2), 0, 0 where a row has none.
    rows: rows of all blocks. links: keys per row. ranking: directory for temporary files.
    output: file of int64, a number per row. description: text of the progress display.
    sizes: file of int64 with the rows of the cluster for its first row, and 0 for others; None for no file.

    Returns the number of clusters and the rows of the largest one.
    """

    def linked_rows() -> Iterator[tuple[Keys, Rows]]:
        begin = 0
        with progress(total=rows, unit="pairs", description=description) as shown:
            for block in keys:
                flat = block.reshape(-1, 2)
                linked = np.flatnonzero(flat.any(1))
                yield flat[linked], begin + linked
                begin += len(flat)
                shown.update(len(block))

    rank_groups(linked_rows(), ranking)
    ranks = GroupRanks(ranking)
    with atomic_path(output) as temporary:
        roots = _numbers(temporary, rows)
        for first in range(0, rows, _BLOCK):
            roots[first : first + _BLOCK] = np.arange(first, min(first + _BLOCK, rows))
        for first in range(0, links * rows, _BLOCK):
            stop = min(first + _BLOCK, links * rows)
            earlier = ranks.of(first, stop)[1]
            own = np.arange(first, stop)
            linked = np.flatnonzero(earlier != own)
            connect(roots, own[linked] // links, earlier[linked] // links)
        flatten(roots)
        counted = _numbers(sizes or ranking / "sizes", rows)
        clusters = count(roots, counted)
        del roots, counted
    remove_directory(ranking)
    return clusters


def _numbers(path: Path, rows: int) -> Rows:
    """Map a file of zeros, so that they need not all be in memory."""
    if not rows:
        path.write_bytes(b"")
        return np.zeros(0, np.int64)
    return np.memmap(path, np.int64, "w+", shape=(rows,))


def read_clusters(path: Path, rows: int) -> Rows:
    """Map a file that :func:`find_clusters` wrote."""
    with reading(path):
        return np.memmap(path, np.int64, "r", shape=(rows,)) if rows else np.zeros(0, np.int64)


@compiled
def connect(roots: Rows, first_rows: Rows, second_rows: Rows) -> None:
    """Join pairs of rows; the root of a cluster is its lowest row."""
    for place in range(len(first_rows)):
        first, second = first_rows[place], second_rows[place]
        while roots[first] != first:
            roots[first] = roots[roots[first]]
            first = roots[first]
        while roots[second] != second:
            roots[second] = roots[roots[second]]
            second = roots[second]
        if first < second:
            roots[second] = first
        else:
            roots[first] = second


@compiled
def flatten(roots: Rows) -> None:
    """Point every row to its root; a row's parent never comes after it."""
    for row in range(len(roots)):
        roots[row] = roots[roots[row]]


@compiled
def count(roots: Rows, sizes: Rows) -> tuple[int, int]:
    """Return the number of clusters and the rows of the largest one; ``sizes`` are zeros to count in."""
    clusters, largest = 0, 0
    for row in range(len(roots)):
        sizes[roots[row]] += 1
        clusters += roots[row] == row
        largest = max(largest, sizes[roots[row]])
    return clusters, largest
