"""Ingests parallel or paraphrase corpora into cleaned shards, with a reason for every rejected row.

Files are read and cleaned into parts, which later runs reuse. Duplicates are found over all parts, which are
then written as shards in the order of the sources.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from paraforge.base.errors import InputError
from paraforge.base.progress import progress
from paraforge.base.shards.groups import GroupRanks, Keys, Rows, rank_groups
from paraforge.base.shards.libraries import installed, merge_versions
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.scheduler import Jobs, open_jobs
from paraforge.base.shards.schema import schema_of
from paraforge.base.shards.store import ShardDirectory, ShardWriter
from paraforge.base.shards.work import WorkDirectory, replaced_directory
from paraforge.intake.bitext.cleaning import Findings, shorten
from paraforge.intake.bitext.examination import check_spread_rows
from paraforge.intake.bitext.languages import Languages
from paraforge.intake.bitext.parameters import TEXTS, IngestParameters
from paraforge.intake.bitext.report import IngestReport, RowCounts, SourceReport, add_up, log_report
from paraforge.intake.bitext.sources import (
    PAIR_KEY,
    SOURCE_KEY,
    SourceFile,
    SourceFiles,
    file_key,
    read_part,
    read_parts,
    read_row_numbers,
    resolve,
)
from paraforge.versions import INGEST

# Other processes are started from a certain number of rows on. That number is for steps that take far longer
# per row than reading does; reading this many bytes takes about as long as one such row.
_BYTES_A_ROW = 8_000
# The single reading thread cannot keep more threads busy.
_MOST_THREADS = 8


@dataclass(frozen=True)
class Part:
    """A part of a source: a whole Parquet file in the work directory.

    path: the file. rows: number of rows. first_row: index of its first row in the whole corpus.
    line_offset: number of lines in the source's earlier files; it is added to the line numbers.
    dropped: which rows are in the source's list ``drop_rows``.
    """

    path: Path
    rows: int
    first_row: int
    line_offset: int
    dropped: NDArray[np.bool_]


@dataclass(frozen=True)
class _Source:
    """A source whose files have been read: for each file its shards, and its SHA-256 by side."""

    files: SourceFiles
    parts: list[Part]
    shards: list[ShardDirectory]
    digests: list[dict[str, str]]


def ingest(
    parameters: IngestParameters, output: Path, resources: Resources, languages: Languages | None = None
) -> IngestReport:
    """Read, clean and deduplicate the sources, and write them as shards.

    Shards have the columns ``source line source_text reference rejected first_row``; for an existing
    paraphrase corpus also ``translation given_score`` and empty ``source_text`` and ``translation_score``.
    For references alone, ``source_text`` has the reference, which is translated first. All rows of a shard
    are from one source. Rejected rows stay, with their reason. ``line`` counts through all files of a source.
    After a kill, the next run does not read finished files again; only the shards are written from the start.
    The result does not depend on ``resources``.

    parameters: section ``ingest``. output: directory to write, replaced as a whole.
    resources: where to run. languages: the expected languages of a bitext; None to skip that check.

    Raises:
        ConfigurationError: files are missing (all in one message), or rows are in other languages.
        InputError: a source cannot be read; with file and line.
        IncompleteError: no row is kept, or counts do not add up.
        WorkLockedError: another process is ingesting into the same work directory.
    """
    started = time.monotonic()
    work = WorkDirectory("ingest", resources.work.resolve())
    with work.lock():
        sources = resolve(parameters, work.path)
        size = sum(file.size for source in sources for file in source.files)
        with open_jobs(resources, 1 + size // _BYTES_A_ROW) as jobs:
            read = _read(sources, parameters, work, jobs, resources, languages)
        report = _write(read, parameters, _rank(parameters, read, work), output)
        work.keep_only(f"files/{part.path.parent.name}" for source in read for part in source.parts)
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
) -> list[_Source]:
    """Read all files in any order; return their parts in the order of the sources.

    Raises the errors of :func:`ingest`.
    """
    files = [file for source in sources for file in source.files]
    groups = [(file,) for file in files]
    digests = jobs.results(SourceFile.digests, groups, description="check", unit="files")
    cleaning, kind = parameters.cleaning, parameters.kind
    directories = [
        work.path / "files" / file_key(file, cleaning, kind, INGEST, digest)
        for file, digest in zip(files, digests, strict=True)
    ]
    # A file that two sources name is read once.
    todo = {path: index for index, path in enumerate(directories)}
    # If there are fewer files than workers, each worker cleans its file with several threads.
    threads = min(_MOST_THREADS, max(1, resources.worker_count() // len(todo)))
    arguments = [
        (files[index], cleaning, kind, digests[index], path, threads) for path, index in todo.items()
    ]
    jobs.results(read_parts, arguments, description="read", unit="pairs", sizes=[0] * len(arguments))
    read: list[_Source] = []
    first_row = at = 0
    for source in sources:
        places = range(at, at + len(source.files))
        at += len(source.files)
        shards = [ShardDirectory(directories[i]) for i in places]
        check_spread_rows(source, [shard.paths for shard in shards], parameters, languages)
        parts = _join_files(source, shards, first_row)
        first_row += sum(part.rows for part in parts)
        read.append(_Source(source, parts, shards, [digests[i] for i in places]))
    return read


def _join_files(source: SourceFiles, shards: Sequence[ShardDirectory], first_row: int) -> list[Part]:
    total = sum(shard.total_rows for shard in shards)
    dropped = np.zeros(total, bool)
    if source.drop_rows is not None:
        numbers = read_row_numbers(source.drop_rows)
        if numbers and numbers[-1] >= total:
            raise InputError(
                f"row {numbers[-1]} should be dropped, but source {source.name!r} has rows 0 to {total - 1}",
                source.drop_rows,
            )
        dropped[numbers] = True
    parts = []
    line_offset = at = 0
    for shard in shards:
        for path, rows in zip(shard.paths, shard.rows, strict=True):
            parts.append(Part(path, rows, first_row + at, line_offset, dropped[at : at + rows]))
            at += rows
        line_offset += shard.description["report"]["last_line"]
    return parts


def _rank(
    parameters: IngestParameters, read: Sequence[_Source], work: WorkDirectory
) -> dict[tuple[str, str], GroupRanks]:
    """Find equal pairs and equal foreign sides among the rows of all parts that are not rejected.

    Returns, for :data:`PAIR_KEY` and :data:`SOURCE_KEY`, each row's rank among its equals; a key is left out
    if the parameters do not need it.
    """
    parts = [part for source in read for part in source.parts]

    def keys(columns: tuple[str, str]) -> Iterator[tuple[Keys, Rows]]:
        for part in parts:
            table = read_part(part.path, ["rejected", *columns])
            is_kept = table["rejected"].is_null().to_numpy(zero_copy_only=False) & ~part.dropped
            keys = np.stack([table[name].to_numpy() for name in columns], axis=1)[is_kept]
            yield keys, np.flatnonzero(is_kept) + part.first_row

    chosen = [PAIR_KEY] if parameters.cleaning.duplicates else []
    chosen += [] if parameters.kind == "paraphrases" else [SOURCE_KEY]
    ranks = {}
    for columns in chosen:
        directory = work.path / f"groups-{columns[0]}"
        rank_groups(keys(columns), directory)
        ranks[columns] = GroupRanks(directory)
    return ranks


def _write(
    read: Sequence[_Source],
    parameters: IngestParameters,
    ranks: dict[tuple[str, str], GroupRanks],
    output: Path,
) -> IngestReport:
    """Write the parts as shards, and publish them with their counts."""
    kind = parameters.kind
    sources: dict[str, SourceReport] = {}
    rows = sum(shard.description["report"]["rows"] for source in read for shard in source.shards)
    names = ["source", "line", *TEXTS["bitext"], "rejected", "first_row"]
    if kind == "paraphrases":
        names += ["translation", "translation_score", "given_score"]
    with (
        replaced_directory(output) as directory,
        progress(total=rows, unit="pairs", description="write") as bar,
    ):
        writer = ShardWriter(directory, schema_of(names), parameters.rows_per_shard)
        for source in read:
            counts, findings = RowCounts(), Findings()
            for table in _tables(source, kind, ranks):
                counts.add(table, TEXTS[kind])
                writer.write(table)
                bar.update(table.num_rows)
            writer.close()  # a shard does not mix sources
            for shard in source.shards:
                findings.update(Findings(**shard.description["report"]["findings"]))
            sources[source.files.name] = counts.report(findings, _files_of(source))
        report = add_up(sources, rows, [record.rows for record in writer.records])
        writer.close(
            {
                "step": "ingest",
                "version": INGEST,
                "kind": kind,
                "parameters": parameters.model_dump(mode="json", include={"cleaning", "rows_per_shard"}),
                "counts": {"rows": report.rows, "kept": report.kept, "rejected": report.rejected},
                "sources": {name: vars(source) for name, source in sources.items()},
                "libraries": merge_versions([installed()]),
            }
        )
    return report


def _files_of(source: _Source) -> list[dict[str, Any]]:
    """Return the SHA-256 and the number of rows of each file."""
    return [
        {"files": {_name_of(file, side): digest[side] for side in file.paths}, "rows": shard.total_rows}
        for file, shard, digest in zip(source.files.files, source.shards, source.digests, strict=True)
    ]


def _name_of(file: SourceFile, side: str) -> str:
    """Return the name of a side's file; the side is added if several sides have files of that name."""
    names = [path.name for path in file.paths.values()]
    name = file.paths[side].name
    return name if names.count(name) == 1 else f"{name} ({side})"


