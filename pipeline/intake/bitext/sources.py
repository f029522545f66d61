"""Finds the files of the configured sources, and reads and cleans each file into parts.

All missing files are reported at once, before any file is read. Parts are shards that later runs reuse if
the file is unchanged; they also have the keys for finding duplicates.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paraforge.base.errors import ConfigurationError, InputError
from paraforge.base.files import hash_json, sha256_file
from paraforge.base.shards.lineage import text_keys
from paraforge.base.shards.pool import in_window
from paraforge.base.shards.scheduler import report_rows
from paraforge.base.shards.schema import COLUMNS, tables_of
from paraforge.base.shards.store import (
    ShardDirectory,
    ShardRecord,
    open_parquet,
    shard_name,
    write_index,
    write_shard,
)
from paraforge.base.text.compression import SUFFIXES
from paraforge.base.text.lines import Reading, numbered_lines
from paraforge.base.text.normalization import fold
from paraforge.base.text.paths import files_of
from paraforge.intake.bitext.cleaning import Findings, clean
from paraforge.intake.bitext.parameters import TEXTS, Cleaning, IngestParameters, SampleSource
from paraforge.intake.bitext.readers.tsv import TsvSource
from paraforge.intake.bitext.source import ONLY, Block, FileSource, reason_names

_DIGITS_OF_A_ROW = 19  # any number with fewer digits fits in int64


@dataclass(frozen=True)
class SourceFile:
    """One file of a source, or one pair of parallel files.

    source: parameters and reader. paths: the file, or a file for each column.
    """

    source: FileSource
    paths: dict[str, Path]

    @property
    def main_path(self) -> Path:
        """The first file; it is named in errors."""
        return next(iter(self.paths.values()))

    def path_of(self, column: str) -> Path:
        """Return the file of a column."""
        return self.paths.get(column, self.main_path)

    @property
    def size(self) -> int:
        """Number of bytes on disk."""
        return sum(path.stat().st_size for path in self.paths.values())

    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of each file."""
        return {name: sha256_file(path) for name, path in self.paths.items()}

    def reading(self) -> dict[str, Any]:
        """Return the parameters of the source that its rows depend on."""
        ignored = {"name", "license", "path", "paths", "drop_rows"}
        return self.source.model_dump(mode="json", exclude=ignored)


@dataclass(frozen=True)
class SourceFiles:
    """A source with its files, in the order in which they are concatenated."""

    name: str
    files: list[SourceFile]
    drop_rows: Path | None = None


def resolve(parameters: IngestParameters, work: Path) -> list[SourceFiles]:
    """Find the files of every source; write the files of the sample bitext.

    parameters: section ``ingest``. work: directory for the sample bitext.
    Raises ConfigurationError if files or environment variables are missing; all in one message.
    """
    problems: list[str] = []
    sources: list[SourceFiles] = []
    for source in parameters.sources:
        if isinstance(source, SampleSource):
            sources += _make_sample(source, work)
        elif (files := resolve_files(source, problems)) is not None:
            sources.append(files)
    if problems:
        raise ConfigurationError(problems)
    return sources


def resolve_files(source: FileSource, problems: list[str]) -> SourceFiles | None:
    """Return the files of a source. If there are problems, add them to ``problems`` and return None."""
    wrong: list[str] = []

    def files(patterns: Sequence[str]) -> list[Path]:
        paths: list[Path] = []
        for pattern in patterns:
            try:
                # Workers on other hosts have another current directory.
                paths += [path.absolute() for path in files_of(pattern)]
            except InputError as error:
                wrong.append(str(error))
        return paths

    groups = {key: files(patterns) for key, patterns in source.patterns().items()}
    drop_rows = files([] if source.drop_rows is None else [source.drop_rows])
    if len(drop_rows) > 1:
        wrong.append(f"drop_rows: {source.drop_rows} is more than one file")
    if not wrong:
        wrong += _pairing_problems(groups)
    problems += [f"source {source.name!r}: {problem}" for problem in wrong]
    if wrong:
        return None
    sets = [dict(zip(groups, paths, strict=True)) for paths in zip(*groups.values(), strict=True)]
    return SourceFiles(
        source.name, [SourceFile(source, paths) for paths in sets], next(iter(drop_rows), None)
    )


