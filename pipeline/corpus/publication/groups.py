"""Groups kept pairs that say the same, and draws splits that share no sentence."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paraforge.base.errors import InputError
from paraforge.base.shards.clusters import find_clusters, read_clusters
from paraforge.base.shards.lineage import LINEAGE, sampling_keys
from paraforge.base.shards.pool import in_order
from paraforge.base.shards.schema import FATE_COLUMNS, TEXT_COLUMNS
from paraforge.base.shards.store import ShardView
from paraforge.corpus.publication.manifest import TRAIN
from paraforge.corpus.publication.parameters import PublishParameters
from paraforge.corpus.scorer import inside
from paraforge.corpus.selection.fate import kept_mask
from paraforge.corpus.selection.filters import numbers
from paraforge.corpus.selection.filters.near_duplicates import sentence_keys

logger = logging.getLogger(__name__)

GROUP = "group"
_SCORE = "paraphrase_score"
_BLOCK = 1 << 20
# No cluster takes more than this share of a split; otherwise a few frequent sentences would fill it.
_LARGEST = 20

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Grouping:
    """The groups and splits of the kept pairs.

    starts: for each shard, the number of kept pairs in earlier shards, then their total.
    groups: for each kept pair, the number of the first pair in its group; None without groups.
    clusters: the same for pairs connected by shared sentences; None without splits.
    drawn, splits: first pairs of the held-out clusters, ascending, and the split of each, from 1.
    names: names of the splits; the first is for training.
    """

    starts: list[int]
    groups: Rows | None = None
    clusters: Rows | None = None
    drawn: Rows = field(default_factory=lambda: np.zeros(0, np.int64))
    splits: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))
    names: tuple[str, ...] = (TRAIN,)

    def group(self, shard: int, kept: NDArray[np.bool_]) -> pa.Array:
        """Return the group of each row of a shard, null for rows that were not kept."""
        values = np.zeros(len(kept), np.int64)
        if self.groups is not None:
            values[kept] = self.groups[self.starts[shard] : self.starts[shard + 1]]
        return pa.array(values, pa.int64(), mask=~kept)

    def split(self, shard: int) -> NDArray[np.uint8]:
        """Return the index in ``names`` of each kept pair's split, for one shard."""
        first, stop = self.starts[shard], self.starts[shard + 1]
        found = np.zeros(stop - first, np.uint8)
        if self.clusters is not None and len(self.drawn):
            place, held = _places(self.drawn, self.clusters[first:stop])
            found[held] = self.splits[place[held]]
        return found


def find_grouping(view: ShardView, parameters: PublishParameters, directory: Path, workers: int) -> Grouping:
    """Group the kept pairs, and draw the splits.

    Pairs with the same reference form a group, and so do pairs that share a sentence on either side if both
    have at least ``parameters.group_score``. Case, punctuation and spaces are ignored. No two splits share a
    sentence on any side, whatever its score, nor a foreign sentence. Memory grows only with the splits.

    view: texts, lineage and fate of each pair. directory: a new or empty one for temporary files.

    Raises InputError: the splits ask for more pairs than there are. Warns if a split cannot be filled because
        too many pairs belong together.
    """

    def each(what: Callable[[int], Any]) -> Iterator[Any]:
        return in_order(what, len(view), workers)

    kept = each(lambda shard: _kept(view, shard, ()).num_rows)
    starts = [0, *accumulate(kept)]
    total, names = starts[-1], (TRAIN, *parameters.splits)
    if parameters.splits and sum(parameters.splits.values()) >= total:
        listed = ", ".join(f"{name} {number:,}" for name, number in parameters.splits.items())
        raise InputError(
            f"publish.splits asks for {listed}, and {total:,} pairs were kept",
            view.directories[-1].path,
            remedy="Make the splits smaller, or select more pairs.",
        )

    def connected(what: str, columns: Sequence[str], score: float | None) -> Rows:
        keys = each(lambda shard: _keys(view, shard, columns, score))
        ranking, output = directory / f"{what}.keys", directory / what
        found, largest = find_clusters(keys, total, len(columns), ranking, output, f"publish: {what}")
        logger.info("%s %s of %s pairs; the largest has %s", f"{found:,}", what, f"{total:,}", f"{largest:,}")
        return read_clusters(output, total)

    groups = None
    if parameters.group_score is not None:
        groups = connected("groups", TEXT_COLUMNS, parameters.group_score)
    if not parameters.splits:
        return Grouping(starts, groups)
    shared = _present(view, ["source_text", "original", "translation_source_text"])
    clusters = connected("clusters", [*TEXT_COLUMNS, *shared], None)
    keys = np.memmap(directory / "draws", np.uint64, "w+", shape=(total,))
    lineage = _present(view, LINEAGE)
    drawn = each(lambda shard: sampling_keys(_kept(view, shard, lineage), parameters.seed))
    for first, some in zip(starts, drawn, strict=False):
        keys[first : first + len(some)] = some
    return Grouping(starts, groups, clusters, *draw_splits(clusters, keys, parameters.splits), names)


