"""What differs between two published corpora: how they were made, counts, scores, and which pairs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paraforge.base.errors import IncompleteError, InputError
from paraforge.base.shards.lineage import LINEAGE
from paraforge.corpus.columns import AVERAGED
from paraforge.corpus.publication.datasets import Dataset, neighbours, open_published
from paraforge.corpus.publication.manifest import KEPT, REJECTED, Manifest
from paraforge.interface.query.database import fetch, identifier, open_database

if TYPE_CHECKING:
    import duckdb


# ruff: noqa: S608 - names are of our own or quoted


BIN_WIDTH = 0.1
_EXAMPLE_COLUMNS = ("source", "line", "reference", "translation", "paraphrase_score", "overlap_3")
# Room for the join of two corpora; more goes to temporary files.
_MEMORY = "700MB"
_ABSENT = "not in its input"
_MOMENTS = ("mean", "deviation")
_NOT_KNOWN = "not known: no rejected pairs next to it"


@dataclass(frozen=True)
class Side:
    """One of the two corpora; ``rejected`` is None where there is no such directory next to it."""

    corpus: Dataset
    manifest: Manifest
    rejected: Dataset | None


@dataclass(frozen=True)
class Moved:
    """Pairs that are in one corpus only.

    pairs: how many.
    reasons: what became of them in the other corpus: why it rejected them, or that it never had them.
    sources: pairs by source. examples: some of them, drawn at random.
    """

    pairs: int
    reasons: Counter[str]
    sources: Counter[str]
    examples: list[dict[str, Any]]


@dataclass(frozen=True)
class Changed:
    """Pairs of both corpora whose text differs; examples have ``translation_a`` and ``translation_b``."""

    pairs: int
    examples: list[dict[str, Any]]


@dataclass(frozen=True)
class Difference:
    """All that differs; in every pair of values the first is of corpus A.

    signatures: of both. parameters: what differs in the manifests, by dotted key.
    counts: rows in, kept, rejected and failed. reasons: pairs rejected, by reason.
    sources: pairs kept, by source. scores: mean and deviation over kept pairs, by column.
    distribution: kept pairs by lower edge of the paraphrase score's bin.
    same: pairs in both with the same text.
    """

    signatures: tuple[str, str]
    parameters: dict[str, tuple[Any, Any]]
    counts: dict[str, tuple[int, int]]
    reasons: dict[str, tuple[int, int]]
    sources: dict[str, tuple[int, int]]
    scores: dict[str, dict[str, tuple[float | None, float | None]]]
    distribution: list[dict[str, Any]]
    same: int
    changed: Changed
    entered: Moved
    left: Moved
    notes: list[str] = field(default_factory=list)


def compare(first: Side, second: Side, examples: int = 5, seed: int = 1) -> Difference:
    """Compare two corpora. Memory does not grow with them: what is large goes to temporary files.

    first, second: the corpora A and B; pairs *left* are in A only, pairs *entered* in B only.
    examples: pairs to show of each kind.

    Raises:
        InputError: a corpus has no lineage, or a file cannot be read.
        IncompleteError: two pairs of a corpus have the same source, line and rank.
    """
    a, b = first.manifest, second.manifest
    for side in (first, second):
        missing = [name for name in LINEAGE[:2] if name not in side.corpus.schema.names]
        if missing:
            raise InputError(f"no column {', '.join(missing)} to know a pair by", side.corpus.directory)
    names = {"a": first.corpus, "b": second.corpus}
    names |= {
        f"{name}_rejected": side.rejected
        for name, side in (("a", first), ("b", second))
        if side.rejected is not None
    }
    with open_database([], names=names, memory=_MEMORY) as connection:
        pairs = _Pairs(connection, first, second, seed)
        same = pairs.join()
        return Difference(
            signatures=(a.signature, b.signature),
            parameters=manifest_differences(a, b),
            counts={
                "rows in": (a.counts.rows_in, b.counts.rows_in),
                "kept": (a.counts.kept, b.counts.kept),
                "rejected": (a.counts.rejected.total(), b.counts.rejected.total()),
                "failed": (a.counts.failed.total(), b.counts.failed.total()),
            },
            reasons=_side_by_side(_reasons(a), _reasons(b)),
            sources=_side_by_side(_kept(a), _kept(b)),
            scores=pairs.scores(),
            distribution=pairs.distribution(),
            same=same,
            changed=Changed(pairs.count("changed"), pairs.changed_examples(examples)),
            entered=pairs.moved("entered", examples),
            left=pairs.moved("left", examples),
        )


def _reasons(manifest: Manifest) -> Counter[str]:
    counts = manifest.counts
    return counts.rejected + Counter({f"failed: {name}": n for name, n in counts.failed.items()})


def _kept(manifest: Manifest) -> Counter[str]:
    return Counter({source: counts.kept for source, counts in manifest.sources.items()})


def _side_by_side(a: Counter[str], b: Counter[str]) -> dict[str, tuple[int, int]]:
    names = sorted(a.keys() | b.keys(), key=lambda name: (-max(a[name], b[name]), name))
    return {name: (a[name], b[name]) for name in names}


class _Pairs:
    """The pairs that are not the same in both corpora, as a temporary table ``moved``."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, first: Side, second: Side, seed: int) -> None:
        self.connection = connection
        self.first, self.second = first, second
        self.seed = seed
        schemas = (first.corpus.schema.names, second.corpus.schema.names)
        self.keys = [name for name in LINEAGE if all(name in names for names in schemas)]
        self.common = [name for name in schemas[0] if name in schemas[1]]
        self.texts = [name for name in ("reference", "translation") if name in self.common]

    def join(self) -> int:
        """Make the table; gives the number of pairs that are the same."""
        keys = ", ".join(self.keys)
        digest = f"hash({', '.join(self.texts)})" if self.texts else "0"
        side = "(SELECT {keys}, {digest} AS digest, 1 AS here FROM {view})"
        a, b = (side.format(keys=keys, digest=digest, view=view) for view in ("a", "b"))
        self.connection.execute(
            "CREATE TEMP TABLE moved AS "
            f"SELECT {keys}, CASE WHEN b.here IS NULL THEN 'left' WHEN a.here IS NULL THEN 'entered' "
            f"ELSE 'changed' END AS what FROM {a} a FULL JOIN {b} b USING ({keys}) "
            "WHERE a.here IS NULL OR b.here IS NULL OR a.digest <> b.digest"
        )
        rows = (self.first.corpus.rows, self.second.corpus.rows)
        changed, left, entered = (self.count(what) for what in ("changed", "left", "entered"))
        same = rows[0] - left - changed
        if same != rows[1] - entered - changed or same < 0:
            raise IncompleteError(
                f"pairs cannot be distinguished: in {self.first.corpus.directory} or "
                f"{self.second.corpus.directory} several have the same {', '.join(self.keys)}"
            )
        return same

    def count(self, what: str) -> int:
        table = fetch(self.connection, "SELECT count(*) AS n FROM moved WHERE what = ?", [what])
        return int(table["n"][0].as_py())

    def _counted(self, sql: str, parameters: Sequence[Any] = ()) -> Counter[Any]:
        """The result of a statement that gives values and their numbers."""
        values, numbers = fetch(self.connection, sql, parameters).columns
        return Counter(dict(zip(values.to_pylist(), numbers.to_pylist(), strict=True)))

    def moved(self, what: str, examples: int) -> Moved:
        here, there = ("b", "a") if what == "entered" else ("a", "b")
        other = self.first if what == "entered" else self.second
        by_source = self._counted(
            "SELECT source, count(*) AS n FROM moved WHERE what = ? GROUP BY source ORDER BY n DESC, source",
            [what],
        )
        total = by_source.total()
        if not total:
            return Moved(0, Counter(), Counter(), [])
        reasons = (
            Counter({_NOT_KNOWN: total}) if other.rejected is None else self._reasons(what, there, other)
        )
        return Moved(total, reasons, by_source, self._examples(what, here, examples))

    def _reasons(self, what: str, there: str, other: Side) -> Counter[str]:
        """Why the other corpus does not have the pairs. What was not translated is a row for all ranks."""
        names = other.rejected.schema.names if other.rejected else []
        fate = "rejected" if "failed" not in names else "coalesce(rejected, 'failed: ' || failed)"
        keys = [name for name in self.keys if name != "rank"]
        both = " AND ".join(f"m.{name} = r.{name}" for name in keys)
        if "rank" in self.keys and "rank" in names:
            both += " AND (r.translation IS NULL OR coalesce(r.rank, 0) = coalesce(m.rank, 0))"
        return self._counted(
            f"SELECT coalesce({fate}, '{_ABSENT}') AS reason, count(*) AS n "
            f"FROM (SELECT * FROM moved WHERE what = '{what}') m LEFT JOIN {there}_rejected r ON {both} "
            "GROUP BY reason ORDER BY n DESC, reason"
        )

    def _chosen(self, what: str, examples: int) -> str:
        """A few pairs by a key that depends on their lineage and the seed alone."""
        keys = ", ".join(self.keys)
        return (
            f"(SELECT {keys} FROM moved WHERE what = '{what}' "
            f"ORDER BY md5(concat_ws('/', {self.seed}, {keys})) LIMIT {examples})"
        )

    def _examples(self, what: str, view: str, examples: int) -> list[dict[str, Any]]:
        side = self.second if view == "b" else self.first
        columns = [name for name in _EXAMPLE_COLUMNS if name in side.corpus.schema.names]
        keys = ", ".join(self.keys)
        table = fetch(
            self.connection,
            f"SELECT {', '.join(f'v.{name}' for name in columns)} FROM {view} v "
            f"SEMI JOIN {self._chosen(what, examples)} USING ({keys}) ORDER BY ALL",
        )
        return list(table.to_pylist())

    def changed_examples(self, examples: int) -> list[dict[str, Any]]:
        shown = [
            f"{view}.{name} AS {name}_{view}"
            for name in (*self.texts, "paraphrase_score")
            for view in ("a", "b")
            if name in self.common
        ]
        keys = ", ".join(self.keys)
        table = fetch(
            self.connection,
            f"SELECT source, line, {', '.join(shown)} FROM a JOIN b USING ({keys}) "
            f"SEMI JOIN {self._chosen('changed', examples)} USING ({keys}) ORDER BY source, line",
        )
        return list(table.to_pylist())

    def scores(self) -> dict[str, dict[str, tuple[float | None, float | None]]]:
        """Mean and standard deviation of each score over both corpora. Threads add up in any order: without
        rounding, the last digits would be others each time."""
        rows = []
        for view, side in (("a", self.first), ("b", self.second)):
            present = [name for name in AVERAGED if name in side.corpus.schema.names]
            aggregates = ", ".join(
                f'round(avg({identifier(name)}::DOUBLE), 9) AS "{name} mean", '
                f'round(stddev_pop({identifier(name)}::DOUBLE), 9) AS "{name} deviation"'
                for name in present
            )
            found = fetch(self.connection, f"SELECT {aggregates or 1} FROM {view} LIMIT 1").to_pylist()
            rows.append(found[0] if found else {})
        values = {
            name: {key: (rows[0].get(f"{name} {key}"), rows[1].get(f"{name} {key}")) for key in _MOMENTS}
            for name in AVERAGED
        }
        return {name: found for name, found in values.items() if found["mean"] != (None, None)}

    def distribution(self) -> list[dict[str, Any]]:
        """Pairs of both corpora by paraphrase score in bins of 0.1, which have their upper edges."""
        counts: list[Counter[int]] = []
        for view, side in (("a", self.first), ("b", self.second)):
            if "paraphrase_score" not in side.corpus.schema.names:
                return []
            found = self._counted(
                "SELECT least(9, greatest(-10, ceil(round(paraphrase_score::DOUBLE * 10, 5)) - 1))::INTEGER "
                f"AS bin, count(*) FROM {view} WHERE paraphrase_score IS NOT NULL GROUP BY bin"
            )
            counts.append(found)
        bins = counts[0].keys() | counts[1].keys()
        return [
            {"above": round(place * BIN_WIDTH, 1), "a": counts[0][place], "b": counts[1][place]}
            for place in range(min(bins, default=0), max(bins, default=-1) + 1)
        ]