def _pairing_problems(groups: Mapping[str, Sequence[Path]]) -> Iterator[str]:
    """Yield a problem if the files of the sides are not parallel by their number and names."""
    counts = {name: len(paths) for name, paths in groups.items()}
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{count} for {name}" for name, count in counts.items())
        yield f"the patterns match different numbers of files: {told}"
        return
    rows = list(zip(*groups.values(), strict=True))
    for row in rows if len(rows) > 1 else []:
        if len({_stem(path) for path in row}) > 1:
            yield f"these files would be read as parallel, but their names differ: {', '.join(map(str, row))}"
            return


def _stem(path: Path) -> str:
    """Return a file's name without compression and language: ``news`` for ``news.cs.gz``."""
    plain = path.with_suffix("") if path.suffix.lower() in SUFFIXES else path
    return plain.stem


def _make_sample(source: SampleSource, work: Path) -> list[SourceFiles]:
    from paraforge.intake.sample_bitext import write_sample

    paths = write_sample(work / f"sample-{source.pairs}", source.pairs, source.language)
    files = []
    for path in paths:
        reader = TsvSource(
            format="tsv",
            name=f"{source.name}-{path.stem.removeprefix('sample-')}",
            path=str(path),
            columns={"source_text": 0, "reference": 1},
        )
        files.append(SourceFiles(reader.name, [SourceFile(reader, {ONLY: path})]))
    return files


def read_file(file: SourceFile, cleaning: Cleaning, reading: Reading | None = None) -> Iterator[Block]:
    """Read one file of a source in its format, strictly if ``cleaning.malformed`` is ``error``.

    reading: counts repairs, and says how much is read at a time.
    Raises InputError if the file cannot be read: see :mod:`paraforge.intake.bitext.readers`.
    """
    reading = replace(reading or Reading(), strict=cleaning.malformed == "error")
    return file.source.read(file.paths, reading)


def read_row_numbers(path: Path) -> list[int]:
    """Read the row numbers to drop: the first column of each line, from 0; the first line can be a header.

    Returns the distinct numbers in ascending order.
    Raises InputError if a later line does not begin with a row number.
    """
    numbers = set()
    for line, text in numbered_lines(path):
        first = text.split("\t")[0].strip()
        if first.isascii() and first.isdigit() and len(first) < _DIGITS_OF_A_ROW:
            numbers.add(int(first))
        elif line > 1:
            raise InputError(f"{first[:40]!r} is not a row number", path, line)
    return sorted(numbers)


def file_key(file: SourceFile, cleaning: Cleaning, kind: str, version: int, digests: dict[str, str]) -> str:
    """Return a hash of a file's digests and of everything else that its cleaned rows depend on."""
    per_row = cleaning.model_dump(mode="json", exclude={"duplicates"})
    return hash_json([version, kind, file.reading(), per_row, digests])[:40]


PART_ROWS = 50_000
PAIR_KEY = ("pair_high", "pair_low")
SOURCE_KEY = ("source_high", "source_low")
# Parts stay on disk, so they are compressed better: 10% smaller, in 5% more time.
_LEVEL = 3


