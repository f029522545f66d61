"""The pairs of a published corpus in a temporary DuckDB table: counted, drawn and searched under tests."""

# ruff: noqa: S608 - names are quoted, numbers are our own, the text is a parameter
from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.base.errors import InputError
from paraforge.base.files import unfinished_paths
from paraforge.base.interrupts import check_interrupt
from paraforge.base.progress import progress
from paraforge.corpus.publication.datasets import PUBLISH_AGAIN, Dataset
from paraforge.corpus.scorer import Scale
from paraforge.corpus.scoring.wrong_pairs import RIGHT
from paraforge.corpus.selection.filters import SCORES
from paraforge.corpus.selection.filters.language import LANGUAGES
from paraforge.intake.bitext.block import REASONS
from paraforge.interface.browse.histogram import scale_of
from paraforge.interface.browse.rules import Test
from paraforge.interface.query.database import (
    explained,
    fetch,
    identifier,
    literal,
    open_database,
    rows_at,
    rows_of,
)

if TYPE_CHECKING:
    import duckdb

SAMPLE = 200_000
"""Histograms of larger corpora are drawn from a sample of about so many pairs; counts are exact."""
FAILED = "(failed)"
_MEMORY = "1GB"
_TEXTS = ("reference", "translation", "source_text")
_LINEAGE = {"line", "first_row"}
_SEARCHES = 4
Array = npt.NDArray[Any]


