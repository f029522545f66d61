"""Several published corpora as one, with their sources, licences and splits; no pair twice."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from paraforge.base.errors import IncompleteError, InputError
from paraforge.base.files import remove_directory
from paraforge.base.interrupts import check_interrupt
from paraforge.base.progress import progress
from paraforge.base.shards.clusters import find_clusters, read_clusters
from paraforge.base.shards.groups import GroupRanker
from paraforge.base.shards.lineage import LINEAGE, text_keys
from paraforge.base.shards.schema import TEXT_COLUMNS
from paraforge.base.shards.store import ShardWriter, shard_name, write_shard
from paraforge.base.shards.work import replaced_directories
from paraforge.base.text.normalisation import normalise
from paraforge.corpus.columns import COLUMNS
from paraforge.corpus.publication.card import write_description
from paraforge.corpus.publication.datasets import Dataset, kept_pairs, published_tables
from paraforge.corpus.publication.groups import GROUP, joining_keys
from paraforge.corpus.publication.manifest import (
    TRAIN,
    Manifest,
    PublishedFile,
)
from paraforge.corpus.publication.parameters import PublishParameters
from paraforge.corpus.publication.statistics import Statistics, count_lineage, describe
from paraforge.corpus.selection.reasons import REPEATED
from paraforge.interface.query.merged_manifest import (
    merged_group_score,
    merged_manifest,
    merged_parameters,
    source_names,
    warn_of_differences,
)

logger = logging.getLogger(__name__)

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Merged:
    """What came of it. repeated: pairs left out, as an earlier corpus has them. moved: pairs for training
    that went to a split, as they share a sentence with it."""

    manifest: Manifest
    repeated: int
    moved: int


def merge_corpora(
    corpora: Sequence[Dataset],
    output: Path,
    name: str = "",
    rename: bool = False,
    group_score: float | None = None,
) -> Merged:
    """Write the pairs of two or more corpora, in their order, into a directory, with manifest and card.

    A pair whose sentences, but for case, punctuation and spaces, an earlier corpus has is left out and
    counted as rejected. Groups are found anew over all. Splits stay: of pairs that share a sentence, none is
    for training where one is held out.

    output: the directory, which is replaced as a whole. name: of the corpus; by default the others' names.
    rename: call a source that an earlier corpus has, too, ``SOURCE.2`` (``.3``, ...). Otherwise a row of
        both that has other sentences is an error.
    group_score: see ``publish.group_score``; by default the highest of the corpora.

    Memory grows by 10 bytes per pair; the disk of the output has some 200 while it runs.

    Raises InputError: rejected pairs, columns of other types, rows of one name that differ, a damaged file.
    """
    manifests = [kept_pairs(corpus, TEXT_COLUMNS) for corpus in corpora]
    warn_of_differences(corpora, manifests)
    score = merged_group_score(corpora, manifests) if group_score is None else group_score
    schema = _schema(corpora, () if score is None else (GROUP,))
    names = source_names(manifests) if rename else [{} for _ in corpora]
    starts = list(accumulate((corpus.rows for corpus in corpora), initial=0))
    with replaced_directories(output) as (directory,):
        scratch = directory / "scratch"
        repeated = _repeated(corpora, names, starts, scratch)
        splits = _splits(corpora, starts, scratch)
        groups = None if score is None else _groups(corpora, starts, ~repeated, score, scratch)
        parameters = merged_parameters(corpora, manifests, names, name)
        files, statistics = _write(corpora, names, schema, repeated, splits, groups, directory, parameters)
        manifest = merged_manifest(manifests, names, files, statistics, schema, parameters, score)
        if manifest.rows != manifest.expected_rows or manifest.rows + int(repeated.sum()) != starts[-1]:
            raise IncompleteError(f"merge: {manifest.rows:,} rows of {manifest.expected_rows:,} were written")
        remove_directory(scratch)
        write_description(directory, manifest, statistics, parameters)
    return Merged(manifest, int(repeated.sum()), int(((splits.place != splits.before) & ~repeated).sum()))


def _schema(corpora: Sequence[Dataset], made: Sequence[str] = ()) -> pa.Schema:
    """All columns of all, and others that are made, in the order of the project."""
    found: dict[str, tuple[pa.Field, Path]] = {name: (COLUMNS[name], Path()) for name in made}
    for corpus in corpora:
        for column in corpus.schema:
            known, path = found.setdefault(column.name, (column, corpus.directory))
            if known.type != column.type:
                raise InputError(
                    f"column '{column.name}' is {column.type}, and {known.type} in {path}",
                    corpus.directory,
                    remedy="Publish both with the same version, or leave the column out of one: "
                    "'paraforge export-corpus --columns'.",
                )
    ordered = [*(name for name in COLUMNS if name in found), *(name for name in found if name not in COLUMNS)]
    return pa.schema([COLUMNS[name] if name in COLUMNS else found[name][0] for name in ordered])


def _tables(
    corpora: Sequence[Dataset], columns: Sequence[str], names: Sequence[dict[str, str]] = ()
) -> Iterator[pa.Table]:
    """Columns of all rows, null where a corpus has no such column."""
    for place, corpus in enumerate(corpora):
        known = [name for name in columns if name in corpus.schema.names]
        for table in published_tables(corpus, known):
            check_interrupt()
            if names and names[place] and "source" in known:
                new = [names[place].get(source, source) for source in table["source"].to_pylist()]
                table = table.set_column(known.index("source"), "source", pa.array(new, pa.string()))
            for name in columns:
                if name not in known:
                    kind = COLUMNS[name].type if name in COLUMNS else pa.null()
                    table = table.append_column(name, pa.nulls(table.num_rows, kind))
            yield table.select(list(columns))


def _repeated(
    corpora: Sequence[Dataset], names: Sequence[dict[str, str]], starts: Sequence[int], scratch: Path
) -> NDArray[np.bool_]:
    """Which pairs an earlier corpus has, too. Raises InputError: a row has other sentences there."""
    pairs, rows = GroupRanker(scratch / "pairs"), GroupRanker(scratch / "rows")
    for table in _tables(corpora, [*TEXT_COLUMNS, *LINEAGE], names):
        texts = [normalise(pc.fill_null(table[name], "")) for name in TEXT_COLUMNS]
        pairs.add(text_keys(*texts))
        rows.add(text_keys(*(pc.fill_null(table[name].cast(pa.string()), "") for name in LINEAGE)))
    pairs.finish()
    rows.finish()
    repeated = np.zeros(starts[-1], bool)
    for place in range(1, len(corpora)):
        begin, end = starts[place], starts[place + 1]
        repeated[begin:end] = pairs.ranks(begin, end)[1] < begin
        other = np.flatnonzero((rows.ranks(begin, end)[1] < begin) & ~repeated[begin:end])
        if len(other):
            row = _row(corpora[place], int(other[0]))
            raise InputError(
                f"{len(other):,} of its rows have other sentences in an earlier corpus, the first is line "
                f"{row['line']:,} of source '{row['source']}'",
                corpora[place].directory,
                remedy="Give --rename to keep both, with sources of this corpus renamed.",
            )
    return repeated


def _row(corpus: Dataset, number: int) -> dict[str, Any]:
    for table in published_tables(corpus, ["source", "line"]):
        if number < table.num_rows:
            return dict(table.slice(number, 1).to_pylist()[0])
        number -= table.num_rows
    raise IndexError(number)


@dataclass(frozen=True)
class _Splits:
    """names: of all splits, that for training first. before: the place in them of the split that each row was
    in. place: of that which it is in now."""

    names: list[str]
    before: NDArray[np.uint8]
    place: NDArray[np.uint8]


def _splits(corpora: Sequence[Dataset], starts: Sequence[int], scratch: Path) -> _Splits:
    """Of rows that are connected by a sentence, all are in the first split in which one is held out."""
    names = list(dict.fromkeys([TRAIN, *(name for corpus in corpora for name in corpus.splits)]))
    before = np.zeros(starts[-1], np.uint8)
    if len(names) == 1:
        return _Splits(names, before, before)
    for corpus, start in zip(corpora, starts, strict=False):
        for name, part in corpus.splits.items():
            before[start : start + part.rows] = names.index(name)
            start += part.rows
    columns = [*TEXT_COLUMNS, "source_text"]
    keys = (joining_keys(table, columns, None) for table in _tables(corpora, columns))
    ranking, output = scratch / "clusters.keys", scratch / "clusters"
    find_clusters(keys, len(before), len(columns), ranking, output, "merge: clusters")
    clusters = read_clusters(output, len(before))
    first = np.full(len(before), len(names), np.uint8)
    held = np.flatnonzero(before)
    np.minimum.at(first, np.asarray(clusters[held]), before[held])
    place = first[clusters] % np.uint8(len(names))  # where none is held out, for training
    return _Splits(names, before, place)


def _groups(
    corpora: Sequence[Dataset], starts: Sequence[int], kept: NDArray[np.bool_], score: float, scratch: Path
) -> Rows:
    """The group of each row that is kept, as they would be published."""
    columns = [*TEXT_COLUMNS, "paraphrase_score"]

    def keys() -> Iterator[NDArray[np.uint64]]:
        start = 0
        for table in _tables(corpora, columns):
            stop = start + table.num_rows
            yield joining_keys(table.filter(pa.array(kept[start:stop])), TEXT_COLUMNS, score)
            start = stop

    total = int(kept.sum())
    ranking, output = scratch / "groups.keys", scratch / "groups"
    find_clusters(keys(), total, len(TEXT_COLUMNS), ranking, output, "merge: groups")
    return read_clusters(output, total)


def _write(
    corpora: Sequence[Dataset],
    names: Sequence[dict[str, str]],
    schema: pa.Schema,
    repeated: NDArray[np.bool_],
    splits: _Splits,
    groups: Rows | None,
    directory: Path,
    parameters: PublishParameters,
) -> tuple[list[PublishedFile], Statistics]:
    """Write the rows; gives the files, and statistics in which the repeated rows are rejected."""
    stems = ["shard" if name == TRAIN else name for name in splits.names]
    writers = [ShardWriter(directory, schema, parameters.rows_per_file, stem=stem) for stem in stems]
    statistics = Statistics(parameters.examples)
    lineage = [name for name in ("source", "pivot") if name in schema.names]
    start = written = 0
    with progress(total=len(repeated), unit="pairs", description="merge") as bar:
        for table in _tables(corpora, schema.names, names):
            stop = start + table.num_rows
            kept = ~repeated[start:stop]
            rows = table.filter(pa.array(kept))
            if groups is not None:
                numbers = pa.array(np.asarray(groups[written : written + rows.num_rows]), pa.int64())
                rows = rows.set_column(schema.get_field_index(GROUP), GROUP, numbers)
            rows = rows.cast(schema)
            statistics.add(describe(rows, parameters.examples))
            left_out = table.filter(pa.array(~kept)).select(lineage)
            reasons = pa.repeat(pa.scalar(REPEATED), left_out.num_rows)
            statistics.add(count_lineage(left_out.append_column("rejected", reasons)))
            place = splits.place[start:stop][kept]
            for split in np.unique(place).tolist():
                writers[split].write(rows.filter(pa.array(place == split)))
            start, written = stop, written + rows.num_rows
            bar.update(table.num_rows)
    records = [record for writer in writers for record in writer.close()]
    records = records or [write_shard(schema.empty_table(), directory / shard_name(0))]
    sizes = [(directory / record.file).stat().st_size for record in records]
    files = [PublishedFile(r.file, r.rows, size, r.sha256) for r, size in zip(records, sizes, strict=True)]
    return files, statistics
