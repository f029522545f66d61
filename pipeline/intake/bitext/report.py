"""What ingest did, in numbers that add up: for each source and for the whole."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from paraforge.base.errors import IncompleteError
from paraforge.intake.bitext.block import NAMES
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


def report_source(
    files: SourceFiles,
    reports: Sequence[FileReport],
    digests: Sequence[Mapping[str, str]],
    rejected: Counter[str],
) -> SourceReport:
    """Count one source. files, reports, digests: its files in order. rejected: its rows in the shards."""
    rows = sum(report.rows for report in reports)
    changes: Counter[str] = Counter()
    for report in reports:
        changes.update({what: count for what, count in report.changes.items() if count})
    return SourceReport(
        rows=rows,
        kept=rows - rejected.total(),
        rejected=_in_order(rejected),
        changes=dict(sorted(changes.items())),
        files=[
            {"files": {path.name: digest[name] for name, path in file.paths.items()}, "rows": report.rows}
            for file, report, digest in zip(files.files, reports, digests, strict=True)
        ],
    )


def add_up(sources: dict[str, SourceReport], shards: int, written: int) -> IngestReport:
    """The report of the whole. written: rows in the shards. Raises IncompleteError if counts do not add up,
    or every row was rejected."""
    rejected: Counter[str] = sum((Counter(one.rejected) for one in sources.values()), Counter())
    changes: Counter[str] = sum((Counter(one.changes) for one in sources.values()), Counter())
    rows = sum(source.rows for source in sources.values())
    if written != rows:
        raise IncompleteError(f"ingest: {rows} rows were read, {written} are in the shards")
    kept = rows - rejected.total()
    if kept == 0:
        told = ", ".join(f"{count:,} {reason}" for reason, count in _in_order(rejected).items())
        raise IncompleteError(f"ingest: all {rows:,} rows were rejected ({told}): are the columns right?")
    return IngestReport(rows, kept, _in_order(rejected), dict(sorted(changes.items())), shards, sources)


def _in_order(counts: Counter[str]) -> dict[str, int]:
    return {name: counts[name] for name in NAMES if counts[name]}


def log_report(report: IngestReport) -> None:
    """Log a line for each source and one for the whole."""
    for name, source in report.sources.items():
        told = "".join(f", {count:,} {reason}" for reason, count in source.rejected.items())
        repaired = ", ".join(f"{count:,} {what}" for what, count in source.changes.items())
        ending = f"; repaired {repaired}" if repaired else ""
        logger.info("%s: %s rows, %s kept%s%s", name, f"{source.rows:,}", f"{source.kept:,}", told, ending)
    logger.info(
        "%s pairs in %.1f s (%s pairs/s): %s kept, %s rejected, %d shards",
        f"{report.rows:,}",
        report.seconds,
        f"{report.pairs_per_second:,}",
        f"{report.kept:,}",
        f"{report.rows - report.kept:,}",
        report.shards,
    )
