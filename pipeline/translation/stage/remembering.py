"""Translates sentences that the memory lacks, in tasks that survive a kill, and adds them to the memory."""

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paraforge.base.errors import IncompleteError, InputError
from paraforge.base.files import hash_json, read_json, remove_directory, write_json
from paraforge.base.shards.libraries import (
    Versions,
    describe_differences,
    is_made_otherwise,
    merge_versions,
    own_versions,
)
from paraforge.base.shards.pool import in_threads, threads_for
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.step import StepReport, run_step, shard_keys
from paraforge.base.shards.store import ShardDirectory, ShardView, ShardWriter, read_parquet
from paraforge.base.shards.work import WorkDirectory, libraries_of, replaced_directory
from paraforge.translation.decoding.translator import Hypotheses
from paraforge.translation.memory.distinct import DistinctSentences
from paraforge.translation.memory.memory import HypothesisRows, MemorySet, Segment, open_set
from paraforge.translation.memory.recall import Recalled, recall
from paraforge.translation.stage.parameters import TranslateParameters
from paraforge.translation.stage.sentences import SET_METADATA, EngineChoice, Workplace, sentences_step

logger = logging.getLogger(__name__)

_SENTENCES = pa.schema([pa.field("source_text", pa.string())])
_TASKS, _STATE = "tasks", "tasks.json"
# The rate is measured if there are this many times more sentences than the measurement needs.
_PROBES = 8


@dataclass
class Tasks:
    """The progress of a run, stored so that a killed run can resume with the same tasks.

    key: hash of corpus, model, engine, options and task size.
    unknown: number of sentences that the memory did not have. tasks: number of tasks.
    size: sentences per task; 0 until the rate is known.
    segments: digests of the memory's segments with the results so far.
    translating: whether some tasks' results are not in the memory yet.
    finished: whether the corpus has been written. more: whether more tasks follow.
    """

    key: str
    unknown: int = 0
    tasks: int = 0
    size: int = 0
    segments: list[str] = field(default_factory=list)
    translating: bool = False
    finished: bool = False
    more: bool = False


@dataclass(frozen=True)
class Remembered:
    """The result of :func:`translate_unknown`: the memory has every sentence.

    recalled: where the memory has each sentence.
    from_memory, translated, failed: sentences that were known before, translated, and failed.
    known_before: sentences that other runs translated; unlike ``from_memory`` it does not change if this run
        is killed or repeated.
    tasks: number of tasks, of this process or an earlier one.
    translated_now: like ``translated``, without sentences that an earlier process of this run finished.
    step: the tasks of this process.
    """

    recalled: Recalled
    from_memory: int
    translated: int
    failed: int
    known_before: int
    tasks: int
    translated_now: int
    step: StepReport

    def versions(self) -> dict[str, list[str]]:
        """Return the versions of the libraries that translated."""
        return merge_versions(segment.libraries for segment in self.recalled.needed())


def open_memory(choice: EngineChoice, resources: Resources) -> MemorySet:
    """Return the set of the translation memory for an engine with its options and model."""
    return open_set(resources.memory_directory().resolve(), choice.description())


