"""Finds duplicates over all sources, writes the ingested shards from the parts, and counts what they have."""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from paraforge.base.errors import IncompleteError
from paraforge.base.interrupts import check_interrupt
from paraforge.base.shards.groups import GroupRanker
from paraforge.base.shards.libraries import installed
from paraforge.base.shards.scheduler import report_rows
from paraforge.base.shards.schema import schema_of
from paraforge.base.shards.store import ShardRecord, read_parquet
from paraforge.base.shards.work import WorkDirectory
from paraforge.intake.bitext.block import NAMES
from paraforge.intake.bitext.cleaning import shorten
from paraforge.intake.bitext.parts import TEXTS, FileReport, keys_of
from paraforge.intake.bitext.sources import SourceFiles

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Part:
    """A piece of a source: a Parquet file of the work directory, whole.

    path: the file. rows: its rows. first_row: number of its first row in the whole corpus.
    line_offset: added to its line numbers: lines of the source's files before this one.
    dropped: rows of the corpus in this part that the source's list ``drop_rows`` names; rising.
    """

    path: Path
    rows: int
    first_row: int
    line_offset: int
    dropped: NDArray[np.int64]


@dataclass(frozen=True)
class ShardPlan:
    """What goes into one shard: ``rows`` rows of the corpus from ``first_row`` on, all of one source."""

    key: str
    source: str
    first_row: int
    rows: int
    parts: tuple[Part, ...]


def plan_shards(
    source: str, parts: Sequence[Part], rows_per_shard: int, first_index: int, run: str
) -> list[ShardPlan]:
    """Cut a source into shards; the last one may be smaller."""
    begin, end = parts[0].first_row, parts[-1].first_row + parts[-1].rows
    plans = []
    at = 0
    for number, start in enumerate(range(begin, end, rows_per_shard)):
        stop = min(start + rows_per_shard, end)
        while parts[at].first_row + parts[at].rows <= start:
            at += 1
        last = at
        while parts[last].first_row + parts[last].rows < stop:
            last += 1
        key = f"{run}-{first_index + number:06d}"
        plans.append(ShardPlan(key, source, start, stop - start, tuple(parts[at : last + 1])))
    return plans


def rank_groups(
    parts: Sequence[Part], columns: tuple[str, str], texts: tuple[str, ...], directory: Path
) -> None:
    """Rank the rows that were not rejected by one of their keys; resumes where a killed run stopped.

    parts: all parts of the corpus, in order. columns: the two halves of the key.
    texts: the columns whose key it is.
    directory: the ranker's own, see :class:`paraforge.base.shards.groups.GroupRanker`.
    """
    ranker = GroupRanker(directory)
    for part in parts:
        check_interrupt()
        end = part.first_row + part.rows
        if end <= ranker.rows or ranker.finished:
            continue  # added before the last run was killed
        refused = read_parquet(part.path, ["rejected"]).column("rejected")
        taken = refused.combine_chunks().is_null().to_numpy(zero_copy_only=False)
        taken[part.dropped - part.first_row] = False
        keys = keys_of(part.path, columns, texts)[taken]
        ranker.add(keys, np.flatnonzero(taken) + part.first_row, next_row=end)
        report_rows(part.rows)
    ranker.finish()


@dataclass(frozen=True)
class ShardResult:
    """A shard that was written, and its rejected rows by reason."""

    record: ShardRecord
    rejected: dict[str, int]


def write_shards(
    plans: Sequence[ShardPlan],
    kind: str,
    pairs: Path | None,
    sources: Path | None,
    work: WorkDirectory,
) -> list[ShardResult]:
    """Write consecutive shards; those that are there already are only counted.

    kind: ``bitext`` or ``paraphrases``.
    pairs: the finished ranker of pairs; None where duplicates stay.
    sources: the finished ranker of foreign sides; None for paraphrases. work: where shards go.
    """
    pair_ranker = None if pairs is None else GroupRanker(pairs)
    source_ranker = None if sources is None else GroupRanker(sources)
    results = []
    for plan in plans:
        check_interrupt()
        record = work.find(plan.key)
        if record is None:
            table = _assemble(plan, kind, pair_ranker, source_ranker)
            record = work.commit(plan.key, table, installed())
            reasons = table.column("rejected")
        else:
            reasons = read_parquet(work.file(plan.key), ["rejected"]).column("rejected")
        counted = Counter(reasons.drop_null().to_pylist())
        results.append(ShardResult(record, dict(sorted(counted.items()))))
        report_rows(plan.rows)
    return results


