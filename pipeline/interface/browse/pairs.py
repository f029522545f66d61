"""The pairs that are shown: drawn by what becomes of them, read from the files, found by their text."""

# ruff: noqa: S608 - names and paths are quoted, the text is a parameter
from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from paraforge.base.shards.pool import in_order
from paraforge.base.shards.resources import available_cores
from paraforge.interface.browse.counting import Count, Counter, Look
from paraforge.interface.browse.prepared import PreparedCorpus
from paraforge.interface.browse.rules import KEPT, Rules
from paraforge.interface.query.database import fetch, identifier, rows_of

if TYPE_CHECKING:
    import duckdb

TEXTS = ("reference", "translation", "source_text")
_SEARCHES = 4
Rows = npt.NDArray[np.int64]


def drawn_rows(
    counter: Counter, rules: Rules, look: Look, count: Count, ranks: Sequence[int], wanted: int, seed: int
) -> Rows:
    """Rows drawn uniformly and without replacement from the pairs that have one of the ranks.

    counter, rules, look, count: the count that they were counted in.
    ranks: by place; the last is that of kept pairs. wanted: how many; all where there are fewer.
    seed: of the draw.
    """
    of_block = count.ranks[:, list(ranks)].sum(axis=1)
    ends = np.cumsum(of_block)
    total = int(ends[-1]) if len(ends) else 0
    places = np.random.default_rng(seed).choice(total, min(wanted, total), replace=False)
    values = [KEPT if rank == len(rules.reasons) else rank for rank in ranks]
    found = []
    for block in np.unique(np.searchsorted(ends, places, side="right")).tolist():
        begin = ends[block] - of_block[block]
        here = places[(places >= begin) & (places < ends[block])] - begin
        start, judged, _ = counter.judged(rules, look, block)
        found.append(start + np.flatnonzero(np.isin(judged, values))[here])
    rows = np.concatenate(found) if found else np.zeros(0, np.int64)
    return np.random.default_rng(seed).permutation(rows)


def nearest_rows(counter: Counter, rules: Rules, look: Look, score: int, wanted: int) -> tuple[Rows, Rows]:
    """Kept pairs nearest to being rejected for a score; pairs rejected for it alone nearest to being kept.

    A bound that rejects nobody does not count; without any that does, the lowest scores are the nearest.
    """
    least, most = counter.corpus.ranges[counter.corpus.layout.scores[score]]
    bounds = [(float(test.low), float(test.high)) for test in rules.tests if test.score == score]
    low = max([low for low, _ in bounds if low > least], default=-np.inf)
    high = min([high for _, high in bounds if high < most], default=np.inf)
    if not (np.isfinite(low) or np.isfinite(high)):
        low = least

    def block(index: int) -> list[tuple[npt.NDArray[np.float64], Rows]]:
        start, ranks, only = counter.judged(rules, look, index)
        values = counter.corpus.scores[score, start : start + len(ranks)].astype(np.float64)
        distance = np.fmin(np.abs(values - low), np.abs(values - high))
        found = []
        for chosen in (ranks == KEPT, (only == score) & (ranks > 0)):
            rows = np.flatnonzero(chosen & np.isfinite(distance))
            rows = rows[_smallest(distance[rows], wanted)]
            found.append((distance[rows], start + rows))
        return found

    nearest = [(np.zeros(0), np.zeros(0, np.int64)) for _ in range(2)]
    for parts in in_order(block, counter.blocks, available_cores()):
        for place, (distance, rows) in enumerate(parts):
            distances = np.concatenate([nearest[place][0], distance])
            order = np.argsort(distances, kind="stable")[:wanted]
            nearest[place] = (distances[order], np.concatenate([nearest[place][1], rows])[order])
    return nearest[0][1], nearest[1][1]


def _smallest(values: npt.NDArray[np.float64], wanted: int) -> npt.NDArray[np.intp]:
    """Places of the smallest values, rising; of equal ones the first."""
    if len(values) > wanted:
        limit = np.partition(values, wanted - 1)[wanted - 1]
        places = np.flatnonzero(values <= limit)
        return places[np.argsort(values[places], kind="stable")[:wanted]]
    return np.argsort(values, kind="stable")


class PairReader:
    """Reads and searches the text of pairs by a locked database; used by several threads."""

    def __init__(self, corpus: PreparedCorpus, connection: duckdb.DuckDBPyConnection) -> None:
        self.corpus = corpus
        self.connection = connection
        self._lock = Lock()
        self._found: dict[str, npt.NDArray[np.bool_]] = {}

    def read(self, rows: Rows) -> list[dict[str, Any]]:
        """All columns of the given rows, in their order."""
        files = np.searchsorted(self.corpus.ends, rows, side="right")
        found: dict[int, dict[str, Any]] = {}
        for file in np.unique(files).tolist():
            _, path = self.corpus.files[file]
            begin = int(self.corpus.ends[file - 1]) if file else 0
            numbers = ", ".join(str(row - begin) for row in rows[files == file].tolist())
            table = fetch(
                self.connection.cursor(),
                f"SELECT * FROM {rows_of([path], 'file_row_number = true')} "
                f"WHERE file_row_number IN ({numbers})",
            )
            found |= {begin + pair["file_row_number"]: pair for pair in table.to_pylist()}
        return [found[row] for row in rows.tolist()]

    def search(self, text: str) -> npt.NDArray[np.bool_]:
        """For each pair, whether a side has the text, whatever its case; the last few answers are kept."""
        with self._lock:
            if text not in self._found:
                found = np.zeros(self.corpus.pairs, bool)
                for rows in in_order(
                    lambda file: self._search_file(file, text), len(self.corpus.files), available_cores()
                ):
                    found[rows] = True
                while len(self._found) >= _SEARCHES:
                    del self._found[next(iter(self._found))]
                self._found[text] = found
            return self._found[text]

    def _search_file(self, file: int, text: str) -> Rows:
        dataset, path = self.corpus.files[file]
        begin = int(self.corpus.ends[file - 1]) if file else 0
        columns = [name for name in TEXTS if name in dataset.schema.names]
        condition = " OR ".join(f"contains(lower({identifier(name)}), lower(?))" for name in columns)
        numbered = rows_of([path], "file_row_number = true")
        sql = f"SELECT file_row_number FROM {numbered} WHERE {condition}"
        found = fetch(self.connection.cursor(), sql, [text] * len(columns))
        return begin + found["file_row_number"].to_numpy()