class Pairs:
    """All pairs of a publication, kept and rejected; used by several threads.

    The table ``prepared.pairs`` is in a temporary file. Its columns: ``row``, counted over all files;
    ``fate``, the reason of a rejected pair, :data:`FAILED`, or empty for a kept one; ``source``; 32-bit
    scores, NULL where missing; flags, languages and tenths.

    scales: of each score that is not the same for all pairs. ranges: the least and the greatest of each.
    incomplete: scores that pairs lack which came to selection. flags: those that some pair has.
    sources: names. columns: those of the table.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, datasets: Sequence[Dataset]) -> None:
        """Raises InputError if a file is damaged, or a corpus has no pairs."""
        self.connection = connection
        self.files = [(path, one) for one in datasets for path in one.files]
        self.schema = pa.unify_schemas([one.schema.remove_metadata() for one in datasets])
        types = {field.name: field.type for field in self.schema}
        self._scores = [
            name
            for name, kind in types.items()
            if (pa.types.is_float32(kind) or (pa.types.is_integer(kind) and kind.bit_width <= 32))
            and name in SCORES
            and name not in _LINEAGE
        ]
        flags = [name for name, kind in types.items() if pa.types.is_boolean(kind)]
        kinds = dict.fromkeys(self._scores, "FLOAT") | dict.fromkeys(flags, "BOOLEAN")
        kinds |= {name: "VARCHAR" for name in LANGUAGES if name in types}
        kinds |= {name: "TINYINT" for name in types if name.endswith("_decile")}
        self.columns = list(kinds)
        self.ends = self._fill(datasets, kinds)
        self.sources = [row[0] for row in self.rows("SELECT DISTINCT source FROM prepared.pairs ORDER BY 1")]
        self.integers = {name for name, kind in types.items() if pa.types.is_integer(kind)}
        sides = [f"{side}({identifier(name)})" for side in ("min", "max") for name in self._scores]
        marks = [f"bool_or({identifier(name)})" for name in flags]
        self.total, *found = self.rows(
            f"SELECT {', '.join(['count(*)', *sides, *marks])} FROM prepared.pairs"
        )[0]
        limits = zip(self._scores, found, found[len(self._scores) :], strict=False)
        self.ranges = {name: (low, high) for name, low, high in limits if low is not None and low < high}
        self.flags = [name for name, one in zip(flags, found[2 * len(self._scores) :], strict=True) if one]
        part = f"WHERE hash(row) % {self.total} < {SAMPLE}" if self.total > SAMPLE else ""
        self.rows(f"CREATE TABLE prepared.sample AS SELECT * FROM prepared.pairs {part}")
        self.scales = {name: self._scale(name) for name in self.ranges}
        gaps = [f"bool_or({identifier(name)} IS NULL)" for name in self.scales]
        came = self.rows(
            f"SELECT {', '.join([*gaps, 'true'])} FROM prepared.pairs WHERE NOT {left_out(REASONS)}"
        )
        self.incomplete = {name for name, one in zip(self.scales, came[0], strict=False) if one}
        self._found: dict[str, int] = {}
        self._lock = Lock()

    def _fill(self, datasets: Sequence[Dataset], kinds: Mapping[str, str]) -> npt.NDArray[np.int64]:
        """Read every file; returns the number of rows before each, and of all."""
        listed = ", ".join(f"{identifier(name)} {kind}" for name, kind in kinds.items())
        self.rows(f"CREATE TABLE prepared.pairs (row BIGINT, source VARCHAR, fate VARCHAR, {listed})")
        ends = [0]
        with progress(total=sum(one.rows for one in datasets), unit="pairs", description="read") as bar:
            for dataset in datasets:
                present = set(dataset.schema.names)
                values = [_value(name, kind) if name in present else "NULL" for name, kind in kinds.items()]
                rejected = "coalesce(rejected, '')" if "rejected" in present else "''"
                failed = f"if(failed IS NULL, {rejected}, '{FAILED}')" if "failed" in present else rejected
                wanted = ", ".join(["source", failed, *values])
                listed_files = dataset.manifest.files if dataset.manifest else []
                for path, file in zip(dataset.files, listed_files, strict=True):
                    check_interrupt()
                    rows = self.rows(
                        f"INSERT INTO prepared.pairs SELECT {ends[-1]} + file_row_number, {wanted} "
                        f"FROM {rows_of([path], 'file_row_number = true')}"
                    )[0][0]
                    if rows != file.rows:
                        message = f"damaged: it has {rows:,} rows, the manifest says {file.rows:,}"
                        raise InputError(message, path, remedy=PUBLISH_AGAIN)
                    ends.append(ends[-1] + rows)
                    bar.update(rows)
        return np.array(ends, np.int64)

    def _scale(self, name: str) -> Scale:
        column = identifier(name)
        values = self.arrays(f"SELECT {column} FROM prepared.sample WHERE {column} IS NOT NULL")[name]
        # A score that few pairs have may be missing from the sample.
        values = values if len(values) else np.array(self.ranges[name])
        return scale_of(values, *self.ranges[name], name in self.integers)

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Run a statement; returns its rows."""
        with explained():
            return self.connection.cursor().execute(sql, parameters).fetchall()

    def arrays(self, sql: str) -> dict[str, Array]:
        """Run a query; returns its columns, with NaN for a missing score."""
        with explained():
            found = self.connection.cursor().execute(sql).fetchnumpy()
        return {
            name: np.ma.filled(values, np.nan) if values.dtype.kind == "f" else values
            for name, values in found.items()
        }

    def looked_at(self, sources: Sequence[str], text: str) -> str:
        """Give a condition in SQL for pairs of some sources, all if none is named, with a text in a side.

        Case does not matter. The rows of the last few texts are kept.
        """
        conditions = [f"source IN ({', '.join(map(literal, sources))})"] if sources else []
        if text:
            with self._lock:
                if text not in self._found:
                    self._search(text)
                conditions.append(f"row IN (SELECT row FROM prepared.found_{self._found[text]})")
        return " AND ".join(conditions) or "true"

    def _search(self, text: str) -> None:
        number = max(self._found.values(), default=0) + 1
        self.rows(f"CREATE TABLE prepared.found_{number} (row BIGINT)")
        for begin, (path, dataset) in zip(self.ends[:-1].tolist(), self.files, strict=True):
            columns = [identifier(name) for name in _TEXTS if name in dataset.schema.names]
            condition = " OR ".join(f"contains(lower({column}), lower(?))" for column in columns)
            self.rows(
                f"INSERT INTO prepared.found_{number} SELECT {begin} + file_row_number "
                f"FROM {rows_of([path], 'file_row_number = true')} WHERE {condition}",
                [text] * len(columns),
            )
        if len(self._found) >= _SEARCHES:
            oldest = self._found.pop(next(iter(self._found)))
            self.rows(f"DROP TABLE prepared.found_{oldest}")
        self._found[text] = number

    def count(self, judged: Judged, where: str) -> list[tuple[int, str, bool, int]]:
        """Count pairs by rank, source, and whether they were kept when the corpus was published."""
        return self.rows(
            f"SELECT {judged.rank} AS place, source, fate = '' AS was, count(*) "
            f"FROM prepared.pairs WHERE {where} GROUP BY ALL"
        )

    def histograms(self, judged: Judged, where: str, pairs: int) -> dict[str, tuple[Array, Array]]:
        """Count pairs by the bins of each score: all that came to selection, and those that no other score or
        filter rejects.

        pairs: how many ``where`` is for; of more than :data:`SAMPLE`, the sample is counted.
        """
        names = list(self.scales)
        bits = [f"({judged.fails(name)})::INT::UBIGINT << {place}" for place, name in enumerate(names)]
        bits += [f"({judged.fails(None)})::INT::UBIGINT << 62", f"{judged.left_out}::INT::UBIGINT << 63"]
        columns = [" | ".join(f"({bit})" for bit in bits) + " AS mask", *map(identifier, names)]
        table = "sample" if pairs > SAMPLE else "pairs"
        found = self.arrays(f"SELECT {', '.join(columns)} FROM prepared.{table} WHERE {where}")
        mask = found["mask"]
        came = mask < np.uint64(1 << 63)
        counts = {}
        for place, (name, scale) in enumerate(self.scales.items()):
            known = ~np.isnan(found[name])
            bins = scale.bin_of(found[name][known].astype(np.float64))
            passing = (mask[known] & ~np.uint64(1 << place)) == 0
            counts[name] = (
                np.bincount(bins[came[known]], minlength=scale.bins),
                np.bincount(bins[passing], minlength=scale.bins),
            )
        return counts

    def drawn(self, judged: Judged, where: str, ranks: Iterable[int], wanted: int, seed: int) -> Ranked:
        """Draw pairs that have one of the ranks, uniformly and without replacement; rows and ranks."""
        return self.rows(
            f"SELECT row, {judged.rank} AS place FROM prepared.pairs WHERE {where} "
            f"AND place IN ({', '.join(map(str, ranks)) or 'NULL'}) ORDER BY hash(row, {seed}) LIMIT {wanted}"
        )

    def nearest(
        self, judged: Judged, where: str, score: str, low: float | None, high: float | None, wanted: int
    ) -> tuple[Ranked, Ranked]:
        """Find kept pairs nearest to a bound, and pairs rejected for this score alone nearest to being kept.

        Bounds that reject nobody do not count; without any that does, the lowest scores are the nearest.
        """
        least, most = self.ranges[score]
        bounds = [low] if low is not None and low > least else []
        bounds += [high] if high is not None and high < most else []
        away = [f"abs({identifier(score)} - '{bound!r}'::FLOAT)" for bound in bounds or [least]]
        others = " OR ".join([judged.left_out, *(t.fails for t in judged.tests if t.score != score)])
        own = judged.fails(score)
        kept, rejected = (
            self.rows(
                f"SELECT row, {judged.rank} FROM prepared.pairs WHERE {where} AND NOT ({others}) "
                f"AND {condition} AND {identifier(score)} IS NOT NULL "
                f"ORDER BY least({', '.join(away)}), row LIMIT {wanted}"
            )
            for condition in (f"NOT ({own})", f"({own})")
        )
        return kept, rejected

    def read(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        """Read all columns of the given rows, in their order."""
        places = np.searchsorted(self.ends, rows, side="right") - 1
        found: dict[int, dict[str, Any]] = {}
        for place in np.unique(places).tolist():
            begin = int(self.ends[place])
            numbers = [row - begin for row, at in zip(rows, places, strict=True) if at == place]
            table = fetch(self.connection.cursor(), rows_at(self.files[place][0], numbers, "*"))
            found |= {begin + pair["file_row_number"]: pair for pair in table.to_pylist()}
        return [found[row] for row in rows]


Ranked = list[tuple[int, int]]


class Judged:
    """Tests as expressions in SQL.

    tests: in order. A pair's rank is the place of the first test that it fails, counted from 1, or ``kept``;
    it is 0 if it did not come to selection. unasked: reasons of such pairs.
    """

    def __init__(self, tests: Sequence[Test], unasked: Iterable[str]) -> None:
        self.tests = tests
        self.kept = len(tests) + 1
        self.left_out = left_out(unasked)
        cases = [f"WHEN {test.fails} THEN {place}" for place, test in enumerate(tests, start=1)]
        self.rank = f"CASE WHEN {self.left_out} THEN 0 {' '.join(cases)} ELSE {self.kept} END"
        self._fails: dict[str | None, list[str]] = defaultdict(list)
        for test in tests:
            self._fails[test.score].append(test.fails)

    def fails(self, *scores: str | None) -> str:
        """Give a condition in SQL for pairs that fail a test of the scores; None is for all other tests."""
        return " OR ".join(one for score in scores for one in self._fails[score]) or "false"


def left_out(reasons: Iterable[str]) -> str:
    """Give a condition in SQL for pairs that failed or were rejected for one of the reasons."""
    return f"(fate IN ({', '.join(map(literal, [FAILED, *reasons]))}))"


def _value(name: str, kind: str) -> str:
    return f"nullif({identifier(name)}::FLOAT, 'nan'::FLOAT)" if kind == "FLOAT" else identifier(name)


class Mismatched:
    """A sample of pairs that are known to be wrong, each with the number of pairs that it stands for.

    Only scores that can tell right from wrong judge them: the length of a mismatched pair says nothing.
    """

    def __init__(self, pairs: Pairs, name: str, sample: pa.Table) -> None:
        self.pairs, self.table = pairs, f"prepared.{name}"
        judging = [one for one in pairs.scales if {one, f"{RIGHT}{one}"} <= set(sample.column_names)]
        self.judging = judging
        texts = [one for one in sample.column_names if one not in judging]
        values = [f"{_value(one, 'FLOAT')} AS {identifier(one)}" for one in judging]
        columns = ", ".join([*map(identifier, texts), *values])
        cursor = pairs.connection.cursor()
        cursor.register("given", sample)
        with explained():
            cursor.execute(f"CREATE TABLE {self.table} AS SELECT {columns} FROM given")
        self.bins = {}
        for one in judging:
            known = f"{self.table} WHERE {identifier(one)} IS NOT NULL"
            found = pairs.arrays(f"SELECT {identifier(one)} AS score, weight FROM {known}")
            places = pairs.scales[one].bin_of(found["score"].astype(np.float64))
            self.bins[one] = np.bincount(places, found["weight"], pairs.scales[one].bins).tolist()

    def share(self, judged: Judged) -> float:
        """Return the share of these pairs that would pass, each by its weight."""
        passing = f"sum(weight) FILTER (NOT ({judged.fails(*self.judging)}))"
        return float(self.pairs.rows(f"SELECT coalesce({passing}, 0) / sum(weight) FROM {self.table}")[0][0])

    def passing(self, judged: Judged, wanted: int) -> list[dict[str, Any]]:
        """Return pairs that would pass, those with the highest paraphrase score first; not those whose
        reference selection rejected or held out, which have no text."""
        order = "paraphrase_score DESC NULLS LAST" if "paraphrase_score" in self.judging else "1"
        sql = f"FROM {self.table} WHERE reference IS NOT NULL AND NOT ({judged.fails(*self.judging)})"
        cursor = self.pairs.connection.cursor()
        return fetch(cursor, f"SELECT * {sql} ORDER BY {order} LIMIT {wanted}").to_pylist()


@contextmanager
def open_pairs(datasets: Sequence[Dataset]) -> Iterator[Pairs]:
    """Read the scores of a publication into a temporary table. Raises InputError if a file is damaged."""
    with (
        tempfile.TemporaryDirectory(prefix="paraforge-browse-") as temporary,
        open_database([], memory=_MEMORY) as connection,
    ):
        unfinished_paths.add(Path(temporary))
        with explained():
            connection.execute(f"ATTACH {literal(str(Path(temporary) / 'pairs.duckdb'))} AS prepared")
        yield Pairs(connection, datasets)