def _assemble(plan: ShardPlan, kind: str, pairs: GroupRanker | None, sources: GroupRanker | None) -> pa.Table:
    stop = plan.first_row + plan.rows
    texts = TEXTS[kind]
    columns = ["line", *texts, "rejected", *(["given_score"] if kind == "paraphrases" else [])]
    slices = []
    contaminated = np.zeros(plan.rows, dtype=bool)
    for part in plan.parts:
        begin = max(plan.first_row, part.first_row)
        table = read_parquet(part.path, columns)
        table = table.slice(begin - part.first_row, min(stop, part.first_row + part.rows) - begin)
        line = pc.add(table.column("line"), part.line_offset)
        slices.append(table.set_column(0, table.schema.field("line"), line))
        here = part.dropped[(part.dropped >= begin) & (part.dropped < stop)]
        contaminated[here - plan.first_row] = True
    table = pa.concat_tables(slices).combine_chunks()
    reasons = table.column("rejected").combine_chunks()
    reasons = pc.if_else(pa.array(contaminated), "contaminated", reasons)
    if pairs is not None:
        earlier, _ = pairs.ranks(plan.first_row, stop)
        reasons = pc.if_else(pa.array(earlier > 0), "duplicate", reasons)
    refused = reasons.is_valid().to_numpy(zero_copy_only=False)
    own = np.arange(plan.first_row, stop, dtype=np.int64)
    first = own if sources is None else sources.ranks(plan.first_row, stop)[1]
    arrays = {
        "source": pa.array([plan.source], pa.string()).take(pa.array(np.zeros(plan.rows, dtype=np.int64))),
        "line": table.column("line"),
        **{name: shorten(table.column(name).combine_chunks(), refused) for name in texts},
        "rejected": reasons,
        "first_row": pa.array(first, mask=refused),
    }
    if kind == "paraphrases":
        arrays["source_text"] = pa.nulls(plan.rows, pa.string())
        arrays["translation_score"] = pa.nulls(plan.rows, pa.float32())
        arrays["given_score"] = table.column("given_score")
    schema = schema_of(arrays)
    return pa.table([arrays[name] for name in schema.names], schema=schema)


@dataclass
class SourceReport:
    """Counts of one source."""

    rows: int = 0
    kept: int = 0
    rejected: dict[str, int] = field(default_factory=dict)
    changes: dict[str, int] = field(default_factory=dict)
    files: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class IngestReport:
    """What ingest did: ``rows`` = ``kept`` + the sum of ``rejected``, for each source and for the whole.

    rows: rows read. kept: rows not rejected. rejected: rejected rows by reason.
    changes: rows or lines repaired, by what was repaired. shards: shards written.
    sources: the same for each source, and its files. seconds: time taken. pairs_per_second: rows / seconds.
    """

    rows: int
    kept: int
    rejected: dict[str, int]
    changes: dict[str, int]
    shards: int
    sources: dict[str, SourceReport]
    seconds: float = 0.0
    pairs_per_second: int = 0

    def metrics(self) -> dict[str, Any]:
        """The numbers alone, for ``dvc metrics show``; the files and their SHA-256 are in _shards.json."""
        numbers = asdict(self)
        for source in numbers["sources"].values():
            del source["files"]
        return numbers


@dataclass(frozen=True)
class ReadSource:
    """A source whose files have been read."""

    files: SourceFiles
    parts: list[Part]
    reports: list[FileReport]
    digests: list[dict[str, str]]


def make_report(
    read: Sequence[ReadSource], plans: Sequence[ShardPlan], results: Sequence[ShardResult]
) -> IngestReport:
    """Count what was read and what is in the shards."""
    sources: dict[str, SourceReport] = {}
    for source in read:
        changes: Counter[str] = Counter()
        for report in source.reports:
            changes.update({what: count for what, count in report.changes.items() if count})
        files = [
            {"files": {path.name: digest[name] for name, path in file.paths.items()}, "rows": report.rows}
            for file, report, digest in zip(source.files.files, source.reports, source.digests, strict=True)
        ]
        sources[source.files.name] = SourceReport(changes=dict(sorted(changes.items())), files=files)
    rejected: dict[str, Counter[str]] = {name: Counter() for name in sources}
    for plan, result in zip(plans, results, strict=True):
        sources[plan.source].rows += result.record.rows
        rejected[plan.source].update(result.rejected)
    for name, source_report in sources.items():
        source_report.rejected = _in_order(rejected[name])
        source_report.kept = source_report.rows - sum(rejected[name].values())
    total: Counter[str] = sum(rejected.values(), Counter())
    all_changes: Counter[str] = sum((Counter(s.changes) for s in sources.values()), Counter())
    rows = sum(source.rows for source in sources.values())
    return IngestReport(
        rows=rows,
        kept=rows - total.total(),
        rejected=_in_order(total),
        changes=dict(sorted(all_changes.items())),
        shards=len(plans),
        sources=sources,
    )


def _in_order(counts: Counter[str]) -> dict[str, int]:
    return {name: counts[name] for name in NAMES if counts[name]}


def check_report(report: IngestReport, rows: int) -> None:
    """Compare with the number of rows that were read. Raises IncompleteError: counts do not add up, or every
    row was rejected."""
    if report.rows != rows:
        raise IncompleteError(f"ingest: {rows} rows were read, {report.rows} are in the shards")
    if report.kept == 0:
        told = ", ".join(f"{count:,} {reason}" for reason, count in report.rejected.items())
        raise IncompleteError(f"ingest: all {rows:,} rows were rejected ({told}): are the columns right?")


def log_report(report: IngestReport) -> None:
    """A line for each source and one for the whole."""
    for name, source in report.sources.items():
        told = "".join(f", {count:,} {reason}" for reason, count in source.rejected.items())
        repaired = "".join(f", {count:,} {what}" for what, count in source.changes.items())
        logger.info(
            "%s: %s rows, %s kept%s%s",
            name,
            f"{source.rows:,}",
            f"{source.kept:,}",
            told,
            f"; repaired{repaired[1:]}" if repaired else "",
        )
    logger.info(
        "%s pairs in %.1f s (%s pairs/s): %s kept, %s rejected, %d shards",
        f"{report.rows:,}",
        report.seconds,
        f"{report.pairs_per_second:,}",
        f"{report.kept:,}",
        f"{report.rows - report.kept:,}",
        report.shards,
    )
