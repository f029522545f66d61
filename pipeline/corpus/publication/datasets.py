"""Opens what the pipeline publishes: corpora, lexicons, and the sentences of held-out splits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from paraforge.base.errors import InputError
from paraforge.base.shards.schema import TEXT_COLUMNS, schema_of
from paraforge.base.shards.store import INDEX_NAME, ShardDirectory, ShardView, open_parquet, read_schema
from paraforge.base.text.normalization import SentenceSet
from paraforge.base.text.pair_blocks import PairBlock, blocks_of_sources, read_corpus_pairs
from paraforge.corpus.publication import lexicon_layout as layout
from paraforge.corpus.publication.manifest import (
    KEPT,
    MANIFEST_NAME,
    PUBLISH_AGAIN,
    REJECTED,
    TRAIN,
    Manifest,
    read_manifest,
)

LEXICON = "lexicon"
HELD_OUT: Final = "held_out"
"""The step that writes these pairs, and the reason to leave a pair out of training."""
HELD_OUT_SCHEMA: Final = schema_of(TEXT_COLUMNS)
_MAGIC = b"PAR1"


@dataclass(frozen=True)
class Dataset:
    """A directory of Parquet files with one schema.

    name: ``corpus``, ``rejected`` or ``lexicon``.
    files: absolute paths, in order; none if the dataset is empty.
    rows: rows of all files, from the manifest. schema: columns, from the manifest.
    manifest: of a published corpus; None for a lexicon and for shards.
    aligned: files with more columns of the same rows, a list for each directory; only for shards.
    """

    name: str
    directory: Path
    files: list[Path]
    rows: int
    schema: pa.Schema
    manifest: Manifest | None = None
    aligned: tuple[list[Path], ...] = ()

    @property
    def splits(self) -> dict[str, Dataset]:
        """Return the files of each split as a dataset."""
        if self.manifest is None:
            return {TRAIN: self}
        named = list(zip(self.files, self.manifest.files, strict=True))
        return {
            name: replace(self, files=[path for path, file in named if file.split == name], rows=rows)
            for name, rows in self.manifest.splits.items()
        }

    @property
    def training(self) -> Dataset:
        """Return the same without the splits that are held out of training; empty if all are."""
        return self.splits.get(TRAIN, replace(self, files=[], rows=0))


def open_published(directory: Path) -> Dataset:
    """Open ``data/corpus`` or ``data/rejected``, or a copy of one.

    Checks only sizes and Parquet's magic bytes; ``paraforge verify`` reads every byte. Raises InputError as
    :func:`~paraforge.corpus.publication.manifest.read_manifest`, and if a file is missing or truncated.
    """
    manifest = read_manifest(directory)
    files = [_check_size(directory, file.path, file.bytes) for file in manifest.files]
    schema = pa.schema([(column["name"], _type(column["type"])) for column in manifest.columns])
    return Dataset(manifest.content, directory, files, manifest.rows, schema, manifest)


def is_published(directory: Path) -> bool:
    """Return whether this is a published corpus, even if its manifest is missing. It also has an index of
    shards, but reading all of these would include the held-out pairs."""
    if (directory / MANIFEST_NAME).is_file():
        return True
    has_index = (directory / INDEX_NAME).is_file()
    return has_index and ShardDirectory(directory).description.get("step") == "publish"


def open_shards(directory: Path) -> Dataset | None:
    """Open shards of the pipeline such as ``data/scored``, including columns in subdirectories; None if there
    are no shards or they are published ones. Raises InputError if they are not aligned, or a file is missing
    or truncated."""
    if is_published(directory) or not (directory / INDEX_NAME).is_file():
        return None
    view = ShardView(directory)
    files = [
        [_check_size(shards.path, record.file, None) for record in shards.records]
        for shards in view.directories
    ]
    fields = {field.name: field for shards in view.directories for field in shards.schema}
    schema = pa.schema(list(fields.values()))
    return Dataset(KEPT, directory, files[0], view.total_rows, schema, aligned=tuple(files[1:]))


def published_tables(dataset: Dataset, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Yield columns of a published dataset in batches of rows. Raises InputError if a file is damaged."""
    names = list(columns)
    for path in dataset.files:
        with open_file(path) as file:
            for batch in file.iter_batches(50_000, columns=names, use_threads=False):
                yield pa.Table.from_batches([batch]).select(names)