def _tables(source: _Source, kind: str, ranks: dict[tuple[str, str], GroupRanks]) -> Iterator[pa.Table]:
    """Yield the rows of a source as they are published."""
    texts = TEXTS[kind]
    columns = ["line", *texts, "rejected", *(["given_score"] if kind == "paraphrases" else [])]
    for part in source.parts:
        table = read_part(part.path, columns)
        start, stop = part.first_row, part.first_row + part.rows
        reasons = pc.if_else(pa.array(part.dropped), "contaminated", table["rejected"].combine_chunks())
        if PAIR_KEY in ranks:
            earlier, _ = ranks[PAIR_KEY].of(start, stop)
            reasons = pc.if_else(pa.array(earlier > 0), "duplicate", reasons)
        refused = reasons.is_valid().to_numpy(zero_copy_only=False)
        first = np.arange(start, stop)
        if SOURCE_KEY in ranks:
            first = ranks[SOURCE_KEY].of(start, stop)[1]
        arrays = {
            "source": pa.repeat(source.files.name, part.rows),
            "line": pc.add(table["line"].combine_chunks(), part.line_offset),
            **{name: shorten(table[name].combine_chunks(), refused) for name in texts},
            "rejected": reasons,
            "first_row": pa.array(first, mask=refused),
        }
        if kind == "references":
            arrays["source_text"] = arrays["reference"]
        if kind == "paraphrases":
            arrays["source_text"] = pa.nulls(part.rows, pa.string())
            arrays["translation_score"] = pa.nulls(part.rows, pa.float32())
            arrays["given_score"] = table["given_score"].combine_chunks()
        schema = schema_of(arrays)
        yield pa.table([arrays[name] for name in schema.names], schema=schema)
