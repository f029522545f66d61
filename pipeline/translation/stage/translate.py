"""Stage translate: translates each distinct sentence once, then gives every row its hypotheses."""

import logging
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.compute as pc

from paraforge.base.errors import IncompleteError, InputError
from paraforge.base.shards.pool import threads_for
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.schema import FLAG_COLUMNS
from paraforge.base.shards.step import run_step
from paraforge.base.shards.store import ShardDirectory
from paraforge.base.shards.work import WorkDirectory
from paraforge.translation.memory.distinct import NOT_CHOSEN, RowCounts, find_distinct
from paraforge.translation.stage.ordered_hypotheses import HypothesisFile, assemble, rows_step
from paraforge.translation.stage.parameters import TranslateParameters
from paraforge.translation.stage.quantization import QuantizationLoss, calibrate
from paraforge.translation.stage.remembering import Remembered, finish_tasks, translate_unknown
from paraforge.translation.stage.sentences import EngineChoice, choose_engine, plan_workplace

logger = logging.getLogger(__name__)

# With more reasons of failure than this, the report counts kinds of errors.
_REASONS = 20


@dataclass
class TranslationReport:
    """What the stage did: ``rows`` = ``translated`` + ``given`` + ``rejected`` + ``failed``.

    engine, compute_type, beam, nbest: how sentences were translated.
    model: SHA-256 of weights and vocabulary.
    rows: rows of the corpus. translated: rows with at least one hypothesis.
    given: rows that came with a translation. rejected: rows that ingest rejected.
    failed: rows without a hypothesis, by reason; includes those whose forward translation failed, see
        :func:`~paraforge.translation.stage.round_trip.round_trip`.
    hypotheses: rows written; with n-best, more than ``rows``.
    sentences: distinct sentences, the sum of the next three.
    sentences_from_memory: sentences known before this run; a resumed run is the same run.
    sentences_translated, sentences_failed: the other sentences by outcome. marks: hypotheses with each flag.
    mean_score: mean translation score of the best hypotheses.
    reused_tasks, tasks: tasks finished before the run was killed, and all tasks.
    seconds: time of the stage. sentences_per_second: rate of this process.
    calibration: loss of a quantized compute type on a sample, which decides ``compute_type``; None if not
        measured.
    """

    engine: str
    compute_type: str
    beam: int
    nbest: int
    model: str
    rows: int
    translated: int = 0
    given: int = 0
    rejected: int = 0
    failed: dict[str, int] = field(default_factory=dict)
    hypotheses: int = 0
    sentences: int = 0
    sentences_from_memory: int = 0
    sentences_translated: int = 0
    sentences_failed: int = 0
    marks: dict[str, int] = field(default_factory=dict)
    mean_score: float | None = None
    reused_tasks: int = 0
    tasks: int = 0
    seconds: float = 0.0
    sentences_per_second: float | None = None
    calibration: QuantizationLoss | None = None


def translate(
    parameters: TranslateParameters,
    ingested: Path,
    model: Path,
    output: Path,
    resources: Resources,
    lineage: Mapping[str, str | None] | None = None,
    finish: bool = True,
) -> TranslationReport:
    """Translate the rows of a corpus that have no translation, and publish complete rows.

    Sentences in the memory are not translated again. A killed run resumes with its unfinished tasks, about a
    minute of work per worker. The result does not depend on ``resources``, except that ``batch_tokens`` and
    the device affect rounding.

    parameters: section ``translate``. ingested: shards with the columns that ingest writes.
    model: directory of the model; ignored if there is nothing to translate.
    output: directory to publish, replaced as a whole: the columns of ``ingested`` and those of hypotheses.
    resources: where to run.
    lineage: additional columns with a constant value.
    finish: whether this ends the run. If not, the caller does so with
        :func:`~paraforge.translation.stage.round_trip.finish_translations`, and until then failed sentences
        are not tried again.

    Raises:
        InputError: the model does not exist, or engine, model and device are incompatible.
        IncompleteError: a shard failed, or counts do not add up.
        WorkLockedError: another process translates into the same work directory.
    """
    started = time.monotonic()
    corpus = ShardDirectory(ingested)
    work = WorkDirectory("translation", resources.work.resolve())
    threads = threads_for(resources, corpus.total_rows)
    with work.lock():
        distinct = find_distinct(corpus, work.path / "distinct", threads, parameters.maximum_sentences)
        sentences = len(distinct)
        choice = _choice(parameters, model, resources, sentences)
        remembered: Remembered | None = None
        hypotheses: HypothesisFile | None = None
        calibration: QuantizationLoss | None = None
        if sentences:
            workplace = plan_workplace(choice.engine, resources, sentences)
            if parameters.check_quantized:
                choice, calibration = calibrate(choice, corpus, sentences, workplace, resources)
            remembered = translate_unknown(
                choice, corpus, distinct, parameters, workplace, resources, work.path
            )
            hypotheses = assemble(
                remembered.recalled, choice.options.nbest, work.path / "hypotheses", threads
            )
        notes = {name: corpus.description[name] for name in ("forward",) if name in corpus.description}
        if (limit := distinct.limit()) is not None:
            notes["chosen"] = {"maximum_sentences": limit}
        step = rows_step(choice, hypotheses, remembered, lineage or {}, notes)
        try:
            run_step(step, [ingested, distinct.places], output, resources)
        except InputError as error:
            if error.path is None or not Path(error.path).is_relative_to(distinct.path):
                raise
            raise InputError(error.message, error.path, error.line, distinct.remedy) from error
        work.keep_only(["calibration", "distinct", "tasks"])
        if finish:
            finish_tasks(work.path)
    report = _report(ShardDirectory(output), choice, corpus.total_rows, distinct.row_counts())
    report.sentences = sentences
    report.calibration = calibration
    if remembered is not None:
        report.sentences_from_memory = remembered.from_memory
        report.sentences_translated, report.sentences_failed = remembered.translated, remembered.failed
        report.tasks = remembered.tasks
        report.reused_tasks = report.tasks - (remembered.step.shards - remembered.step.reused)
        if remembered.translated_now:
            report.sentences_per_second = round(
                remembered.translated_now / max(remembered.step.seconds, 1e-3), 1
            )
    report.seconds = round(time.monotonic() - started, 3)
    _log(report)
    return report


