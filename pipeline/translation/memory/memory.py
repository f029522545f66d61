"""The translation memory: all translations by sentence, in files that are only added.

A memory is a directory of sets. A set has the translations of one model with one engine and one choice of
options, and only grows. It has *segments* (Parquet files) and *entries* (numbered JSON files that each name
the segments of one run). A run claims the next number by creating a file that must not exist yet, so several
runs on several hosts can add at the same time without a lock. If two entries have a sentence, the earlier one
counts, so known translations never change.

The same columns of hypotheses are in the corpus and in the memory.
"""

import contextlib
import errno
import json
import math
import os
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paraforge.base.errors import InputError, check_format, describing, one_line
from paraforge.base.files import hash_json, read_json_or_none, sync_directory, write_json
from paraforge.base.shards.lineage import binary_keys, text_keys
from paraforge.base.shards.pool import in_threads
from paraforge.base.shards.schema import COLUMNS
from paraforge.base.shards.store import read_parquet, write_shard
from paraforge.translation.decoding.translator import Hypotheses

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
_ENTRY = "[0-9]" * 8 + ".json"
_FORMAT = 1
# An entry can be read while another host is writing it.
_READINGS, _PAUSE = 5, 0.1
_LIBRARIES = "paraforge.libraries"


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

    path: Parquet file with the columns of ``REMEMBERED``.
    rows, sentences: number of hypotheses and sentences. sha256: SHA-256 of the file.
    libraries: versions of the libraries that translated, by distribution.
    run: key of the run that translated, the same when it is resumed or repeated; empty for imported
        translations.
    """

    path: Path
    rows: int
    sentences: int
    sha256: str
    libraries: dict[str, str]
    run: str = ""

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Read columns. Raises InputError: it cannot be read, or differs from its entry."""
        try:
            table = read_parquet(self.path, columns)
        except InputError as error:
            raise InputError(one_line(error.message), self.path, remedy=self._remedy) from error
        if table.num_rows != self.rows:
            raise InputError("it differs from what its entry records", self.path, remedy=self._remedy)
        return table

    @property
    def _remedy(self) -> str:
        return f"Delete it, and its {self.sentences} sentences are translated again."

    def keys(self) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.bool_]]:
        """Return the first rows of its sentences, their keys (n x 2), and which of them failed. Raises
        InputError: it cannot be read, or differs from its entry."""
        table = self.read(["key", "failed"])
        key = table.column("key").combine_chunks()
        heads = np.flatnonzero(key.is_valid().to_numpy(zero_copy_only=False))
        key = key.drop_null()
        data = np.frombuffer(key.buffers()[1] or b"", ">u8", offset=16 * key.offset, count=2 * len(key))
        failed = table.column("failed").is_valid().to_numpy()[heads]
        return heads, data.astype(np.uint64).reshape(-1, 2), failed


_FIELDS = tuple(field.name for field in fields(Segment))


@dataclass(frozen=True)
class MemorySet:
    """The translations of one model with one engine and one choice of options.

    path: directory; it need not exist.
    description: everything besides the sentence that the translations depend on.
    """

    path: Path
    description: dict[str, Any]

    def segments(self) -> list[Segment]:
        """Return all segments in the order of their addition; missing files are left out."""
        found: dict[str, Segment] = {}
        for entry in sorted(self.path.glob(_ENTRY)):
            for segment in _segments_of(entry):
                if segment.path.is_file():
                    found.setdefault(segment.sha256, segment)
        return list(found.values())

    def add(
        self, tables: Iterable[tuple[pa.Table, Mapping[str, str]]], run: str = "", threads: int = 1
    ) -> list[str]:
        """Add translations atomically.

        tables: translations in the columns of ``REMEMBERED``, with the versions of libraries that made them.
        run: key of the run that translated. threads: number of threads that write segments.

        Returns the SHA-256 of the segments that contain them; a segment with the same bytes is not added
        again.
        """
        known = {segment.sha256 for segment in self.segments()}
        self.begin()
        added: list[Segment] = []
        digests = []
        temporary = self.path / f".{uuid.uuid4().hex}.tmp"
        begun: list[Path] = []

        def write(part: tuple[pa.Table, Mapping[str, str]]) -> Segment:
            path = self.path / f"{uuid.uuid4().hex}.parquet"
            begun.append(path)
            return _written(path, *part, run)

        try:
            with contextlib.closing(in_threads(write, _of_segments(tables), threads)) as segments:
                for segment in segments:
                    digests.append(segment.sha256)
                    if segment.sha256 in known:
                        segment.path.unlink()
                        continue
                    known.add(segment.sha256)
                    added.append(segment)
            if added:
                listed = [{**asdict(segment), "path": segment.path.name} for segment in added]
                write_json(temporary, {"format": _FORMAT, "segments": listed})
        except BaseException:  # a wrong row, a full disk
            for path in begun:
                path.unlink(missing_ok=True)
            raise
        if added:
            self._enter(temporary)
        return digests

    def begin(self) -> None:
        """Make the directory with the set's description if it does not exist. Raises InputError: it is not
        writable."""
        try:
            if not (self.path / SET_NAME).is_file():
                write_json(self.path / SET_NAME, {"format": _FORMAT, **self.description})
            elif not os.access(self.path, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        except OSError as error:
            raise InputError(
                f"nothing can be added to this translation memory: {error.strerror}",
                self.path.parent,
                remedy="Set another one in resources.translation_memory.",
            ) from error

    def _enter(self, temporary: Path) -> None:
        """Give a written entry the next number; concurrent writers get different numbers."""
        try:
            number = 1 + max((int(path.stem) for path in self.path.glob(_ENTRY)), default=0)
            while not _claimed(temporary, self.path / f"{number:08d}.json"):
                number += 1
        finally:
            temporary.unlink(missing_ok=True)
        sync_directory(self.path)


def _written(path: Path, table: pa.Table, libraries: Mapping[str, str], run: str) -> Segment:
    # The same hypotheses made by other versions form another segment.
    table = table.replace_schema_metadata({_LIBRARIES: json.dumps(dict(sorted(libraries.items())))})
    record = write_shard(table, path)
    sentences = table.num_rows - table.column("key").null_count
    return Segment(path, record.rows, sentences, record.sha256, dict(libraries), run)


def _claimed(source: Path, target: Path) -> bool:
    """Link ``source`` as ``target`` unless that exists. Returns whether it was linked."""
    try:
        os.link(source, target)
    except FileExistsError:
        return False
    except OSError:  # a file system without hard links
        try:
            with target.open("xb") as file:
                file.write(source.read_bytes())
                file.flush()  # before it is synced: else only an empty file would survive a power cut
                os.fsync(file.fileno())
        except FileExistsError:
            return False
    return True


def _segments_of(entry: Path) -> list[Segment]:
    """Return the segments that an entry names. Raises InputError: it is damaged, or a newer version wrote
    it."""
    for _ in range(_READINGS):
        content = read_json_or_none(entry) or {}
        if content:
            break
        time.sleep(_PAUSE)
    remedy = "Delete it, and its sentences are translated again."
    with describing(entry, "damaged entry of the translation memory", remedy):
        check_format(content["format"], _FORMAT, entry)
        return [_segment(entry.parent, one) for one in content["segments"]]


def _segment(directory: Path, one: dict[str, Any]) -> Segment:
    # An entry can only name files in its own directory.
    known = {name: one[name] for name in _FIELDS if name in one}
    return Segment(**{**known, "path": directory / Path(str(one["path"])).name})


def _of_segments(
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
