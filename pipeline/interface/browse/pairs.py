"""The pairs of a published corpus in a temporary DuckDB table, for counting, drawing and searching."""

# ruff: noqa: S608 - names are quoted, numbers are our own, the text is a parameter
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.base.errors import InputError
from paraforge.base.files import temporary_directory
from paraforge.base.progress import progress
from paraforge.corpus.columns import SCALES
from paraforge.corpus.publication.datasets import Dataset
from paraforge.corpus.publication.manifest import PUBLISH_AGAIN
from paraforge.corpus.scorer import Scale
from paraforge.corpus.scoring.wrong_pairs import RIGHT
from paraforge.corpus.selection.filters.values import LANGUAGES
from paraforge.interface.browse.rules import FAILED, Judged
from paraforge.interface.query.database import (
    explain_errors,
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
"""Histograms, and counts while a handle moves, are those of a sample with about this many pairs."""
_MEMORY = "1GB"
_TEXTS = ("reference", "translation", "source_text")
# Types in DuckDB for the columns that filters read, by their types in the files.
_KINDS = dict.fromkeys(("float", "int8", "int16", "int32"), "FLOAT") | {"bool": "BOOLEAN"}
Array = npt.NDArray[Any]
Ranked = list[tuple[int, int, int]]


@dataclass(frozen=True)
class Rows:
    """The pairs of a view.

    table: table with one row per pair. sample: the same table, or one with a sample of its rows.
    weight: number of pairs that a row of the sample represents.
    """

    table: str
    sample: str
    weight: float = 1.0


class Pairs:
    """All pairs of a publication, kept and rejected.

    The table ``prepared.pairs`` is in a temporary file. Its columns: ``file`` and ``place``, the number of a
    file and of a row in it; ``source``; ``fate``, the reason of a rejected pair, :data:`FAILED`, or empty for
    a kept one; 32-bit scores, NULL where missing; flags, languages and tenths.

    scales: bins for each score that has a histogram in the report and is not the same for all pairs.
    integers: scores that are integers. flags: flags that some pair has. sources: names.
    columns: columns that filters read. all: all pairs.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, datasets: Sequence[Dataset]) -> None:
        """Open a corpus. Raises InputError if a file is damaged, or a corpus has no pairs."""
        self.connection = connection
        types = {field.name: str(field.type) for dataset in datasets for field in dataset.schema}
        self.texts = [name for name in _TEXTS if name in types]
        self.integers = {name for name, kind in types.items() if kind.startswith("int")}
        kinds = {name: _KINDS[kind] for name, kind in types.items() if kind in _KINDS}
        kinds |= {name: "VARCHAR" for name in LANGUAGES if name in types}
        self.columns = list(kinds)
        self.files: list[Path] = []
        self._fill(datasets, kinds)
        # Small numbers are compared and grouped faster than texts.
        self.sources, _ = (self._numbered(name) for name in ("source", "fate"))
        scores = [name for name in kinds if name in SCALES]
        flags = [name for name, kind in kinds.items() if kind == "BOOLEAN"]
        ends = [f"[min({name}), max({name})]" for name in map(identifier, scores)]
        marks = [f"bool_or({name})" for name in map(identifier, flags)]
        extremes = self.rows(f"SELECT {', '.join([*ends, *marks])} FROM prepared.pairs")[0]
        self.flags = [name for name, present in zip(flags, extremes[len(scores) :], strict=True) if present]
        self.scales = {
            name: self._scale(name, low, high)
            for name, (low, high) in zip(scores, extremes, strict=False)
            if low is not None and low < high
        }
        self.all = self._sample("prepared.pairs")
        self._found: tuple[str, Rows] = "", self.all

    def _fill(self, datasets: Sequence[Dataset], kinds: Mapping[str, str]) -> None:
        columns = ", ".join(f"{identifier(name)} {kind}" for name, kind in kinds.items())
        self.rows(
            f"CREATE TABLE prepared.pairs (file INT, place BIGINT, source VARCHAR, fate VARCHAR, {columns})"
        )
        with progress(
            total=sum(dataset.rows for dataset in datasets), unit="pairs", description="read"
        ) as bar:
            for dataset in datasets:
                present = set(dataset.schema.names)
                values = [value_of(name, kind) if name in present else "NULL" for name, kind in kinds.items()]
                fate = "coalesce(rejected, '')" if "rejected" in present else "''"
                fate = f"if(failed IS NULL, {fate}, '{FAILED}')" if "failed" in present else fate
                for path, file in zip(dataset.files, getattr(dataset.manifest, "files", ()), strict=True):
                    rows = self.rows(
                        f"INSERT INTO prepared.pairs SELECT {len(self.files)}, file_row_number, "
                        f"{', '.join(['source', fate, *values])} "
                        f"FROM {rows_of([path], 'file_row_number = true')}"
                    )[0][0]
                    if rows != file.rows:
                        message = f"damaged: it has {rows:,} rows, the manifest says {file.rows:,}"
                        raise InputError(message, path, remedy=PUBLISH_AGAIN)
                    self.files.append(path)
                    bar.update(rows)

    def _numbered(self, column: str) -> list[str]:
        values = [row[0] for row in self.rows(f"SELECT DISTINCT {column} FROM prepared.pairs ORDER BY 1")]
        names = ", ".join(map(literal, values))
        self.rows(f"ALTER TABLE prepared.pairs ALTER {column} TYPE ENUM ({names})")
        return values

    def _scale(self, name: str, low: float, high: float) -> Scale:
        """Return the scale of the report in finer bins, from the first one that has pairs to the last one."""
        scale = SCALES[name]
        scale = scale if name in self.integers else replace(scale, bins=5 * scale.bins)
        first, last = scale.bin_of(np.array([low, high])).tolist()
        edges = scale.edges
        return Scale(edges[first], edges[last + 1], last + 1 - first)

    def _sample(self, table: str) -> Rows:
        """Sample a table, unless it is small."""
        total = self.rows(f"SELECT count(*) FROM {table}")[0][0]
        if total <= SAMPLE:
            return Rows(table, table)
        sample = f"{table}_sample"
        condition = f"hash(file, place) % {total} < {SAMPLE}"
        self.rows(f"CREATE OR REPLACE TABLE {sample} AS SELECT * FROM {table} WHERE {condition}")
        return Rows(table, sample, total / max(1, self.rows(f"SELECT count(*) FROM {sample}")[0][0]))

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Run a statement; returns its rows."""
        with explain_errors():
            return self.connection.cursor().execute(sql, parameters).fetchall()

    def arrays(self, sql: str) -> dict[str, Array]:
        """Run a query; returns its columns, with NaN for a missing score."""
        with explain_errors():
            columns = self.connection.cursor().execute(sql).fetchnumpy()
        return {
            name: np.ma.filled(values, np.nan) if values.dtype.kind == "f" else values
            for name, values in columns.items()
        }

    def looked_at(self, text: str) -> Rows:
        """Return the pairs that have a text in a side, in any case; all for an empty text.

        The last result is cached, so that handles move quickly.
        """
        if not text:
            return self.all
        if self._found[0] != text:
            self._found = "", self.all  # until all files are read
            table, condition = "prepared.found", "contains(lower({}), lower($1))"
            self.rows(f"CREATE OR REPLACE TABLE {table} AS FROM prepared.pairs LIMIT 0")
            for number, path in enumerate(self.files):
                conditions = " OR ".join(condition.format(identifier(name)) for name in self.texts)
                self.rows(
                    f"INSERT INTO {table} FROM prepared.pairs WHERE file = {number} AND place IN "
                    f"(SELECT file_row_number FROM {rows_of([path], 'file_row_number = true')} "
                    f"WHERE {conditions})",
                    [text],
                )
            self._found = text, self._sample(table)
        return self._found[1]

    def count(self, judged: Judged, table: str) -> list[tuple[int, str, bool, int]]:
        """Count pairs by rank, source, and whether they were kept when the corpus was published."""
        return self.rows(
            f"SELECT {judged.rank} AS verdict, source, fate = '' AS was, count(*) FROM {table} GROUP BY ALL"
        )

    def histograms(self, judged: Judged, table: str) -> dict[str, tuple[Array, Array]]:
        """Count pairs by the bins of each score: all that reached selection, and those that no other score or
        filter rejects."""
        names = list(self.scales)
        conditions = [*map(judged.fails, names), judged.fails(None), judged.left_out]
        mask = " | ".join(
            f"(({condition})::INT::BIGINT << {bit})" for bit, condition in enumerate(conditions)
        )
        columns = self.arrays(
            f"SELECT {', '.join([f'{mask} AS mask', *map(identifier, names)])} FROM {table}"
        )
        counts = {}
        for bit, (name, scale) in enumerate(self.scales.items()):
            known = ~np.isnan(columns[name])
            bins = scale.bin_of(columns[name][known].astype(np.float64))
            masks = columns["mask"][known]
            counts[name] = (
                np.bincount(bins[masks >> (len(names) + 1) == 0], minlength=scale.bins),
                np.bincount(bins[masks & ~(1 << bit) == 0], minlength=scale.bins),
            )
        return counts

    def drawn(self, judged: Judged, rows: Rows, ranks: Iterable[int], count: int, seed: int) -> Ranked:
        """Draw pairs that have one of the ranks, uniformly and without replacement. Returns file, place and
        rank.

        They come from the sample, unless it has too few.
        """
        pairs: Ranked = []
        for table in dict.fromkeys((rows.sample, rows.table)):
            if len(pairs) < count:
                pairs = self.rows(
                    f"SELECT file, place, {judged.rank} AS verdict FROM {table} "
                    f"WHERE verdict IN ({', '.join(map(str, ranks)) or 'NULL'}) "
                    f"ORDER BY hash(file, place, {seed}) LIMIT {count}"
                )
        return pairs

    def read(self, drawn: Ranked) -> list[dict[str, Any]]:
        """Read all columns of the given pairs, in their order."""
        places = [(str(self.files[file]), place) for file, place, _ in drawn]
        rows = [{"filename": path, "file_row_number": place} for path, place in places]
        pairs = fetch(self.connection.cursor(), rows_at(rows)).to_pylist() if rows else []
        by_place = {(pair["filename"], pair["file_row_number"]): pair for pair in pairs}
        return [by_place[place] for place in places]


def value_of(name: str, kind: str = "FLOAT") -> str:
    """Return a column in SQL, a score with NULL for NaN."""
    return f"nullif({identifier(name)}::FLOAT, 'nan'::FLOAT)" if kind == "FLOAT" else identifier(name)


class Mismatched:
    """A sample of pairs that are known to be wrong, each with the number of pairs that it represents.

    Only scores that can separate right from wrong judge them; the length of a mismatched pair is meaningless.

    bins: weight of the pairs in each bin of a score.
    """

    def __init__(self, pairs: Pairs, name: str, sample: pa.Table) -> None:
        self.pairs, self.table = pairs, f"prepared.{name}"
        self.judging = [
            score for score in pairs.scales if {score, f"{RIGHT}{score}"} <= set(sample.column_names)
        ]
        values = ", ".join(f"{value_of(score)} AS {identifier(score)}" for score in self.judging)
        changed = f"* REPLACE ({values})" if values else "*"
        cursor = pairs.connection.cursor()
        cursor.register("given", sample)
        with explain_errors():
            cursor.execute(f"CREATE TABLE {self.table} AS SELECT {changed} FROM given")
        self.bins = {}
        for score in self.judging:
            known = f"{self.table} WHERE {identifier(score)} IS NOT NULL"
            columns = pairs.arrays(f"SELECT {identifier(score)} AS score, weight FROM {known}")
            bins = pairs.scales[score].bin_of(columns["score"].astype(np.float64))
            self.bins[score] = np.bincount(bins, columns["weight"], pairs.scales[score].bins).tolist()

    def share(self, judged: Judged) -> float:
        """Return the share of these pairs that would pass, each by its weight."""
        passing = f"sum(weight) FILTER (NOT ({judged.fails(*self.judging)}))"
        return float(self.pairs.rows(f"SELECT coalesce({passing}, 0) / sum(weight) FROM {self.table}")[0][0])

    def passing(self, judged: Judged, count: int) -> list[dict[str, Any]]:
        """Return pairs that would pass, those with the highest paraphrase score first, except those without
        text, whose reference was rejected or held out."""
        order = "paraphrase_score DESC NULLS LAST" if "paraphrase_score" in self.judging else "1"
        sql = f"FROM {self.table} WHERE reference IS NOT NULL AND NOT ({judged.fails(*self.judging)})"
        cursor = self.pairs.connection.cursor()
        return fetch(cursor, f"SELECT * {sql} ORDER BY {order} LIMIT {count}").to_pylist()


@contextmanager
def open_pairs(datasets: Sequence[Dataset]) -> Iterator[Pairs]:
    """Read the scores of a publication into a temporary table. Raises InputError if a file is damaged."""
    with temporary_directory() as temporary, open_database(memory=_MEMORY) as connection:
        with explain_errors():
            connection.execute(f"ATTACH {literal(str(temporary / 'pairs.duckdb'))} AS prepared")
        yield Pairs(connection, datasets)
