"""Publishes kept and rejected pairs as two Parquet datasets with manifest, signature and card."""

import logging
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paraforge.base.errors import IncompleteError, InputError, describing
from paraforge.base.files import hash_json, read_json, remove_directory, sha256_file
from paraforge.base.logs import counted
from paraforge.base.progress import progress
from paraforge.base.shards.lineage import LINEAGE
from paraforge.base.shards.pool import in_order, threads_for
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.schema import FATE_COLUMNS
from paraforge.base.shards.store import ShardRecord, ShardView, ShardWriter, shard_name, write_shard
from paraforge.base.shards.work import WorkDirectory, replaced_directories
from paraforge.base.text.language_codes import two_letters
from paraforge.corpus.columns import COLUMNS
from paraforge.corpus.publication.card import write_description
from paraforge.corpus.publication.datasets import HELD_OUT, HELD_OUT_SCHEMA
from paraforge.corpus.publication.groups import GROUP, Grouping, find_grouping, kept_rows, present
from paraforge.corpus.publication.manifest import (
    KEPT,
    REJECTED,
    Content,
    Manifest,
    PublishedFile,
    describe_columns,
)
from paraforge.corpus.publication.parameters import PublishParameters
from paraforge.corpus.publication.signature import is_given, is_round_trip, signature
from paraforge.corpus.publication.statistics import Published, describe
from paraforge.corpus.scoring.wrong_pairs import find_wrong_pairs, store_wrong_pairs, with_texts_of
from paraforge.corpus.selection.fate import kept_mask
from paraforge.corpus.selection.parameters import SelectParameters

logger = logging.getLogger(__name__)

STEP = "publish"
_UNPUBLISHED = ("first_row",)
# Entries of a step's description that the manifest contains.
_DESCRIBED = ("version", "parameters", "fingerprints", "libraries")
_DESCRIBED_IF_KNOWN = ("sentences", "sentences_from_memory", "forward", "chosen")
# With a page index, readers skip pages by a condition. With content-defined chunks, storage such as the Hub's
# stores the unchanged parts of a new version only once.
_OPTIONS = {"write_page_index": True, "use_content_defined_chunking": True}


@dataclass(frozen=True)
class PublishReport:
    """The result of publication: the manifests of both datasets, the statistics, and the wall-clock time."""

    corpus: Manifest
    rejected: Manifest
    statistics: Published
    seconds: float

    def result(self) -> str:
        """Return the result in one line: ``13,396 pairs in 1 file, 1.2 MB; 6,604 rejected; 0.3 s``."""
        files = len(self.corpus.files)
        size = f"{self.corpus.bytes / 1e6:,.1f} MB"
        parts = [f"{counted(self.corpus.rows, 'pair')} in {counted(files, 'file')}, {size}"]
        held = [f"{rows:,} for {name}" for name, rows in self.corpus.splits.items()]
        parts += held[1:]
        counts = {"rejected": self.corpus.counts.rejected, "failed": self.corpus.counts.failed}
        parts += [f"{reasons.total():,} {name}" for name, reasons in counts.items() if reasons]
        return "; ".join([*parts, f"{self.seconds:.1f} s"])

    def metrics(self) -> dict[str, Any]:
        """Return the content of ``metrics/publish.json``."""
        counts = self.corpus.counts
        pivots = {name: pivot_counts.as_dict() for name, pivot_counts in sorted(self.corpus.pivots.items())}
        return {
            "pairs": counts.kept,
            "rejected": counts.rejected.total(),
            "failed": counts.failed.total(),
            "files": len(self.corpus.files),
            "megabytes": round(self.corpus.bytes / 1e6, 3),
            "seconds": round(self.seconds, 3),
            "pairs_per_second": round(counts.rows_in / self.seconds) if self.seconds else 0,
            **({"pivots": pivots} if pivots else {}),
        }