def open_side(directory: Path) -> Side:
    """A corpus to compare. Raises InputError: these are rejected pairs; see also :func:`open_published`."""
    corpus = open_published(directory)
    if corpus.name != KEPT or corpus.manifest is None:
        raise InputError("these are rejected pairs", directory, remedy="Compare two corpora of kept pairs.")
    return Side(corpus, corpus.manifest, neighbours(corpus)[0].get(REJECTED))


def as_dict(difference: Difference) -> dict[str, Any]:
    """JSON value of a difference."""
    value: dict[str, Any] = json.loads(json.dumps(difference, default=vars))
    return value


def manifest_differences(a: Manifest, b: Manifest) -> dict[str, tuple[Any, Any]]:
    """What differs in how two corpora were made: version, parameters, fingerprints, columns, licences."""
    one, other = _flat(_origin(a)), _flat(_origin(b))
    return {
        key: (one.get(key), other.get(key))
        for key in sorted(one.keys() | other.keys())
        if one.get(key) != other.get(key)
    }


def _origin(manifest: Manifest) -> dict[str, Any]:
    return {
        "paraforge": manifest.version,
        "schema_version": manifest.schema_version,
        "name": manifest.name,
        "licences": manifest.licences,
        "columns": {column["name"]: column["type"] for column in manifest.columns},
        **manifest.steps,
    }


def _flat(value: Any, prefix: str = "") -> dict[str, Any]:
    """Nested mappings and lists as one level with dotted keys."""
    if isinstance(value, Mapping) and value:
        parts = list(value.items())
    elif isinstance(value, list) and any(isinstance(part, Mapping | list) for part in value):
        # The filters of select: named by kind and column, so that one put in between does not move the rest.
        parts = list(_named(value).items())
    else:
        return {prefix: value}
    flat: dict[str, Any] = {}
    for key, part in parts:
        flat.update(_flat(part, f"{prefix}.{key}" if prefix else str(key)))
    return flat


def _named(parts: list[Any]) -> dict[str, Any]:
    named: dict[str, Any] = {}
    for number, part in enumerate(parts):
        keys = ("kind", "name", "score", "column") if isinstance(part, Mapping) else ()
        name = "-".join(dict.fromkeys(str(part[key]) for key in keys if part.get(key))) or str(number)
        named[name if name not in named else f"{name}-{number}"] = part
    return named
