"""The pairs of a published corpus in a temporary DuckDB table: counted, drawn and searched under tests."""

# ruff: noqa: S608 - names are quoted, numbers are our own, the text is a parameter
from __future__ import annotations

import tempfile
from bisect import bisect_right
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
from paraforge.interface.browse.rules import FAILED, Judged, left_out
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
_MEMORY = "1GB"
_TEXTS = ("reference", "translation", "source_text")
_LINEAGE = {"line", "first_row"}
Array = npt.NDArray[Any]
Ranked = list[tuple[int, int]]


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
        schema = pa.unify_schemas([one.schema.remove_metadata() for one in datasets])
        types = {field.name: field.type for field in schema}
        self.texts = [name for name in _TEXTS if name in types]
        self.integers = {name for name, kind in types.items() if pa.types.is_integer(kind)}
        scores = [
            name
            for name, kind in types.items()
            if (pa.types.is_float32(kind) or (name in self.integers and kind.bit_width <= 32))
            and name in SCORES
            and name not in _LINEAGE
        ]
        flags = [name for name, kind in types.items() if pa.types.is_boolean(kind)]
        kinds = dict.fromkeys(scores, "FLOAT") | dict.fromkeys(flags, "BOOLEAN")
        kinds |= {name: "VARCHAR" for name in LANGUAGES if name in types}
        kinds |= {name: "TINYINT" for name in types if name.endswith("_decile")}
        self.columns = list(kinds)
        self.files: list[Path] = []
        self.begins: list[int] = []
        self._fill(datasets, kinds)
        # Small numbers are compared and grouped faster than texts.
        self.sources, _ = (self._numbered(name) for name in ("source", "fate"))
        self.total, *found = self.rows(
            "SELECT count(*)"
            + "".join(f", [min({one}), max({one})]" for one in map(identifier, scores))
            + "".join(f", bool_or({one})" for one in map(identifier, flags))
            + "".join(
                f", bool_or({one} IS NULL AND NOT {left_out(REASONS)})" for one in map(identifier, scores)
            )
            + " FROM prepared.pairs"
        )[0]
        self.flags = [name for name, one in zip(flags, found[len(scores) :], strict=False) if one]
        gaps = dict(zip(scores, found[len(scores) + len(flags) :], strict=True))
        self.ranges: dict[str, tuple[float, float]] = {
            name: (low, high)
            for name, (low, high) in zip(scores, found, strict=False)
            if low is not None and low < high
        }
        self.incomplete = {name for name in self.ranges if gaps[name]}
        part = f"WHERE hash(row) % {self.total} < {SAMPLE}" if self.total > SAMPLE else ""
        self.rows(f"CREATE TABLE prepared.sample AS SELECT * FROM prepared.pairs {part}")
        self.scales = {name: self._scale(name) for name in self.ranges}
        self._searches: dict[str, str] = {}
        self._lock = Lock()

    def _fill(self, datasets: Sequence[Dataset], kinds: Mapping[str, str]) -> None:
        listed = ", ".join(f"{identifier(name)} {kind}" for name, kind in kinds.items())
        self.rows(f"CREATE TABLE prepared.pairs (row BIGINT, source VARCHAR, fate VARCHAR, {listed})")
        begin = 0
        with progress(total=sum(one.rows for one in datasets), unit="pairs", description="read") as bar:
            for dataset in datasets:
                present = set(dataset.schema.names)
                values = [value_of(name, kind) if name in present else "NULL" for name, kind in kinds.items()]
                fate = "coalesce(rejected, '')" if "rejected" in present else "''"
                fate = f"if(failed IS NULL, {fate}, '{FAILED}')" if "failed" in present else fate
                for path, file in zip(dataset.files, getattr(dataset.manifest, "files", ()), strict=True):
                    check_interrupt()
                    self.files.append(path)
                    self.begins.append(begin)
                    rows = self.rows(
                        f"INSERT INTO prepared.pairs SELECT {begin} + file_row_number, "
                        f"{', '.join(['source', fate, *values])} "
                        f"FROM {rows_of([path], 'file_row_number = true')}"
                    )[0][0]
                    if rows != file.rows:
                        message = f"damaged: it has {rows:,} rows, the manifest says {file.rows:,}"
                        raise InputError(message, path, remedy=PUBLISH_AGAIN)
                    begin += rows
                    bar.update(rows)

    def _numbered(self, column: str) -> list[str]:
        values = [row[0] for row in self.rows(f"SELECT DISTINCT {column} FROM prepared.pairs ORDER BY 1")]
        listed = ", ".join(map(literal, values))
        self.rows(f"ALTER TABLE prepared.pairs ALTER {column} TYPE ENUM ({listed})")
        return values

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

        Case does not matter. The rows of a text are kept in a table, so that handles move quickly.
        """
        conditions = [f"source IN ({', '.join(map(literal, sources))})"] if sources else []
        if text:
            with self._lock:
                if text not in self._searches:
                    self._searches[text] = self._search(text)
                conditions.append(f"row IN (SELECT row FROM {self._searches[text]})")
        return " AND ".join(conditions) or "true"

    def _search(self, text: str) -> str:
        table = f"prepared.found_{len(self._searches)}"
        self.rows(f"CREATE TABLE {table} (row BIGINT)")
        condition = " OR ".join(f"contains(lower({identifier(name)}), lower($1))" for name in self.texts)
        for begin, path in zip(self.begins, self.files, strict=True):
            relation = rows_of([path], "file_row_number = true")
            self.rows(
                f"INSERT INTO {table} SELECT {begin} + file_row_number FROM {relation} WHERE {condition}",
                [text],
            )
        return table

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
        conditions = [*map(judged.fails, names), judged.fails(None), judged.left_out]
        mask = " | ".join(f"(({one})::INT::BIGINT << {place})" for place, one in enumerate(conditions))
        table = "sample" if pairs > SAMPLE else "pairs"
        found = self.arrays(
            f"SELECT {', '.join([f'{mask} AS mask', *map(identifier, names)])} "
            f"FROM prepared.{table} WHERE {where}"
        )
        counts = {}
        for place, (name, scale) in enumerate(self.scales.items()):
            known = ~np.isnan(found[name])
            bins = scale.bin_of(found[name][known].astype(np.float64))
            masks = found["mask"][known]
            counts[name] = (
                np.bincount(bins[masks >> (len(names) + 1) == 0], minlength=scale.bins),
                np.bincount(bins[masks & ~(1 << place) == 0], minlength=scale.bins),
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
        others = {test.score for test in judged.tests} - {score}
        own = judged.fails(score)
        kept, rejected = (
            self.rows(
                f"SELECT row, {judged.rank} FROM prepared.pairs WHERE {where} "
                f"AND NOT ({judged.left_out} OR {judged.fails(*others)}) "
                f"AND {condition} AND {identifier(score)} IS NOT NULL "
                f"ORDER BY least({', '.join(away)}), row LIMIT {wanted}"
            )
            for condition in (f"NOT ({own})", f"({own})")
        )
        return kept, rejected

    def read(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        """Read all columns of the given rows, in their order."""
        places = []
        for row in rows:
            file = bisect_right(self.begins, row) - 1
            places.append({"filename": str(self.files[file]), "file_row_number": row - self.begins[file]})
        found = fetch(self.connection.cursor(), rows_at(places)).to_pylist() if places else []
        by_place = {(pair["filename"], pair["file_row_number"]): pair for pair in found}
        return [by_place[place["filename"], place["file_row_number"]] for place in places]


def value_of(name: str, kind: str = "FLOAT") -> str:
    """Give a column in SQL, a score with NULL for NaN."""
    return f"nullif({identifier(name)}::FLOAT, 'nan'::FLOAT)" if kind == "FLOAT" else identifier(name)


class Mismatched:
    """A sample of pairs that are known to be wrong, each with the number of pairs that it stands for.

    Only scores that can tell right from wrong judge them: the length of a mismatched pair says nothing.

    bins: weight of the pairs in each bin of a score.
    """

    def __init__(self, pairs: Pairs, name: str, sample: pa.Table) -> None:
        self.pairs, self.table = pairs, f"prepared.{name}"
        self.judging = [one for one in pairs.scales if {one, f"{RIGHT}{one}"} <= set(sample.column_names)]
        values = [f"{value_of(one)} AS {identifier(one)}" for one in self.judging]
        cursor = pairs.connection.cursor()
        cursor.register("given", sample)
        with explained():
            cursor.execute(f"CREATE TABLE {self.table} AS SELECT * REPLACE ({', '.join(values)}) FROM given")
        self.bins = {}
        for one in self.judging:
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
