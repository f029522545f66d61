"""The translation memory: all translations by sentence, in files that are only added.

A memory is a directory of sets. A set has the translations of one model with one engine and one choice of
options, and only grows. It has *segments*: Parquet files, each with a number and the SHA-256 of its content
in its name. If two segments have a sentence, the lower number counts, so known translations never change. A
segment gets its name when it is complete, so several runs on several hosts can add at the same time without a
lock. Two that add at the same moment may give the same number; then the order of the names counts.

The same columns of hypotheses are in the corpus and in the memory. Translations made elsewhere are added from
Parquet with one row per sentence.
"""

import contextlib
import errno
import json
import math
import os
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from paraforge.base.errors import InputError, check_format, describing, one_line
from paraforge.base.files import hash_json, sync_directory, temporary_name, write_json
from paraforge.base.shards.lineage import binary_keys, text_keys
from paraforge.base.shards.pool import in_threads
from paraforge.base.shards.schema import COLUMNS
from paraforge.base.shards.store import open_parquet, read_parquet, read_schema, write_shard
from paraforge.base.text.normalization import without_controls
from paraforge.intake.bitext.cleaning import as_ingested
from paraforge.translation.decoding.translator import Hypotheses, Hypothesis, is_runaway
from paraforge.translation.engines.imported import NAME as IMPORTED

# Columns that a hypothesis adds to a row.
HYPOTHESIS_COLUMNS = (
    "translation",
    "translation_score",
    "rank",
    "source_truncated",
    "output_truncated",
    "empty_output",
    "non_finite",
    "runaway",
    "failed",
)
HYPOTHESES = pa.schema([COLUMNS[name].remove_metadata() for name in HYPOTHESIS_COLUMNS])
# One row per hypothesis; only a sentence's first row has its key and text.
REMEMBERED = pa.schema(
    [pa.field("key", pa.binary(16)), COLUMNS["source_text"].remove_metadata(), *HYPOTHESES]
)
SET_NAME = "set.json"
# Sentences per segment: the loss if one is damaged, and how much is read to find one sentence.
SEGMENT_SENTENCES = 50_000
_NAMES = "[0-9]" * 8 + "-*.parquet"
_FORMAT = 2
# Key in a segment's footer.
_ABOUT = b"paraforge.segment"
_REMEDY = "Delete it if it exists, and run the same command again, which translates its sentences again."


class HypothesisRows:
    """Collects results as columns.

    heads: the first row of each sentence.
    """

    def __init__(self) -> None:
        self.heads: list[int] = []
        self._columns: dict[str, list[Any]] = {name: [] for name in HYPOTHESES.names}

    @property
    def sentences(self) -> int:
        """The number of added sentences."""
        return len(self.heads)

    def add(self, result: Hypotheses) -> None:
        """Add a sentence: one row a hypothesis, one row without text if there is none."""
        self.heads.append(len(self._columns["rank"]))
        failed = result.failed
        if not result.hypotheses and failed is None:
            failed = "the engine found no hypothesis"
        for rank, hypothesis in enumerate(result.hypotheses):
            self._row(
                hypothesis.text,
                None if math.isnan(hypothesis.score) else hypothesis.score,
                rank,
                result.source_truncated,
                hypothesis.output_truncated,
                hypothesis.empty,
                hypothesis.non_finite,
                hypothesis.runaway,
                None,
            )
        if failed is not None:
            self._row(None, None, 0, result.source_truncated, False, False, False, False, failed)

    def _row(self, *values: Any) -> None:
        for column, value in zip(self._columns.values(), values, strict=True):
            column.append(value)

    def hypotheses(self) -> pa.Table:
        """Return the rows, in the order of sentences and ranks."""
        columns = [pa.array(self._columns[field.name], field.type) for field in HYPOTHESES]
        return pa.table(columns, schema=HYPOTHESES)

    def table(self, texts: pa.Array) -> pa.Table:
        """Return the rows with keys and texts of sentences, in the columns of :data:`REMEMBERED`.

        texts: the added sentences, in order.
        """
        places = np.full(len(self._columns["rank"]), -1)
        places[self.heads] = np.arange(len(self.heads))
        taken = pa.array(places, mask=places < 0)
        keys = binary_keys(text_keys(texts))
        columns = [keys.take(taken), texts.take(taken), *self.hypotheses().columns]
        return pa.table(columns, schema=REMEMBERED)