def _choice(
    parameters: TranslateParameters, model: Path, resources: Resources, sentences: int
) -> EngineChoice:
    if not sentences:  # every row came with its translation
        return EngineChoice("none", parameters.options(), {}, "none", None)
    return choose_engine(parameters.engine, model, parameters.options(), parameters.settings(), resources)


def _report(
    published: ShardDirectory, choice: EngineChoice, rows: int, expected: RowCounts
) -> TranslationReport:
    """Count the published rows. Raises IncompleteError unless the rows of each kind add up to the input's."""
    options = choice.options
    report = TranslationReport(
        engine=choice.engine,
        compute_type=options.compute_type,
        beam=options.beam,
        nbest=options.nbest,
        model=choice.weights,
        rows=rows,
    )
    failed: Counter[str] = Counter()
    report.marks = dict.fromkeys(FLAG_COLUMNS, 0)
    total, scored, done = 0.0, 0, 0
    for table in published.tables(["rank", "rejected", "failed", "translation_score", *FLAG_COLUMNS]):
        report.hypotheses += table.num_rows
        best = table.filter(pc.equal(table.column("rank"), 0))
        open_rows = best.filter(pc.is_null(best.column("rejected")))
        report.rejected += best.num_rows - open_rows.num_rows
        reasons = open_rows.column("failed")
        failed.update(reasons.drop_null().to_pylist())
        done += reasons.null_count
        for name in FLAG_COLUMNS:
            report.marks[name] += pc.sum(table.column(name)).as_py() or 0
        scores = open_rows.column("translation_score")
        total += pc.sum(scores).as_py() or 0.0
        scored += len(scores) - scores.null_count
    report.failed = _by_reason(failed)
    report.mean_score = round(total / scored, 6) if scored else None
    report.given = expected.given
    report.translated = done - expected.given
    waiting = report.translated + failed.total()
    accounted = report.rejected + report.given + waiting
    tried = expected.waiting + expected.failed
    if accounted != rows or report.rejected != expected.rejected or waiting != tried:
        raise IncompleteError(
            f"translate: {rows} rows came in, {expected.rejected} of them rejected before, "
            f"{expected.failed} failed, {expected.given} with a translation and {expected.waiting} to "
            f"translate; {report.rejected} are rejected, {report.translated} translated and "
            f"{failed.total()} failed"
        )
    return report


def _by_reason(failed: Counter[str]) -> dict[str, int]:
    """Return counts by reason, or by kind of error if many reasons quote a sentence."""
    if len(failed) > _REASONS:
        kinds: Counter[str] = Counter()
        for reason, count in failed.items():
            kinds[":".join(reason.split(":")[: 1 + reason.startswith("forward: ")])] += count
        failed = kinds
    return dict(sorted(failed.items()))


def _log(report: TranslationReport) -> None:
    logger.info(
        "%d rows: %d translated, %d came with a translation, %d rejected before, %d failed; "
        "%d sentences, %d of them from the translation memory",
        report.rows,
        report.translated,
        report.given,
        report.rejected,
        sum(report.failed.values()),
        report.sentences,
        report.sentences_from_memory,
    )
    for reason, rows in report.failed.items():
        level = logging.INFO if reason.endswith(NOT_CHOSEN) else logging.WARNING
        logger.log(level, "%d rows failed: %s", rows, reason)
    for mark, rows in report.marks.items():
        if rows:
            logger.info("%d hypotheses are marked %s", rows, mark)
