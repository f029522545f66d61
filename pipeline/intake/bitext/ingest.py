"""Ingest: parallel or paraphrase corpora in, cleaned shards with a reason for every rejection out."""

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from paraforge.base.errors import InputError
from paraforge.base.files import hash_json, remove_directory, sha256_file
from paraforge.base.shards.libraries import installed, merged, settle_versions
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.scheduler import Jobs, open_jobs
from paraforge.base.shards.store import ShardDirectory
from paraforge.base.shards.work import WorkDirectory
from paraforge.intake.bitext.examination import check_first_rows, check_spread_rows
from paraforge.intake.bitext.ingested_shards import (
    IngestReport,
    Part,
    ReadSource,
    ShardPlan,
    ShardResult,
    check_report,
    log_report,
    make_report,
    plan_shards,
    rank_groups,
    write_shards,
)
from paraforge.intake.bitext.languages import Languages
from paraforge.intake.bitext.parameters import IngestParameters
from paraforge.intake.bitext.parts import PAIR_KEY, SOURCE_KEY, TEXTS, FileReport, drop_keys, read_parts
from paraforge.intake.bitext.sources import (
    SourceFile,
    SourceFiles,
    file_key,
    read_row_numbers,
    resolve,
)
from paraforge.versions import INGEST

# Shards a job writes: opening the ranked groups costs as much as writing half a shard.
_SHARDS_A_JOB = 8
# Whether other processes are worth their start is measured in rows of steps that take far longer a row than
# reading does: this many bytes of input cost about as much as one of those.
_BYTES_A_ROW = 8_000
# More cannot be kept busy by the one that reads.
_MOST_THREADS = 8