def open_publication(directory: Path, with_rejected: bool = True) -> list[Dataset]:
    """Return the kept pairs of a publication and, by default, the rejected ones next to them. Raises
    InputError if it is not a published corpus, is damaged, or the two are from different runs."""
    dataset = open_published(directory)
    datasets = [dataset]
    other = beside(directory, REJECTED if dataset.name == KEPT else KEPT)
    if with_rejected and other.is_dir():
        second = open_published(other)
        publications = {opened.manifest.publication for opened in (dataset, second) if opened.manifest}
        if second.name == dataset.name or len(publications) > 1:
            raise InputError(
                f"comes from a different run than {directory}",
                other,
                remedy="Publish both again, or pass --kept-only to leave it out.",
            )
        datasets.append(second)
    return sorted(datasets, key=lambda opened: opened.name)


def beside(directory: Path, name: str) -> Path:
    """Return the path ``name`` next to a directory or, if nothing is there, next to what it links to."""
    near = directory.parent / name
    return near if directory.name and near.is_dir() else directory.resolve().parent / name


def open_lexicon(directory: Path) -> Dataset:
    """Open a lexicon that stage ``lexicon`` or ``paraforge lexicon extract`` wrote. Raises InputError if it
    is not a lexicon or has a newer format, or a file is missing or damaged."""
    _, records = layout.read_lexicon_json(directory)
    files = [_check_size(directory, name, None) for name, _ in records]
    schema = read_schema(files[0]) if files else layout.SCHEMA
    return Dataset(LEXICON, directory, files, sum(rows for _, rows in records), schema)


def open_file(path: Path) -> AbstractContextManager[pq.ParquetFile]:
    """Open a file of a dataset; see :func:`~paraforge.base.shards.store.open_parquet`."""
    return open_parquet(path, PUBLISH_AGAIN)


def neighbors(corpus: Dataset, damaged: bool = True) -> tuple[dict[str, Dataset], dict[str, str]]:
    """Open a corpus and the datasets next to it. Returns those that can be read, by name, and why the others
    cannot be.

    damaged: report a dataset that exists but cannot be read in the second result; otherwise it raises
        InputError.
    """
    datasets = {corpus.name: corpus}
    missing: dict[str, str] = {}
    for name in (KEPT, REJECTED, LEXICON):
        if name in datasets:
            continue
        directory = beside(corpus.directory, name)
        if not directory.is_dir():
            missing[name] = f"there is no directory {directory}"
            continue
        try:
            datasets[name] = open_lexicon(directory) if name == LEXICON else open_published(directory)
        except InputError as error:
            if not damaged:
                raise
            missing[name] = str(error)
    return datasets, missing


@dataclass(frozen=True)
class HeldOut:
    """Pairs of held-out splits, whose sentences must also be left out of training on other text. The distinct
    sentences are in memory."""

    directory: Path

    @property
    def digest(self) -> str:
        """Hash of the shards."""
        return ShardDirectory(self.directory).digest

    @cached_property
    def _sentences(self) -> SentenceSet:
        tables = ShardDirectory(self.directory).tables(TEXT_COLUMNS)
        return SentenceSet(
            {HELD_OUT: (t for table in tables for side in table.columns for t in side.to_pylist())}
        )

    def holds(self, texts: Any) -> NDArray[np.bool_]:
        """Return which texts are held out, ignoring case, punctuation and spaces."""
        return self._sentences.holds(texts)


def open_held_out(directory: Path) -> HeldOut | None:
    """Open ``data/held_out``, which the stage publish wrote; None if no pair is held out. Raises InputError
    if there are no such shards."""
    return HeldOut(directory.absolute()) if ShardDirectory(directory).total_rows else None


def _check_size(directory: Path, name: str, size: int | None) -> Path:
    path = directory.absolute() / name
    try:
        actual = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(len(_MAGIC))
            file.seek(-min(actual, len(_MAGIC)), 2)
            tail = file.read()
    except FileNotFoundError as error:
        raise InputError("missing, but listed in the manifest", path, remedy=PUBLISH_AGAIN) from error
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", path) from error
    if size is not None and actual != size:
        raise InputError(
            f"damaged: it has {actual:,} bytes, the manifest says {size:,}", path, remedy=PUBLISH_AGAIN
        )
    if head != _MAGIC or tail != _MAGIC:
        raise InputError("damaged: not a complete Parquet file", path, remedy=PUBLISH_AGAIN)
    return path


def _type(name: str) -> pa.DataType:
    try:
        return pa.type_for_alias(name)
    except ValueError:
        return pa.string()


def corpus_blocks(directory: Path) -> Iterator[PairBlock]:
    """Yield a corpus' training pairs, block by block, without held-out splits and rejected or failed pairs.
    Raises InputError if it is missing or damaged."""
    if not is_published(directory):
        yield from read_corpus_pairs(directory)
        return
    dataset = open_published(directory).training
    columns = [name for name in (*TEXT_COLUMNS, "source") if name in dataset.schema.names]
    for table in published_tables(dataset, columns):
        yield from blocks_of_sources(table, TEXT_COLUMNS)
