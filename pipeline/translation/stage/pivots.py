"""Joins several pivots into one corpus: shared references, rows, and pairs of translations."""

# ruff: noqa: S608 - names of tables and columns are of our own
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from paraforge.base.errors import ConfigurationError
from paraforge.base.files import remove_directory
from paraforge.base.shards.groups import run_query
from paraforge.base.shards.libraries import merge_versions
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.schema import FLAG_COLUMNS
from paraforge.base.shards.store import (
    ShardDirectory,
    ShardRecord,
    ShardWriter,
    shard_name,
    write_index,
)
from paraforge.base.shards.work import WorkDirectory, link_or_copy, replaced_directory

logger = logging.getLogger(__name__)

STEP, _TRANSLATED = "pivots", "translated"
_OF_PAIRS = ("translation_line", "original", "translation_source_text")
# The first row of each reference that has a non-empty translation.
_FIRST = """
    SELECT * FROM {table} WHERE rank = 0 AND rejected IS NULL AND failed IS NULL AND translation <> ''
    QUALIFY row_number() OVER (PARTITION BY reference ORDER BY source, line) = 1
"""


def shared_references(pivots: Mapping[str, Path], resources: Resources) -> dict[str, int]:
    """Count the distinct references by the exact set of pivots that have them: ``{"cs": 4, "cs+de": 2}``.

    Memory does not grow with the corpus. Warns if a pivot shares none with another.

    pivots: ingested shards of each, by name. resources: the work directory.

    Raises ConfigurationError if two pivots have a source with the same name.
    """
    sources = Counter(
        name for path in pivots.values() for name in ShardDirectory(path).description["sources"]
    )
    if twice := [name for name, count in sources.items() if count > 1]:
        raise ConfigurationError([f"two pivots have a source {name!r}: rename one" for name in twice])
    tables = {f"pivot{place}": _dataset(path) for place, path in enumerate(pivots.values())}
    each = " UNION ALL ".join(
        f"SELECT reference, {1 << place}::UBIGINT AS place FROM {table} WHERE rejected IS NULL"
        for place, table in enumerate(tables)
    )
    counted = f"SELECT bit_or(place) AS places FROM ({each}) GROUP BY reference"
    query = f"SELECT places, count(*) AS number FROM ({counted}) GROUP BY places ORDER BY places"
    scratch = resources.work / STEP / "query"
    rows = pq.read_table(run_query(query, tables, scratch, "references cannot be compared")).to_pylist()
    remove_directory(scratch)
    shared = {
        "+".join(name for place, name in enumerate(pivots) if row["places"] >> place & 1): row["number"]
        for row in rows
    }
    for name in pivots:
        own = {places: number for places, number in shared.items() if name in places.split("+")}
        if list(own) == [name]:
            logger.warning(
                "pivot %s shares none of its %s references with another pivot. Are its sides swapped?",
                name,
                f"{own[name]:,}",
            )
    return shared


def translated_of(pivot: str, resources: Resources) -> Path:
    """Return the directory of a pivot's translated rows until they are joined. resources: those of the first
    pivot."""
    return resources.work / STEP / _TRANSLATED / pivot


def lineage_of(pivot: str, pairs: str) -> dict[str, str | None]:
    """Return the additional columns of a pivot's rows, if there are several pivots."""
    return {"pivot": pivot, **(dict.fromkeys(_OF_PAIRS) if pairs == "all" else {})}


