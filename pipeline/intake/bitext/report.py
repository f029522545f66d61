"""Reports what ingest did, in numbers that add up, per source and in total."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from paraforge.base.errors import IncompleteError
from paraforge.intake.bitext.cleaning import EXAMPLE_CHARACTERS, Findings
from paraforge.intake.bitext.source import NAMES, REASONS

logger = logging.getLogger(__name__)

# A reason that rejects more than this share of a source is reported with examples.
_FREQUENT = 0.05
# This reason is reported with examples even if it is rare.
_ALWAYS = "damaged_characters"
_EXAMPLES = 3
# A problem that was noticed in this share of a source causes a warning; markup always does.
_NOTICED = 0.01
_ADVICE = {
    "markup": "have markup in a text. Remove it from the files, because translation and scores treat "
    "it as words",
    "question_marks": "have question marks inside words, so letters may have been lost. Get the "
    "files in UTF-8",
    "doubled_quotes": "are quoted as in CSV, with doubled quotation marks inside. If the file is CSV, set "
    "format: csv, and its separator",
}


@dataclass
class SourceReport:
    """Counts of one source.

    rejected: rejected rows by reason. changes, noticed, examples: see :class:`Findings`.
    frequent: reasons that reject many rows, each with its share and examples (line and texts).
    files: SHA-256 and number of rows of each file.
    """

    rows: int
    kept: int
    rejected: dict[str, int]
    changes: dict[str, int]
    noticed: dict[str, int]
    frequent: dict[str, dict[str, Any]]
    examples: dict[str, str]
    files: list[dict[str, Any]]

    def warnings(self) -> list[str]:
        """Return the warnings for this source, one sentence each."""
        warnings = []
        for reason, rejections in self.frequent.items():
            shown = "; ".join(
                f"line {line}: {' | '.join(map(repr, texts))}" for line, *texts in rejections["examples"]
            )
            share = max(1, round(100 * rejections["share"]))
            warnings.append(
                f"{share}% of the rows are rejected as {reason} ({REASONS[reason]}), e.g. {shown}"
            )
        for name, rows in self.noticed.items():
            if name == "markup" or rows >= max(_EXAMPLES, _NOTICED * self.rows):
                share = f"{max(1, round(100 * rows / self.rows))}% of the rows ({rows:,})"
                warnings.append(f"{share} {_ADVICE[name]}, e.g. {self.examples[name]!r}")
        return warnings


@dataclass
class RowCounts:
    """Counts of a source's rows by reason of rejection, with the line and texts of the first rows of each."""

    rows: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[list[Any]]] = field(default_factory=dict)

    def add(self, table: pa.Table, texts: Sequence[str]) -> None:
        """Count the rows of a table. texts: names of the columns to show in examples."""
        self.rows += table.num_rows
        for reason, count in Counter(table["rejected"].drop_null().to_pylist()).items():
            self.rejected[reason] += count
            known = self.examples.setdefault(reason, [])
            if len(known) < _EXAMPLES:
                rows = table.filter(pc.equal(table["rejected"], reason))[: _EXAMPLES - len(known)]
                for row in rows.select(["line", *texts]).to_pylist():
                    line, *row_texts = row.values()
                    known.append([line, *(text[:EXAMPLE_CHARACTERS] for text in row_texts)])

    def report(self, findings: Findings, files: Sequence[Mapping[str, Any]] = ()) -> SourceReport:
        """Return the report of the source. files: see :class:`SourceReport`."""
        rejected = _in_order(self.rejected)
        return SourceReport(
            rows=self.rows,
            kept=self.rows - self.rejected.total(),
            rejected=rejected,
            changes=dict(sorted((+findings.changes).items())),
            noticed=dict(sorted((+findings.noticed).items())),
            frequent={
                reason: {"share": round(count / self.rows, 4), "examples": self.examples[reason]}
                for reason, count in rejected.items()
                if count > _FREQUENT * self.rows or reason == _ALWAYS
            },
            examples=dict(sorted(findings.examples.items())),
            files=[dict(file) for file in files],
        )


@dataclass
class IngestReport:
    """Counts of all sources: ``rows`` = ``kept`` + the sum of ``rejected``, per source and in total.

    rows: rows read. kept: rows not rejected. rejected: rejected rows by reason.
    changes: repaired texts or lines by kind of repair. shards: number of shards written.
    sources: report of each source. seconds: time taken. pairs_per_second: rows / seconds.
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
        """Return the numbers for ``dvc metrics show``; files and examples are only in _shards.json."""
        numbers = asdict(self)
        for source in numbers["sources"].values():
            del source["files"], source["examples"]
        return numbers


def add_up(sources: dict[str, SourceReport], rows: int, written: Sequence[int]) -> IngestReport:
    """Return the report of all sources.

    rows: number of rows read. written: number of rows of each shard.
    Raises IncompleteError if the counts do not add up, or if every row was rejected.
    """
    rejected: Counter[str] = sum((Counter(report.rejected) for report in sources.values()), Counter())
    changes: Counter[str] = sum((Counter(report.changes) for report in sources.values()), Counter())
    kept = sum(source.kept for source in sources.values())
    total = kept + rejected.total()
    if not rows == sum(written) == total:
        told = f"{rows} rows were read, {sum(written)} are in the shards, and {total} were counted"
        raise IncompleteError(told)
    if kept == 0:
        told = ", ".join(f"{count:,} {reason}" for reason, count in _in_order(rejected).items())
        remedy = "Check that each source names the right columns, and the limits in ingest.cleaning."
        if rejected["damaged_characters"] > rows / 2:
            remedy = "The text was decoded with the wrong encoding: get the files in UTF-8."
        raise IncompleteError(f"all {rows:,} rows were rejected ({told}). {remedy}")
    return IngestReport(rows, kept, _in_order(rejected), dict(sorted(changes.items())), len(written), sources)


def _in_order(counts: Counter[str]) -> dict[str, int]:
    return {name: counts[name] for name in NAMES if counts[name]}


def log_report(report: IngestReport) -> None:
    """Log a line for each source and one for the total."""
    for name, source in report.sources.items():
        told = "".join(f", {count:,} {reason}" for reason, count in source.rejected.items())
        repaired = ", ".join(f"{count:,} {what}" for what, count in source.changes.items())
        ending = f"; repaired {repaired}" if repaired else ""
        logger.info("%s: %s rows, %s kept%s%s", name, f"{source.rows:,}", f"{source.kept:,}", told, ending)
        for warning in source.warnings():
            logger.warning("%s: %s", name, warning)
    logger.info(
        "%s pairs in %.1f s (%s pairs/s): %s kept, %s rejected, %d shards",
        f"{report.rows:,}",
        report.seconds,
        f"{report.pairs_per_second:,}",
        f"{report.kept:,}",
        f"{report.rows - report.kept:,}",
        report.shards,
    )