def translate_unknown(
    choice: EngineChoice,
    corpus: ShardDirectory,
    distinct: DistinctSentences,
    parameters: TranslateParameters,
    workplace: Workplace,
    resources: Resources,
    work: Path,
) -> Remembered:
    """Translate the sentences of a corpus that the memory lacks, and add them to it.

    choice: engine with options and model. corpus: ingested shards.
    parameters: the size of a task. workplace, resources: where to run.
    work: directory for the tasks; the caller holds its lock, and calls :func:`finish_tasks` once the corpus
        is written.

    Raises:
        IncompleteError: a task failed, or sentences have no result.
    """
    memory = open_memory(choice, resources)
    run = hash_json([distinct.path.name, memory.path.name])
    key = hash_json([run, parameters.sentences_per_task])
    results = WorkDirectory("translate-sentences", resources.work)
    tasks = _read_state(work)
    report = StepReport(0, 0, 0, 0.0)
    threads = threads_for(resources, len(distinct))
    complete = False  # whether this process made tasks of everything that the memory lacks
    if tasks is None or tasks.key != key or tasks.finished:
        _adopt(results, memory.path.parent, run)
        recalled = recall(distinct.keys, usable_segments(memory, choice), [], work / "recall")
        warn_of_versions(recalled, choice)
        if not len(recalled.unknown):
            # Tasks left by another run are invalid, and are not resumed.
            _write_state(work, Tasks(key, finished=True))
            return _remembered(recalled, Tasks(key), run, 0, report)
        memory.begin()
        tasks = Tasks(key, unknown=len(recalled.unknown))
        tasks = _write_tasks(work, tasks, corpus, distinct, recalled, parameters, workplace, threads)
        complete = not tasks.more
        logger.info(
            "%d sentences: %d are in the translation memory, translating %d",
            len(distinct),
            len(distinct) - tasks.unknown,
            tasks.unknown,
        )
    now = 0
    while True:
        if tasks.translating:
            step = sentences_step(choice, workplace)
            done = run_step(step, [work / _TASKS], None, resources, workplace.workers)
            report = _sum(report, done)
            view = ShardView(work / _TASKS)
            new = round(view.total_rows * (1 - done.reused / done.shards))
            now += new
            if not tasks.size and new:
                busy = min(workplace.worker_count, done.shards - done.reused)
                rate = new / max(done.seconds, 1e-3) / busy
                left = tasks.unknown - view.total_rows
                tasks.size = parameters.task_size(left, rate, workplace.worker_count, workplace.window)
                logger.info("%.1f sentences/s for each worker: tasks of %d sentences", rate, tasks.size)
            files = map(results.file, shard_keys(step, view))
            tasks.segments += memory.add(_tables(files, threads), run, threads)
            tasks.translating = False
            _write_state(work, tasks)
        _discard_all(results)
        segments = usable_segments(memory, choice)
        recalled = recall(distinct.keys, segments, tasks.segments, work / "recall")
        if not len(recalled.unknown):
            return _remembered(recalled, tasks, run, now, report)
        lacking = len(recalled.unknown)
        if complete:
            # Their keys or texts do not match the corpus.
            raise IncompleteError(
                f"translate: {lacking} sentences have no result: a file in {distinct.path} is "
                f"damaged. {distinct.remedy}"
            )
        if not tasks.more:  # a part of the memory was deleted, or another memory was chosen
            logger.warning("%d sentences are no longer in the translation memory, translating them", lacking)
            tasks.unknown = min(len(distinct), tasks.unknown + lacking)
        tasks = _write_tasks(work, tasks, corpus, distinct, recalled, parameters, workplace, threads)
        complete = not tasks.more


def finish_tasks(work: Path) -> None:
    """Record that the corpus is written. The next run tries failed sentences again."""
    tasks = _read_state(work)
    remove_directory(work / _TASKS)  # before the state is written, so that a run killed here is resumed
    if tasks is not None:
        tasks.finished = True
        _write_state(work, tasks)


def remember(choice: EngineChoice, resources: Resources, answers: Mapping[str, Hypotheses]) -> None:
    """Add translations made outside of a run, by sentence."""
    rows = HypothesisRows()
    good = {sentence: result for sentence, result in answers.items() if result.failed is None}
    for result in good.values():
        rows.add(result)
    if good:
        table = rows.table(pa.array(list(good), pa.string()))
        open_memory(choice, resources).add([(table, _versions(choice))])


def usable_segments(memory: MemorySet, choice: EngineChoice) -> list[Segment]:
    """List the segments, starting with those made by the installed versions of libraries."""
    current = _versions(choice)
    return sorted(memory.segments(), key=lambda segment: is_made_otherwise(segment.libraries, current))


def known_segments(choice: EngineChoice, resources: Resources) -> list[Segment]:
    """Return what the next run will reuse: segments of the memory, and finished tasks that are not in it
    yet."""
    memory = open_memory(choice, resources)
    known = usable_segments(memory, choice)
    results = WorkDirectory("translate-sentences", resources.work)
    for file in _find_finished(results).get(json.dumps(memory.description).encode(), []):
        known.append(Segment(file, pq.read_metadata(file).num_rows, libraries_of(file)))
    return known


