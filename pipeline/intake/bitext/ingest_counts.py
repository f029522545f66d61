"""What ingest read, repaired and rejected: counts for each source and for the whole, which have to add up."""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from paraforge.base.errors import IncompleteError
from paraforge.intake.bitext.block import NAMES
from paraforge.intake.bitext.ingested_shards import Part, ShardPlan, ShardResult
from paraforge.intake.bitext.parts import FileReport
from paraforge.intake.bitext.sources import SourceFiles

logger = logging.getLogger(__name__)


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