def publish(
    parameters: PublishParameters,
    inputs: Sequence[Path],
    selected: Path,
    corpus: Path,
    rejected: Path,
    held_out: Path,
    model: Path,
    resources: Resources,
) -> PublishReport:
    """Write both datasets and the held-out pairs; each directory is replaced as a whole.

    parameters: name, licenses, file size.
    inputs: row-aligned shard directories, ``data/translated`` and ``data/scored``.
    selected: the output of selection for them, ``data/selected``.
    corpus, rejected: where to publish the kept pairs, and the rejected or failed ones.
    held_out: where to also write the sentences of the splits, for stages that train on other text.
    model: ``model.json`` of the translation model, if it exists. Its languages are used if the parameters
        name none.
    resources: threads, and the work directory that holds the lock.

    Raises:
        InputError: there are no pairs, a shard is damaged, or the selection belongs to another input.
        IncompleteError: rows in differ from kept + rejected + failed.
        WorkLockedError: another process is publishing with the same work directory.
    """
    started = time.monotonic()
    if parameters.languages is None and model.is_file():
        parameters = parameters.model_copy(update={"languages": _languages_of(model)})
    view = ShardView(*inputs, selected)
    if not view.total_rows:
        raise InputError("there are no pairs to publish", inputs[0])
    with ExitStack() as stack:
        work = WorkDirectory(STEP, resources.work)
        stack.enter_context(work.lock())
        workers = threads_for(resources, view.total_rows)
        scratch = work.path / "groups"
        remove_directory(scratch)  # left by a killed run
        scratch.mkdir()
        stack.callback(remove_directory, scratch)
        grouping = find_grouping(view, parameters, scratch, workers)
        outputs = {KEPT: corpus, REJECTED: rejected, HELD_OUT: held_out}
        places = stack.enter_context(replaced_directories(*outputs.values()))
        directories = dict(zip(outputs, places, strict=True))
        publication = _Publication(parameters, view, directories, workers, grouping)
        kept, refused, statistics = publication.run()
    if not statistics.counts.kept:
        logger.warning("the published corpus is empty: no pair was kept")
    return PublishReport(kept, refused, statistics, time.monotonic() - started)


def _languages_of(model: Path) -> list[str]:
    """Return the codes of a model's target and source languages."""
    content = read_json(model)
    with describing(model, "damaged index"):
        languages = [str(content["target_language"]), str(content["source_language"])]
    return [two_letters(language) or language for language in languages]