def ingest(
    parameters: IngestParameters, output: Path, resources: Resources, languages: Languages | None = None
) -> IngestReport:
    """Read, clean and deduplicate the sources, and publish them as shards.

    Shards have the columns ``source line source_text reference rejected first_row``; for an existing
    paraphrase corpus also ``translation given_score`` and empty ``source_text`` and ``translation_score``. A
    shard does not mix sources. Rejected rows stay, with their reason. ``line`` counts through all files of a
    source.

    A killed run resumes where it was: files read and shards written are reused. The result does not depend
    on ``resources``.

    parameters: section ``ingest``. output: directory to publish, replaced as a whole.
    resources: where to run. languages: what a bitext should be in; not looked at where None.

    Raises:
        ConfigurationError: files that are missing, all in one message; rows in other languages.
        InputError: a source that cannot be read, with file and line.
        IncompleteError: no row is kept, or counts do not add up.
        WorkLockedError: another process is ingesting into the same work directory.
        Interrupted: SIGTERM or Ctrl-C.
    """
    started = time.monotonic()
    work = WorkDirectory("ingest", resources.work.resolve())
    with work.lock():
        for left in work.path.glob("**/.*.tmp"):
            left.unlink(missing_ok=True)  # of a writer that was killed
        sources = resolve(parameters, work.path)
        check_first_rows(sources, parameters, languages)
        size = sum(file.size for source in sources for file in source.files)
        with open_jobs(resources, 1 + size // _BYTES_A_ROW) as jobs:
            read = _read(sources, parameters, work, jobs, resources, languages)
            rows = read[-1].parts[-1].first_row + read[-1].parts[-1].rows
            run = _run_key(parameters, read)
            plans: list[ShardPlan] = []
            for source in read:
                plans += plan_shards(
                    source.files.name, source.parts, parameters.rows_per_shard, len(plans), run
                )
            finished = [plan.key for plan in plans if work.find(plan.key) is not None]
            settle_versions(work, finished, len(plans), installed(), resources)
            results = _write(plans, read, parameters, work, jobs, run)
        report = make_report(read, plans, results)
        check_report(report, rows)
        description = {
            "step": "ingest",
            "version": INGEST,
            "kind": parameters.kind,
            "parameters": parameters.model_dump(mode="json", include={"cleaning", "rows_per_shard"}),
            "counts": {"rows": report.rows, "kept": report.kept, "rejected": report.rejected},
            "sources": {name: vars(source) for name, source in report.sources.items()},
            "libraries": merged(work.made_with(plan.key) for plan in plans),
        }
        work.publish([plan.key for plan in plans], [result.record for result in results], output, description)
        for left in work.path.glob("groups-*"):
            remove_directory(left)
        for directory in {part.path.parent for source in read for part in source.parts}:
            drop_keys(directory)
        _remove_others(work, plans, read)
    report.seconds = round(time.monotonic() - started, 3)
    report.pairs_per_second = round(report.rows / max(report.seconds, 1e-3))
    log_report(report)
    return report


def _read(
    sources: Sequence[SourceFiles],
    parameters: IngestParameters,
    work: WorkDirectory,
    jobs: Jobs,
    resources: Resources,
    languages: Languages | None,
) -> list[ReadSource]:
    """Read all files, in any order; parts in the order of the sources. Raises as :func:`ingest` does."""
    files = [file for source in sources for file in source.files]
    given = [(file,) for file in files]
    digests = jobs.results(SourceFile.digests, given, description="check", unit="files")
    cleaning, kind = parameters.cleaning, parameters.kind
    directories = [
        work.path / "files" / file_key(file, cleaning, kind, INGEST, digest)
        for file, digest in zip(files, digests, strict=True)
    ]
    # One file named by two sources is read once.
    todo = {path: index for index, path in reversed(list(enumerate(directories)))}
    # Where there are fewer files than workers, each is cleaned by several threads of its one worker.
    threads = min(_MOST_THREADS, max(1, resources.worker_count() // len(todo)))
    arguments = [
        (files[index], cleaning, kind, digests[index], path, threads) for path, index in todo.items()
    ]
    found = jobs.results(read_parts, arguments, description="read", unit="pairs", sizes=[0] * len(arguments))
    reports = dict(zip(todo, found, strict=True))
    read: list[ReadSource] = []
    first_row = at = 0
    for source in sources:
        here = range(at, at + len(source.files))
        at += len(source.files)
        shards = [ShardDirectory(directories[i]).paths for i in here]
        check_spread_rows(source, shards, parameters, languages)
        parts = _join_files(
            source, [directories[i] for i in here], [reports[directories[i]] for i in here], first_row
        )
        first_row = parts[-1].first_row + parts[-1].rows
        read.append(
            ReadSource(source, parts, [reports[directories[i]] for i in here], [digests[i] for i in here])
        )
    return read


def _join_files(
    source: SourceFiles, directories: Sequence[Path], reports: Sequence[FileReport], first_row: int
) -> list[Part]:
    total = sum(report.rows for report in reports)
    dropped = np.empty(0, dtype=np.int64)
    if source.drop_rows is not None:
        dropped = read_row_numbers(source.drop_rows)
        if dropped.size and dropped[-1] >= total:
            raise InputError(
                f"row {dropped[-1]} is to be dropped, the source {source.name!r} has rows 0 to {total - 1}",
                source.drop_rows,
            )
        dropped += first_row
    parts = []
    line_offset = 0
    for directory, report in zip(directories, reports, strict=True):
        shards = ShardDirectory(directory)
        for path, rows in zip(shards.paths, shards.rows, strict=True):
            here = dropped[(dropped >= first_row) & (dropped < first_row + rows)]
            parts.append(Part(path, rows, first_row, line_offset, here))
            first_row += rows
        line_offset += report.last_line
    return parts


def _remove_others(work: WorkDirectory, plans: Sequence[ShardPlan], read: Sequence[ReadSource]) -> None:
    """Keep the shards, the parts that they were made of, and the sample bitext if it was read."""
    parts = {f"files/{part.path.parent.name}" for source in read for part in source.parts}
    inside = {
        path.relative_to(work.path).parts[0]
        for source in read
        for file in source.files.files
        for path in file.paths.values()
        if path.is_relative_to(work.path)
    }
    work.keep_only({plan.key for plan in plans} | parts | inside)


def _run_key(parameters: IngestParameters, read: Sequence[ReadSource]) -> str:
    described = [
        [
            source.files.name,
            [part.path.parent.name for part in source.parts],
            None if source.files.drop_rows is None else sha256_file(source.files.drop_rows),
        ]
        for source in read
    ]
    chosen = [INGEST, parameters.kind, parameters.cleaning.duplicates, parameters.rows_per_shard]
    return hash_json([chosen, described])[:32]


def _write(
    plans: Sequence[ShardPlan],
    read: Sequence[ReadSource],
    parameters: IngestParameters,
    work: WorkDirectory,
    jobs: Jobs,
    run: str,
) -> list[ShardResult]:
    parts = [part for source in read for part in source.parts]
    rows = sum(part.rows for part in parts)
    pairs = work.path / f"groups-{run}-pairs" if parameters.cleaning.duplicates else None
    sources = work.path / f"groups-{run}-sources" if parameters.kind == "bitext" else None
    for left in work.path.glob("groups-*"):
        if run not in left.name:
            remove_directory(left)  # of another run that was given up
    if any(work.find(plan.key) is None for plan in plans):
        texts = TEXTS[parameters.kind]
        ranked = [(PAIR_KEY, texts, pairs), (SOURCE_KEY, texts[:1], sources)]
        arguments = [(parts, keys, of, path) for keys, of, path in ranked if path is not None]
        jobs.results(
            rank_groups, arguments, description="find duplicates", unit="pairs", sizes=[rows] * len(arguments)
        )
    else:
        pairs = sources = None  # every shard is there: nothing will be asked of them
    batches = [plans[at : at + _SHARDS_A_JOB] for at in range(0, len(plans), _SHARDS_A_JOB)]
    sizes = [sum(plan.rows for plan in batch) for batch in batches]
    given = [(batch, parameters.kind, pairs, sources, work) for batch in batches]
    written = jobs.results(write_shards, given, description="write", unit="pairs", sizes=sizes)
    return [result for batch in written for result in batch]