def warn_of_versions(recalled: Recalled, choice: EngineChoice) -> None:
    """Warn if other versions of libraries made some of the remembered translations."""
    current = _versions(choice)
    libraries = [segment.libraries for segment in recalled.needed()]
    if others := [recorded for recorded in libraries if is_made_otherwise(recorded, current)]:
        logger.warning(
            "some translations in the memory were made with %s; the manifest lists all versions",
            describe_differences(others, current),
        )


def _versions(choice: EngineChoice) -> Versions:
    """Return the versions of libraries that affect translations, without pyarrow, which only writes them."""
    return own_versions(choice.libraries())


def _remembered(
    recalled: Recalled, tasks: Tasks, run: str, translated_now: int, step: StepReport
) -> Remembered:
    count, failed, unknown = len(recalled.places), recalled.failed, tasks.unknown
    return Remembered(
        recalled=recalled,
        from_memory=count - unknown,
        translated=unknown - failed,
        failed=failed,
        known_before=count - recalled.made_by(run),
        tasks=tasks.tasks,
        translated_now=translated_now,
        step=step,
    )


def _sum(first: StepReport, second: StepReport) -> StepReport:
    return StepReport(
        first.rows + second.rows,
        first.shards + second.shards,
        first.reused + second.reused,
        first.seconds + second.seconds,
    )


def _read_state(work: Path) -> Tasks | None:
    """Return the state of an earlier run; None if there is none that this version can read, or its tasks were
    deleted."""
    try:
        tasks = Tasks(**read_json(work / _STATE))
    except (InputError, TypeError):
        return None
    return None if tasks.translating and not (work / _TASKS).is_dir() else tasks


def _write_state(work: Path, tasks: Tasks) -> None:
    write_json(work / _STATE, asdict(tasks))


def _write_tasks(
    work: Path,
    before: Tasks,
    corpus: ShardDirectory,
    distinct: DistinctSentences,
    recalled: Recalled,
    parameters: TranslateParameters,
    workplace: Workplace,
    threads: int,
) -> Tasks:
    """Divide the unknown sentences into tasks, in the order of the corpus.

    If there are many sentences and the rate is unknown, only one window per worker is made at first, whose
    time decides the size of the other tasks.
    """
    unknown, size = recalled.unknown, before.size
    probe = workplace.window * workplace.worker_count
    if not size and (parameters.sentences_per_task or len(unknown) <= _PROBES * probe):
        size = parameters.task_size(len(unknown), 0.0, workplace.worker_count, workplace.window)
    if not size:
        unknown = unknown[:probe]
    (work / _STATE).unlink(missing_ok=True)
    with replaced_directory(work / _TASKS) as temporary:
        writer = ShardWriter(temporary, _SENTENCES, size or workplace.window)
        for texts in distinct.texts(corpus, unknown, threads):
            writer.write(pa.table([pc.fill_null(texts, "")], schema=_SENTENCES))
        written = writer.close({"step": "unknown-sentences"})
    tasks = Tasks(
        before.key,
        before.unknown,
        before.tasks + len(written),
        size,
        before.segments,
        translating=True,
        more=len(unknown) < len(recalled.unknown),
    )
    _write_state(work, tasks)
    return tasks


def _tables(files: Iterable[Path], threads: int = 1) -> Iterator[tuple[pa.Table, Versions]]:
    return in_threads(lambda file: (read_parquet(file), libraries_of(file)), files, threads)


def _adopt(results: WorkDirectory, root: Path, run: str) -> None:
    """Add finished tasks of a killed run to the memory if it cannot resume because something has changed."""
    for description, files in _find_finished(results).items():
        logger.info("adding %d tasks of an unfinished run to the memory", len(files))
        open_set(root, json.loads(description)).add(_tables(files), run)
    _discard_all(results)


def _find_finished(results: WorkDirectory) -> dict[bytes, list[Path]]:
    """Return the files of finished tasks, by the set of the memory to which they belong."""
    shards_of: dict[bytes, list[Path]] = {}
    for path, footer in results.finished():
        if (description := footer.metadata.get(SET_METADATA)) is not None:
            shards_of.setdefault(description, []).append(path)
    return shards_of


def _discard_all(results: WorkDirectory) -> None:
    for path in results.path.glob("*.parquet"):
        path.unlink(missing_ok=True)