class _Publication:
    def __init__(
        self,
        parameters: PublishParameters,
        view: ShardView,
        directories: dict[str, Path],
        workers: int,
        grouping: Grouping,
    ) -> None:
        self.parameters = parameters
        self.view = view
        self.selected = view.directories[-1].description
        self.steps = {
            str(directory.description.get("step", directory.path.name)): {
                **{key: directory.description.get(key) for key in _DESCRIBED},
                **{
                    key: directory.description[key]
                    for key in _DESCRIBED_IF_KNOWN
                    if key in directory.description
                },
            }
            for directory in view.directories
        }
        self.directories = directories
        self.workers = workers
        self.grouping = grouping
        self.read = [name for name in view.column_names if name not in (*_UNPUBLISHED, GROUP)]
        names = self.read if grouping.groups is None else [*self.read, GROUP]
        columns = [name for name in COLUMNS if name in names]
        columns += [name for name in names if name not in COLUMNS]
        # A column without any value is left out: kept pairs have no reason, and others have no group.
        self.schemas = {
            KEPT: self._schema([name for name in columns if name not in FATE_COLUMNS]),
            REJECTED: self._schema([name for name in columns if name != GROUP]),
        }

    def _schema(self, columns: Sequence[str]) -> pa.Schema:
        column_of = {
            column.name: column for directory in self.view.directories for column in directory.schema
        }
        meanings = self._meanings()
        # Without the keys that steps put into the footers, which do not describe the corpus.
        fields = [COLUMNS[name] if name in COLUMNS else column_of[name] for name in columns]
        return pa.schema(
            field.with_metadata({"description": meanings[field.name]}) if field.name in meanings else field
            for field in fields
        )

    def _meanings(self) -> dict[str, str]:
        """Return the descriptions of text columns if they are not English with translations into English."""
        if is_given(self.steps):
            return {"reference": "a sentence", "translation": "paraphrase of the reference, as it was given"}
        language, meanings = (self.parameters.languages or ["en"])[0], {}
        if language != "en":
            meanings["reference"] = f"side of the bitext in the language {language}"
            meanings["translation"] = f"machine translation of the foreign side into the language {language}"
        if is_round_trip(self.steps):
            meanings["reference"] = "a sentence, as it was given"
            meanings["source_text"] = "machine translation of the reference into another language"
        return meanings

    def run(self) -> tuple[Manifest, Manifest, Published]:
        statistics = Published(self.parameters.examples)
        with ThreadPoolExecutor(self.workers) as pool:
            records = self._write(pool, statistics)
        statistics.counts.check(STEP)
        publication = hash_json([[record.sha256 for record in some] for some in records.values()])[:16]
        return (
            self._describe(KEPT, records[KEPT], statistics, publication),
            self._describe(REJECTED, records[REJECTED], statistics, publication),
            statistics,
        )

    def _write(self, pool: Executor, statistics: Published) -> dict[str, list[ShardRecord]]:
        """Write all files, and add up the statistics of their rows. Returns the files of each dataset."""

        def writer(content: str, stem: str = "shard") -> ShardWriter:
            most, schema = self.parameters.rows_per_file, self.schemas[content]
            return ShardWriter(
                self.directories[content], schema, most, stem=stem, options=_OPTIONS, pool=pool
            )

        splits = [writer(KEPT), *(writer(KEPT, name) for name in self.grouping.names[1:])]
        refused = writer(REJECTED)
        held_out = ShardWriter(self.directories[HELD_OUT], HELD_OUT_SCHEMA)
        with progress(total=self.view.total_rows, unit="pairs", description=STEP) as bar:
            shards = in_order(self._read, len(self.view), self.workers)
            for index, (rows, mask, described) in enumerate(shards):
                bar.update(described.counts.rows_in)
                statistics.add(described)
                refused.write(rows.filter(pa.array(~mask)))
                kept, split = rows.filter(pa.array(mask)), self.grouping.split(index)
                for place in np.unique(split).tolist():
                    part = kept.filter(pa.array(split == place))
                    splits[place].write(part)
                    if place:
                        held_out.write(part)
        if statistics.counts.rows_in != self.view.total_rows:
            raise IncompleteError(
                f"{STEP}: {statistics.counts.rows_in:,} rows were read of {self.view.total_rows:,}"
            )
        held_out.close({"step": HELD_OUT})
        kept_files = [*_close(splits[0]), *(record for split in splits[1:] for record in split.close())]
        return {KEPT: kept_files, REJECTED: _close(refused)}

    def _read(self, index: int) -> tuple[pa.Table, NDArray[np.bool_], Published]:
        """Return the rows of a shard, which of them are kept, and their statistics."""
        rows = self.view.read(index, self.read)
        mask = kept_mask(rows)
        if GROUP in self.schemas[KEPT].names:
            rows = rows.append_column(GROUP, self.grouping.group(index, mask))
        return rows, mask, describe(rows, self.parameters.examples)

    def _describe(
        self, content: Content, records: list[ShardRecord], statistics: Published, publication: str
    ) -> Manifest:
        directory = self.directories[content]
        chosen = SelectParameters.model_validate(self.selected["parameters"])
        manifest = Manifest(
            content=content,
            name=self.parameters.name if content == KEPT else f"{self.parameters.name}: rejected pairs",
            signature=signature(list(statistics.sources), self.steps, chosen),
            counts=statistics.counts,
            sources=statistics.sources,
            pivots=statistics.pivots,
            files=[
                PublishedFile(r.file, r.rows, (directory / r.file).stat().st_size, r.sha256) for r in records
            ],
            columns=describe_columns(self.schemas[content]),
            steps=self.steps,
            licenses=self.parameters.licenses_of(statistics.sources),
            publication=publication,
            verdict=self.selected.get("verdict") or {},
            wrong_pairs=self._copy_wrong_pairs(directory) if content == KEPT else None,
            group_score=self.parameters.group_score,
        )
        if manifest.rows != manifest.expected_rows:
            raise IncompleteError(
                f"{STEP}: the files of {content} have {manifest.rows:,} rows, but the counts give "
                f"{manifest.expected_rows:,}"
            )
        write_description(directory, manifest, statistics, self.parameters)
        return manifest

    def _training_rows(self) -> Iterator[pa.Table]:
        """Yield lineage and translation of each shard's kept pairs that are in no split."""
        for index in range(len(self.view)):
            rows = kept_rows(self.view, index, [*present(self.view, LINEAGE), "translation"])
            yield rows.filter(pa.array(self.grouping.split(index) == 0))

    def _copy_wrong_pairs(self, directory: Path) -> PublishedFile | None:
        """Publish the mismatched pairs behind the verdict, with only the texts of training pairs."""
        pairs = find_wrong_pairs([stage.path for stage in self.view.directories])
        if pairs is None:
            return None
        path = store_wrong_pairs(with_texts_of(pairs, self._training_rows()), directory)
        return PublishedFile(path.name, pairs.num_rows, path.stat().st_size, sha256_file(path))


def _close(writer: ShardWriter) -> list[ShardRecord]:
    """Write the remaining rows, or a file without rows if there are none, because readers need its schema."""
    path = writer.directory / shard_name(0)
    return writer.close() or [write_shard(writer.schema.empty_table(), path, **_OPTIONS)]