def join_pivots(pivots: Mapping[str, Path], pairs: str, output: Path, resources: Resources) -> dict[str, int]:
    """Publish the translated rows of all pivots as one directory of shards, one pivot after the other.

    With ``pairs`` = ``all``, they are followed by rows whose two sides are translations of one reference: for
    each pair of pivots, from the first row with that reference in each. ``source`` names both bitexts, A/B;
    ``line`` and ``source_text`` are from the first, ``translation_line``, ``translation_source_text`` and the
    score from the second, marks from both; ``original`` is the reference. A pair of equal texts is rejected
    as ``identical``.

    pivots: translated shards of each, by name, with the columns of :func:`lineage_of`.
    pairs: ``reference`` or ``all``. output: replaced as a whole. resources: the work directory.

    Returns the number of rows by the column ``pivot``. Raises InputError if a shard is damaged or the disk is
    full.
    """
    directories = {name: ShardDirectory(path) for name, path in pivots.items()}
    rows = {name: directory.total_rows for name, directory in directories.items()}
    work = WorkDirectory(STEP, resources.work)
    with work.lock(), replaced_directory(output) as temporary:
        records: list[ShardRecord] = []
        for directory in directories.values():
            for path, record in zip(directory.paths, directory.records, strict=True):
                records.append(replace(record, file=shard_name(len(records))))
                link_or_copy(path, temporary / records[-1].file)
        if pairs == "all":
            counts, pair_records = _write_pairs(directories, temporary, work.path / "query")
            rows |= counts
            records += pair_records
        write_index(
            temporary,
            records,
            _description([directory.description for directory in directories.values()], rows),
        )
    remove_directory(work.path / _TRANSLATED)
    return rows


def _description(described: Sequence[Mapping[str, Any]], rows: Mapping[str, int]) -> dict[str, Any]:
    """Return the first pivot's description, extended by the model and the parameters of every pivot."""
    names = [description["parameters"]["pivot"] for description in described]
    each = {
        name: {
            key: description[key] for key in ("parameters", "fingerprints", "forward") if key in description
        }
        for name, description in zip(names, described, strict=True)
    }
    return {
        **described[0],
        "parameters": {**described[0]["parameters"], "pivot": "+".join(names), "pivots": each},
        "fingerprints": {f"model {name}": each[name]["fingerprints"]["model"] for name in names},
        "libraries": merge_versions(description["libraries"] for description in described),
        **{
            key: sum(description.get(key, 0) for description in described)
            for key in ("sentences", "sentences_from_memory")
        },
        "pivots": dict(rows),
    }


def _write_pairs(
    directories: Mapping[str, ShardDirectory], output: Path, scratch: Path
) -> tuple[dict[str, int], list[ShardRecord]]:
    """Write pairs of two translations in order of their lineage. Returns rows by pivots, and the shards."""
    schema = next(iter(directories.values())).schema.remove_metadata()
    tables = {
        f"pivot{place}": _dataset(directory.path) for place, directory in enumerate(directories.values())
    }
    firsts = ", ".join(f"first_{name} AS MATERIALIZED ({_FIRST.format(table=name)})" for name in tables)
    special = {
        "source": "a.source || '/' || b.source",
        "pivot": "a.pivot || '+' || b.pivot",
        "translation_line": "b.line",
        "original": "a.reference",
        "translation_source_text": "b.source_text",
        "reference": "a.translation",
        "translation": "b.translation",
        "translation_score": "b.translation_score",
        "rejected": "CASE WHEN a.translation = b.translation THEN 'identical' END",
        "first_row": "NULL",
        **{flag: f"a.{flag} OR b.{flag}" for flag in FLAG_COLUMNS},
    }
    columns = ", ".join(f'{special.get(name, f"a.{name}")} AS "{name}"' for name in schema.names)
    joined = " UNION ALL ".join(
        f"SELECT {columns} FROM first_{a} AS a JOIN first_{b} AS b USING (reference)"
        for a, b in combinations(tables, 2)
    )
    query = f"WITH {firsts} {joined} ORDER BY source, line"
    rows: Counter[str] = Counter()
    writer = ShardWriter(output, schema, stem="pairs")
    with pq.ParquetFile(run_query(query, tables, scratch, "translations cannot be paired")) as file:
        for batch in file.iter_batches():
            rows.update(batch.column("pivot").to_pylist())
            writer.write(batch)
    remove_directory(scratch)
    return dict(sorted(rows.items())), writer.close()


def _dataset(directory: Path) -> Any:
    import pyarrow.dataset as ds

    return ds.dataset([str(path) for path in ShardDirectory(directory).paths], format="parquet")
