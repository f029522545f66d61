"""Reports what ingest did, in numbers that add up, per source and in total."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from paraforge.base.errors import IncompleteError
from paraforge.intake.bitext.block import NAMES, REASONS, Block
from paraforge.intake.bitext.cleaning import EXAMPLE_CHARACTERS, Notices, reason_names
from paraforge.intake.bitext.parts import FileReport
from paraforge.intake.bitext.sources import SourceFiles

logger = logging.getLogger(__name__)


# Reasons that reject more than this share of a source are reported with examples,
_FREQUENT = 0.05
# and so is this reason at any share.
_ALWAYS = "damaged_characters"
EXAMPLES = 3
# Something noticed in this share of a source causes a warning; markup always does.
_NOTICED = 0.01
_ADVICE = {
    "markup": "have markup in a text. Remove it from the files: translation and scores take it for words",
    "question_marks": "have question marks inside words, as if letters had been lost. Get the files in UTF-8",
}


@dataclass
class SourceReport:
    """Counts of one source.

    noticed: rows with something that is not repaired.
    frequent: reasons that reject many rows, each with its share and examples (line and texts).
    examples: a text for each thing noticed.
    """

    rows: int = 0
    kept: int = 0
    rejected: dict[str, int] = field(default_factory=dict)
    changes: dict[str, int] = field(default_factory=dict)
    noticed: dict[str, int] = field(default_factory=dict)
    frequent: dict[str, dict[str, Any]] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)
    files: list[dict[str, Any]] = field(default_factory=list)

    def warnings(self) -> list[str]:
        """Return the warnings for this source, one sentence each."""
        found = []
        for reason, one in self.frequent.items():
            shown = "; ".join(
                f"line {line}: {' | '.join(map(repr, texts))}" for line, *texts in one["examples"]
            )
            share = max(1, round(100 * one["share"]))
            found.append(f"{share}% of the rows are rejected as {reason} ({REASONS[reason]}), e.g. {shown}")
        for name, rows in self.noticed.items():
            if name == "markup" or rows >= max(EXAMPLES, _NOTICED * self.rows):
                share = f"{max(1, round(100 * rows / self.rows))}% of the rows ({rows:,})"
                found.append(f"{share} {_ADVICE[name]}, e.g. {self.examples[name]!r}")
        return found


@dataclass
class IngestReport:
    """What ingest did: ``rows`` = ``kept`` + the sum of ``rejected``, per source and in total.

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
        """Return only the numbers, for ``dvc metrics show``. The files and their SHA-256 are in
        _shards.json."""
        numbers = asdict(self)
        for source in numbers["sources"].values():
            del source["files"], source["examples"]
        return numbers


def summarize_rows(block: Block, notices: Notices) -> SourceReport:
    """Count the rows of one cleaned block."""
    names = reason_names(block.codes).to_pylist()
    rejected = Counter(name for name in names if name is not None)
    examples: dict[str, list[list[Any]]] = {}
    texts = list(block.texts.values())
    for row, name in enumerate(names):
        if name is not None and len(known := examples.setdefault(name, [])) < EXAMPLES:
            known.append([int(block.lines[row]), *(one[row].as_py()[:EXAMPLE_CHARACTERS] for one in texts)])
    return SourceReport(
        rows=len(block),
        kept=len(block) - rejected.total(),
        rejected=_in_order(rejected),
        noticed=dict(+notices.rows),
        frequent=_frequent(rejected, len(block), examples),
        examples=notices.examples,
    )


def _frequent(
    rejected: Counter[str], rows: int, examples: Mapping[str, list[list[Any]]]
) -> dict[str, dict[str, Any]]:
    return {
        reason: {"share": round(count / rows, 4), "examples": examples[reason]}
        for reason, count in _in_order(rejected).items()
        if count > _FREQUENT * rows or reason == _ALWAYS
    }


def report_source(
    files: SourceFiles,
    reports: Sequence[FileReport],
    digests: Sequence[Mapping[str, str]],
    rejected: Counter[str],
    examples: Mapping[str, list[list[Any]]],
) -> SourceReport:
    """Count one source. files, reports, digests: its files in order. rejected: its rows in the shards.
    examples: rows for each reason."""
    rows = sum(report.rows for report in reports)
    changes: Counter[str] = sum((Counter(report.changes) for report in reports), Counter())
    noticed: Counter[str] = sum((Counter(report.noticed) for report in reports), Counter())
    shown = {name: text for report in reversed(reports) for name, text in report.examples.items()}
    return SourceReport(
        rows=rows,
        kept=rows - rejected.total(),
        rejected=_in_order(rejected),
        changes=dict(sorted(changes.items())),
        noticed=dict(sorted(noticed.items())),
        frequent=_frequent(rejected, rows, examples),
        examples=dict(sorted(shown.items())),
        files=[
            {"files": {path.name: digest[name] for name, path in file.paths.items()}, "rows": report.rows}
            for file, report, digest in zip(files.files, reports, digests, strict=True)
        ],
    )


def add_up(sources: dict[str, SourceReport], shards: int, written: int) -> IngestReport:
    """Return the report of all sources. written: rows in the shards. Raises IncompleteError if counts do not
    add up, or every row was rejected."""
    rejected: Counter[str] = sum((Counter(one.rejected) for one in sources.values()), Counter())
    changes: Counter[str] = sum((Counter(one.changes) for one in sources.values()), Counter())
    rows = sum(source.rows for source in sources.values())
    if written != rows:
        raise IncompleteError(f"ingest: {rows} rows were read, {written} are in the shards")
    kept = rows - rejected.total()
    if kept == 0:
        told = ", ".join(f"{count:,} {reason}" for reason, count in _in_order(rejected).items())
        remedy = "Check that each source names the right columns, and the limits in ingest.cleaning."
        if rejected["damaged_characters"] > rows / 2:
            remedy = "The text was decoded with the wrong encoding: get the files in UTF-8."
        raise IncompleteError(f"ingest: all {rows:,} rows were rejected ({told}). {remedy}")
    return IngestReport(rows, kept, _in_order(rejected), dict(sorted(changes.items())), shards, sources)


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