def read_parts(
    file: SourceFile,
    cleaning: Cleaning,
    kind: str,
    digests: dict[str, str],
    directory: Path,
    threads: int = 1,
) -> None:
    """Read and clean a file into parts in ``directory``, unless an earlier run finished them.

    The description of the parts has a ``report`` with ``rows`` (number of rows read), ``last_line``, and
    ``findings`` (the values of :class:`Findings`).

    kind: ``ingest.kind``. digests: SHA-256 of the files when the run began.
    directory: its name is a hash of everything that the result depends on.
    threads: number of threads that clean and write; the result does not depend on it.

    Raises InputError if :func:`paraforge.intake.bitext.sources.read_file` does, if there are no rows, or if
    the file changes while it is read.
    """
    if _is_finished(directory):
        return
    reading, findings = Reading(), Findings()
    rows = last_line = 0

    def cleaned(block: Block) -> tuple[pa.Table, Findings]:
        findings = Findings()
        return part_table(file, block, cleaning, kind, findings), findings

    def counted(tables: Iterable[tuple[pa.Table, Findings]]) -> Iterator[pa.Table]:
        nonlocal rows, last_line
        for table, part_findings in tables:
            findings.update(part_findings)
            rows += table.num_rows
            last_line = table.column("line")[-1].as_py()
            report_rows(table.num_rows)
            yield table

    def write(part: tuple[int, pa.Table]) -> ShardRecord:
        number, table = part
        return write_shard(table.combine_chunks(), directory / shard_name(number), _LEVEL)

    directory.mkdir(parents=True, exist_ok=True)
    problem = None
    try:
        # Cleaning and writing share one pool.
        with ThreadPoolExecutor(threads, "clean") as pool:
            blocks = filter(len, read_file(file, cleaning, reading))
            tables = in_window(pool, cleaned, blocks, 2 * threads)
            written = list(in_window(pool, write, enumerate(tables_of(counted(tables), PART_ROWS)), threads))
        if rows == 0:
            raise InputError("the file has no rows", file.main_path)
    except InputError as error:
        problem = error  # raised below, unless the cause is that the file changed
    for name, digest in file.digests().items():
        if digest != digests[name]:
            remedy = "Run the same command again."
            raise InputError("the file changed while it was read", file.paths[name], remedy=remedy)
    if problem is not None:
        raise problem
    findings.changes.update(reading.changes)
    report = {"rows": rows, "last_line": last_line, "findings": vars(findings)}
    write_index(directory, written, {"report": report})


def part_table(file: SourceFile, block: Block, cleaning: Cleaning, kind: str, findings: Findings) -> pa.Table:
    """Clean a block of a file, and return its rows with the columns of a part, including keys for duplicates.

    Raises InputError if :func:`paraforge.intake.bitext.cleaning.clean` does.
    """
    block.texts = {name: block.texts[name] for name in TEXTS[kind]}
    block = clean(block, cleaning, {name: file.path_of(name) for name in block.texts}, findings)
    columns: dict[str, Any] = {"line": block.lines, **block.texts}
    if kind == "paraphrases":
        columns["given_score"] = pa.nulls(len(block), pa.float32()) if block.scores is None else block.scores
    columns["rejected"] = reason_names(block.codes)
    schema = [COLUMNS[name] for name in columns]
    texts = list(block.texts.values())
    keyed = {PAIR_KEY: text_keys(*map(fold, texts))}
    if kind != "paraphrases":
        keyed[SOURCE_KEY] = text_keys(texts[0])
    for names, keys in keyed.items():
        columns |= {name: np.ascontiguousarray(keys[:, half]) for half, name in enumerate(names)}
        schema += [pa.field(name, pa.uint64()) for name in names]
    return pa.table(columns, pa.schema(schema))


def read_part(path: Path, columns: Sequence[str]) -> pa.Table:
    """Read columns of a part. Raises InputError if it is damaged."""
    with open_parquet(path, "Delete it if it exists, and run the same command again.") as file:
        return file.read(columns, use_threads=False)


def _is_finished(directory: Path) -> bool:
    """Return whether an earlier run finished all parts; the index is written last."""
    try:
        parts = ShardDirectory(directory)
        return [pq.read_metadata(path).num_rows for path in parts.paths] == parts.rows
    except (InputError, OSError, pa.ArrowInvalid):
        return False
