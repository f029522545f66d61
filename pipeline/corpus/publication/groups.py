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
from paraforge.base.shards.lineage import LINEAGE, Smallest, sampling_keys
from paraforge.base.shards.pool import in_order
from paraforge.base.shards.schema import FATE_COLUMNS, TEXT_COLUMNS
from paraforge.base.shards.store import ShardView
from paraforge.corpus.publication.manifest import TRAIN
from paraforge.corpus.publication.parameters import PublishParameters
from paraforge.corpus.scorer import inside
from paraforge.corpus.selection.fate import kept_mask
from paraforge.corpus.selection.filters import numbers
from paraforge.corpus.selection.filters.whole_corpus import sentence_keys

logger = logging.getLogger(__name__)

GROUP = "group"
_SCORE = "paraphrase_score"
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
        if self.clusters is None or not len(self.drawn):
            return np.zeros(stop - first, np.uint8)
        clusters = self.clusters[first:stop]
        place = np.searchsorted(self.drawn, clusters).clip(max=len(self.drawn) - 1)
        return np.where(self.drawn[place] == clusters, self.splits[place], np.uint8(0))


def find_grouping(view: ShardView, parameters: PublishParameters, directory: Path, workers: int) -> Grouping:
    """Group the kept pairs, and draw the splits.

    Pairs that share a sentence on either side form a group, but the translation of a pair whose paraphrase
    score is below ``parameters.group_score`` does not count. Case, punctuation and spaces are ignored. No two
    splits share a sentence on any side, whatever its score, nor a foreign sentence. Memory grows only with
    the splits.

    view: texts, lineage and fate of each pair. directory: a new or empty one for temporary files.

    Raises InputError if the splits ask for more pairs than there are. Warns if a split cannot be filled
    because too many pairs belong together.
    """

    def each(what: Callable[[int], Any]) -> Iterator[Any]:
        return in_order(what, len(view), workers)

    kept = each(lambda shard: kept_rows(view, shard, ()).num_rows)
    starts = [0, *accumulate(kept)]
    total, names = starts[-1], (TRAIN, *parameters.splits)
    if parameters.splits and sum(parameters.splits.values()) >= total:
        listed = ", ".join(f"{name} {number:,}" for name, number in parameters.splits.items())
        raise InputError(
            f"publish.splits asks for {listed}, but only {total:,} pairs were kept",
            view.directories[-1].path,
            remedy="Make the splits smaller, or select more pairs.",
        )

    def connected(
        what: str, columns: Sequence[str], score: float | None = None, sizes: Path | None = None
    ) -> Rows:
        read = [*columns, *([] if score is None else present(view, [_SCORE]))]
        keys = each(lambda shard: joining_keys(kept_rows(view, shard, read), columns, score))
        ranking, output = directory / f"{what}.keys", directory / what
        clusters, largest = find_clusters(
            keys, total, len(columns), ranking, output, f"publish: {what}", sizes
        )
        logger.info(
            "%s %s of %s pairs; the largest has %s", f"{clusters:,}", what, f"{total:,}", f"{largest:,}"
        )
        return read_clusters(output, total)

    groups = None
    if parameters.group_score is not None:
        groups = connected("groups", TEXT_COLUMNS, parameters.group_score)
    if not parameters.splits:
        return Grouping(starts, groups)
    shared = present(view, ["source_text", "original", "translation_source_text"])
    sizes = directory / "sizes"
    clusters = connected("clusters", [*TEXT_COLUMNS, *shared], sizes=sizes)
    lineage = present(view, LINEAGE)
    drawn = draw_splits(
        read_clusters(sizes, total),
        lambda: each(lambda shard: sampling_keys(kept_rows(view, shard, lineage), parameters.seed)),
        parameters.splits,
    )
    return Grouping(starts, groups, clusters, *drawn, names)


def draw_splits(
    sizes: Rows, keys: Callable[[], Iterable[NDArray[np.uint64]]], sizes_of_splits: Mapping[str, int]
) -> tuple[Rows, NDArray[np.uint8]]:
    """Draw whole clusters into splits; memory grows only with the splits.

    sizes: for each row, the rows of its cluster if it is the first of them, otherwise 0.
    keys: returns a pseudo-random number for each row, block by block. Clusters are drawn by the number of
        their first row.
    sizes_of_splits: rows of each split, filled in this order.

    Returns the first rows of the drawn clusters, ascending, and the number of each one's split, from 1.
    """
    most = {name: max(1, rows // _LARGEST) for name, rows in sizes_of_splits.items()}
    candidates = 2 * sum(sizes_of_splits.values()) + 1000
    chosen: dict[int, int] = {}
    left, last = dict(sizes_of_splits), -1
    while any(left.values()):
        # A cluster that did not fit never will, so the next pass begins after the last one's keys.
        largest = max(min(left[name], most[name]) for name in left)
        smallest, start = Smallest(candidates), 0
        for some in keys():
            block = np.asarray(sizes[start : start + len(some)])
            fitting = np.flatnonzero((block > 0) & (block <= largest) & (some > last))
            columns = {"key": some[fitting], "cluster": start + fitting, "size": block[fitting]}
            smallest.add(pa.table(columns))
            start += len(some)
        found = smallest.rows().sort_by([("key", "ascending"), ("cluster", "ascending")])
        for cluster, size in zip(found["cluster"].to_pylist(), found["size"].to_pylist(), strict=True):
            for number, name in enumerate(left, 1):
                if size <= min(left[name], most[name]):
                    chosen[cluster] = number
                    left[name] -= size
                    break
        if found.num_rows < candidates:
            break
        last = found["key"][-1].as_py()
    for name, missing in left.items():
        if missing:
            logger.warning(
                "split %s has %s of %s pairs: the remaining groups have more pairs than fit",
                name,
                f"{sizes_of_splits[name] - missing:,}",
                f"{sizes_of_splits[name]:,}",
            )
    drawn = np.array(sorted(chosen), np.int64)
    return drawn, np.array([chosen[cluster] for cluster in drawn.tolist()], np.uint8)


def present(view: ShardView, names: Iterable[str]) -> list[str]:
    """Return the names that are columns of the corpus."""
    return [name for name in names if name in view.column_names]


def kept_rows(view: ShardView, shard: int, columns: Sequence[str]) -> pa.Table:
    """Return columns, and those of their fate, of the kept pairs of a shard."""
    rows = view.read(shard, [*columns, *present(view, FATE_COLUMNS)])
    return rows.filter(pa.array(kept_mask(rows)))


def joining_keys(rows: pa.Table, columns: Sequence[str], score: float | None) -> NDArray[np.uint64]:
    """Return the keys that connect rows into groups, (rows, columns, 2); 0, 0 for no text, and for all but
    the first column of a row whose paraphrase score is below ``score``."""
    keys = sentence_keys([rows[name] for name in columns])
    if score is not None and _SCORE in rows.column_names:
        values, missing = numbers(rows[_SCORE])
        good = inside(values, score) & ~missing
        keys[~good, 1:] = 0
    return keys
