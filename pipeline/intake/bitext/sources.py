"""Finds the files of the configured sources, and reports all missing files at once before any is read."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from paraforge.base.errors import ConfigurationError, InputError
from paraforge.base.files import hash_json, sha256_file
from paraforge.base.text.compression import SUFFIXES
from paraforge.base.text.lines import Reading, numbered_lines
from paraforge.base.text.paths import files_of
from paraforge.intake.bitext.block import Block
from paraforge.intake.bitext.parameters import Cleaning, IngestParameters, SampleSource
from paraforge.intake.bitext.readers.tsv import TsvSource
from paraforge.intake.bitext.source import ONLY, FileSource

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
        ignored = {"name", "licence", "path", "paths", "drop_rows"}
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
    found: list[SourceFiles] = []
    for source in parameters.sources:
        if isinstance(source, SampleSource):
            found += _make_sample(source, work)
        elif (files := resolve_files(source, problems)) is not None:
            found.append(files)
    if problems:
        raise ConfigurationError(problems)
    return found


def resolve_files(source: FileSource, problems: list[str]) -> SourceFiles | None:
    """Return the files of a source. If there are problems, add them to ``problems`` and return None."""
    wrong: list[str] = []

    def files(patterns: Sequence[str]) -> list[Path]:
        found: list[Path] = []
        for pattern in patterns:
            try:
                # Workers on other hosts have another current directory.
                found += [path.absolute() for path in files_of(pattern)]
            except InputError as error:
                wrong.append(str(error))
        return found

    groups = {key: files(patterns) for key, patterns in source.patterns().items()}
    drop_rows = files([] if source.drop_rows is None else [source.drop_rows])
    if len(drop_rows) > 1:
        wrong.append(f"drop_rows: {source.drop_rows} is more than one file")
    if not wrong:
        wrong += _pairing_problems(groups)
    problems += [f"source {source.name!r}: {one}" for one in wrong]
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
    found = set()
    for line, text in numbered_lines(path):
        first = text.split("\t")[0].strip()
        if first.isascii() and first.isdigit() and len(first) < _DIGITS_OF_A_ROW:
            found.add(int(first))
        elif line > 1:
            raise InputError(f"{first[:40]!r} is not a row number", path, line)
    return sorted(found)


def file_key(file: SourceFile, cleaning: Cleaning, kind: str, version: int, digests: dict[str, str]) -> str:
    """Return a hash of a file's digests and of everything else that its cleaned rows depend on."""
    per_row = cleaning.model_dump(mode="json", exclude={"duplicates"})
    return hash_json([version, kind, file.reading(), per_row, digests])[:40]