@dataclass(frozen=True)
class Segment:
    """A file of translations.

    path: Parquet file with the columns of ``REMEMBERED``. rows: number of hypotheses.
    libraries: versions of the libraries that translated, by distribution.
    run: key of the run that translated, the same when it is resumed or repeated; empty for imported
        translations.
    """

    path: Path
    rows: int
    libraries: dict[str, str]
    run: str = ""

    @property
    def digest(self) -> str:
        """The SHA-256 of its content, from its name."""
        return _digest(self.path)

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Read columns. Raises InputError if it cannot be read."""
        try:
            return read_parquet(self.path, columns)
        except InputError as error:
            raise InputError(one_line(error.message), self.path, remedy=_REMEDY) from error

    def keys(self) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.bool_]]:
        """Return the first rows of its sentences, their keys (n x 2), and which of them failed. Raises
        InputError if it cannot be read."""
        table = self.read(["key", "failed"])
        key = table.column("key").combine_chunks()
        heads = np.flatnonzero(key.is_valid().to_numpy(zero_copy_only=False))
        key = key.drop_null()
        data = np.frombuffer(key.buffers()[1] or b"", ">u8", offset=16 * key.offset, count=2 * len(key))
        failed = table.column("failed").is_valid().to_numpy()[heads]
        return heads, data.astype(np.uint64).reshape(-1, 2), failed


@dataclass(frozen=True)
class MemorySet:
    """The translations of one model with one engine and one choice of options.

    path: directory; it need not exist.
    description: everything besides the sentence that the translations depend on.
    """

    path: Path
    description: dict[str, Any]

    def segments(self) -> list[Segment]:
        """Return all segments in the order of their addition. Raises InputError if one is damaged, or a newer
        version wrote it."""
        return [_segment(path) for path in sorted(self.path.glob(_NAMES))]

    def add(
        self, tables: Iterable[tuple[pa.Table, Mapping[str, str]]], run: str = "", threads: int = 1
    ) -> list[str]:
        """Add translations; after an error, none of them.

        tables: translations in the columns of ``REMEMBERED``, with the versions of libraries that made them.
        run: key of the run that translated. threads: number of threads that write segments.

        Returns the digests of the segments that contain them; a segment with the same bytes is not added
        again.
        """
        known = {_digest(path) for path in self.path.glob(_NAMES)}
        self.begin()
        begun: list[Path] = []

        def write(part: tuple[pa.Table, Mapping[str, str]]) -> tuple[str, Path]:
            path = temporary_name(self.path / "segment")
            begun.append(path)
            return _written(path, *part, run), path

        try:
            with contextlib.closing(in_threads(write, _group_into_segments(tables), threads)) as segments:
                written = list(segments)
            self._enter({digest: path for digest, path in written if digest not in known})
        finally:  # after a wrong row or on a full disk, and if a segment was known
            for path in begun:
                path.unlink(missing_ok=True)
        return [digest for digest, _ in written]

    def begin(self) -> None:
        """Make the directory with the set's description if it does not exist. Raises InputError if it is not
        writable."""
        try:
            if not (self.path / SET_NAME).is_file():
                write_json(self.path / SET_NAME, self.description)
            elif not os.access(self.path, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        except OSError as error:
            raise InputError(
                f"nothing can be added to this translation memory: {error.strerror}",
                self.path.parent,
                remedy="Set another one in resources.translation_memory.",
            ) from error

    def _enter(self, written: Mapping[str, Path]) -> None:
        """Give written segments their names, by digest."""
        for number, (digest, path) in enumerate(written.items(), start=1 + _last_number(self.path)):
            path.rename(self.path / f"{number:08d}-{digest}.parquet")
        sync_directory(self.path)


def _digest(path: Path) -> str:
    return path.stem.partition("-")[2]


def _last_number(directory: Path) -> int:
    return max((int(path.name[:8]) for path in directory.glob(_NAMES)), default=0)


def _written(path: Path, table: pa.Table, libraries: Mapping[str, str], run: str) -> str:
    """Write a segment. Returns its digest."""
    # The same hypotheses made by other versions form another segment.
    about = {"format": _FORMAT, "libraries": dict(libraries), "run": run}
    marked = table.replace_schema_metadata({_ABOUT: json.dumps(about, sort_keys=True)})
    return write_shard(marked, path).sha256


def _segment(path: Path) -> Segment:
    with (
        open_parquet(path, _REMEDY) as file,
        describing(path, "damaged segment of the translation memory", _REMEDY),
    ):
        about = json.loads(file.schema_arrow.metadata[_ABOUT])
        check_format(about["format"], _FORMAT, path)
        return Segment(path, file.metadata.num_rows, about["libraries"], about["run"])


def _group_into_segments(
    tables: Iterable[tuple[pa.Table, Mapping[str, str]]],
) -> Iterator[tuple[pa.Table, Mapping[str, str]]]:
    """Yield the same rows in tables of at least :data:`SEGMENT_SENTENCES` sentences, each with one set of
    versions."""
    waiting: list[pa.Table] = []
    versions: Mapping[str, str] = {}
    sentences = 0
    for table, libraries in tables:
        if waiting and (libraries != versions or sentences >= SEGMENT_SENTENCES):
            yield pa.concat_tables(waiting), versions
            waiting, sentences = [], 0
        waiting.append(table.select(REMEMBERED.names).cast(REMEMBERED))
        sentences += table.num_rows - table.column("key").null_count
        versions = libraries
    if waiting:
        yield pa.concat_tables(waiting), versions


def open_set(root: Path, description: dict[str, Any]) -> MemorySet:
    """Return the set for a model, engine, options and version of the step."""
    return MemorySet(root / hash_json(description)[:40], description)


# Limits of an imported file: rows to read at once, hypotheses of a sentence, characters of a text.
_ROWS_AT_ONCE = 20_000
_MOST_HYPOTHESES = 127
_LONGEST_TEXT = 100_000


def import_file(path: Path, root: Path, name: str) -> tuple[MemorySet, int]:
    """Add a file of translations to a memory.

    path: Parquet with ``sentence`` and ``hypotheses`` (a text, or a list of texts, the best first), and
        optionally ``scores`` (a number or a list of numbers).
    root: directory of the memory. name: of the set, for ``translate.imported.name``.

    Returns the set and the number of sentences. Raises InputError if the file cannot be read or a row is
    wrong; then nothing is added.
    """
    if not name:
        raise InputError("imported translations need a name", path, remedy="Pass --name.")
    schema = read_schema(path)
    missing = [column for column in ("sentence", "hypotheses") if column not in schema.names]
    if missing:
        raise InputError(f"no column {', '.join(missing)}; it has {', '.join(schema.names)}", path)
    memory = open_set(root, {IMPORTED: name})
    counted = 0

    def tables() -> Iterator[tuple[pa.Table, dict[str, str]]]:
        nonlocal counted
        columns = [column for column in ("sentence", "hypotheses", "scores") if column in schema.names]
        try:
            with open_parquet(path) as file:
                for batch in file.iter_batches(_ROWS_AT_ONCE, columns=columns):
                    yield _to_memory_rows(batch.to_pylist(), path, counted), {}
                    counted += batch.num_rows
        except UnicodeDecodeError as error:
            raise InputError(f"a text is not UTF-8: {error.reason}", path) from error

    memory.add(tables())
    return memory, counted


def _to_memory_rows(rows: list[dict[str, Any]], path: Path, before: int) -> pa.Table:
    """Convert rows of a file to the memory's.

    A sentence that ingestion would change (Unicode form, blanks, line breaks) is added in both forms.
    """
    results = []
    for number, row in enumerate(rows, start=before + 1):
        try:
            results.append(_hypotheses(row))
        except ValueError as error:
            raise InputError(f"row {number}: {error}", path) from error
    sentences = pa.array([row["sentence"] for row in rows], pa.string())
    ingested = as_ingested(sentences)
    other = np.flatnonzero(pc.not_equal(sentences, ingested).to_numpy(zero_copy_only=False))
    remembered = HypothesisRows()
    for result in [*results, *(results[place] for place in other)]:
        remembered.add(result)
    return remembered.table(pa.concat_arrays([sentences, ingested.take(pa.array(other))]))


def _hypotheses(row: dict[str, Any]) -> Hypotheses:
    """Read the hypotheses of a row. Raises ValueError if a value is wrong."""
    if not isinstance(row["sentence"], str):
        raise ValueError(f"the sentence is {_short(row['sentence'])}, not a text")
    texts = row["hypotheses"]
    texts = [texts] if isinstance(texts, str) else texts
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"hypotheses are {_short(texts)}, not one or more texts")
    if len(texts) > _MOST_HYPOTHESES:
        raise ValueError(f"{len(texts)} hypotheses, more than {_MOST_HYPOTHESES}")
    if max(map(len, [row["sentence"], *texts])) > _LONGEST_TEXT:
        raise ValueError(f"a text of more than {_LONGEST_TEXT:,} characters")
    recorded = row.get("scores")
    scores = recorded if isinstance(recorded, list) else [recorded] * (len(texts) if recorded is None else 1)
    if len(scores) != len(texts):
        raise ValueError(f"the numbers of scores ({len(scores)}) and hypotheses ({len(texts)}) differ")
    if not all(isinstance(score, int | float | None) for score in scores):
        raise ValueError(f"scores are {_short(recorded)}, not numbers")
    hypotheses = []
    for original, score in zip(texts, scores, strict=True):
        text = without_controls(original)  # as ingest does with its texts
        with np.errstate(over="ignore"):  # a number that is too large for the column is not a score
            number = float("nan") if score is None else float(np.float32(score))
        hypotheses.append(
            Hypothesis(
                text,
                number if np.isfinite(number) else float("nan"),
                0,
                non_finite=bool(np.isinf(number)),
                runaway=is_runaway(text, text.split()),
            )
        )
    return Hypotheses(tuple(hypotheses))


def _short(value: object) -> str:
    return textwrap.shorten(repr(value), 80, placeholder=" ...")