def draw_splits(
    clusters: Rows, keys: NDArray[np.uint64], wanted: Mapping[str, int]
) -> tuple[Rows, NDArray[np.uint8]]:
    """Draw whole clusters into splits; memory grows only with the splits.

    clusters: for each row, the first row of its cluster.
    keys: a pseudo-random number for each row; clusters are drawn by their first row's number.
    wanted: rows of each split, filled in this order.

    Returns the first rows of the drawn clusters, ascending, and the number of each one's split, from 1.
    """
    candidates = 2 * sum(wanted.values()) + 1000
    while True:
        share = min(1.0, candidates / max(1, len(clusters)))
        firsts = _first_rows(clusters, keys, share)
        chosen, left = _fill(firsts, _sizes(clusters, firsts), keys[firsts], wanted)
        if share == 1 or not any(left.values()):
            break
        candidates *= 8
    for name, missing in left.items():
        if missing:
            logger.warning(
                "split %s has %s of %s pairs: the remaining groups have more pairs than fit",
                name,
                f"{wanted[name] - missing:,}",
                f"{wanted[name]:,}",
            )
    return firsts[chosen > 0], chosen[chosen > 0]


def _first_rows(clusters: Rows, keys: NDArray[np.uint64], share: float) -> Rows:
    """Return the first rows of about this share of the clusters, those with the smallest keys."""
    limit = np.uint64(min(share * 2.0**64, 2.0**64 - 2048))
    found = [np.zeros(0, np.int64)]
    for first in range(0, len(clusters), _BLOCK):
        block = np.asarray(clusters[first : first + _BLOCK])
        rows = np.arange(first, first + len(block))
        chosen = block == rows
        if share < 1:
            chosen &= np.asarray(keys[first : first + len(block)]) <= limit
        found.append(rows[chosen])
    return np.concatenate(found)


def _sizes(clusters: Rows, firsts: Rows) -> Rows:
    """Return the number of rows in each cluster with these first rows."""
    sizes = np.zeros(len(firsts), np.int64)
    for first in range(0, len(clusters), _BLOCK):
        place, held = _places(firsts, clusters[first : first + _BLOCK])
        sizes += np.bincount(place[held], minlength=len(firsts))
    return sizes


def _fill(
    firsts: Rows, sizes: Rows, keys: NDArray[np.uint64], wanted: Mapping[str, int]
) -> tuple[NDArray[np.uint8], dict[str, int]]:
    """Return the split of each cluster, 0 for training, and the rows that each split lacks."""
    chosen = np.zeros(len(firsts), np.uint8)
    left = dict(wanted)
    for place in np.argsort(keys, kind="stable").tolist():
        size = int(sizes[place])
        for number, name in enumerate(left, 1):
            if size <= min(left[name], max(1, wanted[name] // _LARGEST)):
                chosen[place] = number
                left[name] -= size
                break
        if not any(left.values()):
            break
    return chosen, left


def _places(firsts: Rows, clusters: Rows) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return for each row the index of its cluster in the ascending ``firsts``, and whether it is one of
    them."""
    place = np.searchsorted(firsts, clusters).clip(max=max(0, len(firsts) - 1))
    held: NDArray[np.bool_] = firsts[place] == clusters if len(firsts) else np.zeros(len(clusters), bool)
    return place, held


def _present(view: ShardView, names: Iterable[str]) -> list[str]:
    return [name for name in names if name in view.column_names]


def _kept(view: ShardView, shard: int, columns: Sequence[str]) -> pa.Table:
    """Return columns of the kept pairs of a shard."""
    rows = view.read(shard, [*columns, *_present(view, FATE_COLUMNS)])
    return rows.filter(pa.array(kept_mask(rows)))


def _keys(view: ShardView, shard: int, columns: Sequence[str], score: float | None) -> NDArray[np.uint64]:
    """Return :func:`joining_keys` of the kept rows of a shard."""
    scored = [] if score is None else _present(view, [_SCORE])
    return joining_keys(_kept(view, shard, [*columns, *scored]), columns, score)


def joining_keys(rows: pa.Table, columns: Sequence[str], score: float | None) -> NDArray[np.uint64]:
    """Return the keys that connect rows into groups, (rows, columns, 2); 0, 0 for no text, and for all but
    the first column of a row whose paraphrase score is below ``score``."""
    keys = sentence_keys([rows[name] for name in columns])
    if score is not None and _SCORE in rows.column_names:
        values, missing = numbers(rows[_SCORE])
        good = inside(values, score) & ~missing
        keys[~good, 1:] = 0
    return keys
