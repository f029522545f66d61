"""Collects all hypotheses of a corpus from the memory in one memory-mapped file, in the order of the
sentences, and adds them to every row."""

import contextlib
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from paraforge.base.files import remove_directory
from paraforge.base.shards.pool import in_threads
from paraforge.base.shards.schema import COLUMNS, schema_of, tables_of
from paraforge.base.shards.step import Step
from paraforge.base.text.ragged import ranges, text_bytes
from paraforge.intake.bitext.cleaning import compose
from paraforge.translation.memory.distinct import mapped_array
from paraforge.translation.memory.memory import HYPOTHESES, HYPOTHESIS_COLUMNS
from paraforge.translation.memory.recall import Recalled
from paraforge.translation.stage.remembering import Remembered
from paraforge.translation.stage.sentences import EngineChoice
from paraforge.versions import TRANSLATE

# Rows per record batch; to fetch one row, its whole batch is read.
_BATCH_ROWS = 65_536
# Hypotheses to put in order at a time. If each block needs most segments of the memory, several blocks are
# processed together, because each pass reads its segments again.
_BLOCK, _BLOCKS_TOGETHER = 250_000, 8
# Each thread has two blocks in memory.
_MOST_THREADS = 8
# Rows that are hashed together.
_HASHED_ROWS = 4096
# Arrow counts the bytes of a column of texts in 31 bits.
_MOST_BYTES = 1 << 30


@dataclass(frozen=True)
class HypothesisFile:
    """The hypotheses of sentences 0, 1, ... of a corpus, in a file.

    path: Arrow IPC file with the columns of a hypothesis. Next to it is a file with the number of each
        sentence's first row, then of all rows.
    digest: SHA-256 of the content.
    """

    path: Path
    digest: str

    def fetch(self, sentences: NDArray[np.int64]) -> tuple[pa.Table, NDArray[np.int64]]:
        """Return the rows of the given ascending sentences, and how many each has. Only their pages are
        read."""
        starts = mapped_array(self.path.with_suffix(".starts"), "<i8")
        left = np.asarray(starts[sentences])
        counts = np.asarray(starts[sentences + 1]) - left
        rows = ranges(left, counts)
        cuts = np.flatnonzero(np.diff(rows // _BATCH_ROWS)) + 1
        with pa.memory_map(str(self.path)) as source, pa.ipc.open_file(source) as reader:
            taken = [
                reader.get_batch(int(part[0]) // _BATCH_ROWS).take(pa.array(part % _BATCH_ROWS))
                for part in np.split(rows, cuts)
                if len(part)
            ]
        return pa.Table.from_batches(taken, HYPOTHESES).combine_chunks(), counts


def assemble(recalled: Recalled, nbest: int, directory: Path, threads: int = 1) -> HypothesisFile:
    """Write the hypotheses of all sentences, which must all be in the memory.

    Memory does not grow with the corpus. Segments in the corpus' order are read once, others once for every
    two million hypotheses.

    recalled: where the memory has each sentence. nbest: most hypotheses per sentence.
    directory: for the files; its content is removed first. threads: threads that order blocks, at most eight.
    """
    remove_directory(directory)
    directory.mkdir(parents=True)
    path = directory / "hypotheses.arrow"
    digest = hashlib.sha256()
    rows = 0
    size = max(1, _BLOCK // nbest)
    scattered = _is_scattered(recalled, size)
    at_once = size * (_BLOCKS_TOGETHER if scattered else 1)
    ordered = in_threads(
        lambda places: _block(recalled, places, nbest),
        recalled.blocks(at_once),
        1 if scattered else min(threads, _MOST_THREADS),
    )
    with (
        pa.OSFile(str(path), "wb") as sink,
        pa.ipc.new_file(sink, HYPOTHESES) as writer,
        path.with_suffix(".starts").open("wb") as starts,
        contextlib.closing(ordered) as blocks,
    ):

        def noted() -> Iterator[pa.Table]:
            nonlocal rows
            for table, counts in blocks:
                # The digest is part of keys, so it must not depend on the memory's order.
                cuts = np.append(0, np.cumsum(counts))[[*range(0, len(counts), size), len(counts)]]
                for begin, end in pairwise(cuts.tolist()):
                    _digest_into(digest, table.slice(begin, end - begin))
                (rows + np.cumsum(counts) - counts).astype("<i8").tofile(starts)
                rows += table.num_rows
                yield table

        for batch in tables_of(noted(), _BATCH_ROWS):
            writer.write_table(batch.combine_chunks())
        np.array([rows], "<i8").tofile(starts)
    return HypothesisFile(path, digest.hexdigest())


def _is_scattered(recalled: Recalled, size: int) -> bool:
    """Return whether segments would be read more than twice on average with blocks of this size."""
    blocks = read = 0
    for places in recalled.blocks(size):
        blocks += 1
        read += len(np.unique(np.searchsorted(recalled.bases, places % recalled.rows, "right")))
    return read > blocks + 2 * len(recalled.segments)


def _block(recalled: Recalled, places: NDArray[np.int64], nbest: int) -> tuple[pa.Table, NDArray[np.int64]]:
    """Return the hypotheses of a block of sentences in order, and how many each has."""
    first = places % recalled.rows
    order = np.argsort(first, kind="stable")
    cuts = np.searchsorted(first[order], recalled.bases)
    tables, counts = [], np.zeros(len(places), np.int64)
    for number in np.flatnonzero(np.diff(cuts)):
        rows = order[cuts[number] : cuts[number + 1]]
        table = recalled.segments[number].read(["key", *HYPOTHESES.names])
        known = table.column("key").is_valid().to_numpy()
        heads = np.append(np.flatnonzero(known), table.num_rows)
        left = first[rows] - recalled.bases[number]
        # An imported set can have more hypotheses than requested.
        counts[rows] = np.minimum(heads[np.searchsorted(heads, left) + 1] - left, nbest)
        tables.append(table.drop_columns("key").take(pa.array(ranges(left, counts[rows]))))
    if sum(table["translation"].nbytes for table in tables) > _MOST_BYTES and len(places) > 1:
        del tables
        halves = [_block(recalled, half, nbest) for half in np.array_split(places, 2)]
        return pa.concat_tables(half for half, _ in halves), counts
    # From the memory's order to that of the sentences.
    sorted_counts = counts[order]
    begins = np.empty(len(places), np.int64)
    begins[order] = np.cumsum(sorted_counts) - sorted_counts
    merged = pa.concat_tables(tables).cast(HYPOTHESES).combine_chunks()
    # In the Unicode form of the references, so that equal words are equal; engines can use another form.
    texts = compose(merged["translation"].combine_chunks(), Counter())
    merged = merged.set_column(
        merged.column_names.index("translation"), HYPOTHESES.field("translation"), texts
    )
    return merged.take(pa.array(ranges(begins, counts))), counts


def _digest_into(digest: "hashlib._Hash", table: pa.Table) -> None:
    """Hash the content of a table, independent of its layout in memory."""
    for block in tables_of([table], _HASHED_ROWS):
        for column in block.columns:
            null = column.is_null().to_numpy()
            digest.update(np.packbits(null).tobytes())
            if pa.types.is_string(column.type):
                texts = pc.fill_null(column, "").combine_chunks()
                digest.update(pc.binary_length(texts).to_numpy().tobytes())
                digest.update(text_bytes(texts)[0].data)
            else:
                digest.update(pc.fill_null(column, pa.scalar(0).cast(column.type)).to_numpy().tobytes())


def rows_step(
    choice: EngineChoice,
    hypotheses: HypothesisFile | None,
    remembered: Remembered | None,
    lineage: Mapping[str, str | None],
    notes: Mapping[str, Any],
) -> Step:
    """Return the step from ``ingested`` and ``places`` to rows with the columns of hypotheses.

    choice: engine with options and model.
    hypotheses: hypotheses of all sentences; None if there are no sentences.
    remembered: how the sentences were translated and how many were known, for the index; None if there are
        no sentences.
    lineage: additional columns with a constant value.
    notes: further entries of the index.
    """
    if remembered is not None:
        counts = {
            "sentences": len(remembered.recalled.places),
            "sentences_from_memory": remembered.known_before,
        }
        notes = {**notes, **counts}
    return Step(
        name="translate",
        version=TRANSLATE,
        parameters={
            **choice.parameters(),
            "hypotheses": hypotheses.digest if hypotheses else "none",
            **lineage,
        },
        fingerprints={"model": choice.weights},
        build=build_rows,
        arguments={"hypotheses": hypotheses, "lineage": lineage},
        aligned=False,
        inherited=remembered.versions() if remembered else {},
        notes=dict(notes),
    )


def build_rows(
    hypotheses: HypothesisFile | None, lineage: Mapping[str, str | None]
) -> Callable[[pa.Table], pa.Table]:
    """Return the function from rows with ``sentence`` to complete rows."""

    def complete(table: pa.Table) -> pa.Table:
        number = table.column("sentence")
        waits = number.is_valid().to_numpy()
        distinct, own = np.unique(number.drop_null().to_numpy(), return_inverse=True)
        if hypotheses is None:
            hypotheses_of, counts = HYPOTHESES.empty_table(), np.empty(0, np.int64)
        else:
            hypotheses_of, counts = hypotheses.fetch(distinct)
        # A row that is not translated stays one row without a hypothesis (-1).
        left, count = np.full(table.num_rows, -1), np.ones(table.num_rows, np.int64)
        left[waits], count[waits] = (np.cumsum(counts) - counts)[own], counts[own]
        rows = np.repeat(np.arange(table.num_rows), count)
        table = table.drop_columns("sentence")
        for name, value in lineage.items():
            values = pa.repeat(pa.scalar(value, COLUMNS[name].type), table.num_rows)
            table = table.append_column(COLUMNS[name], values)
        return _join(table, rows, hypotheses_of, ranges(left, count))

    return complete


def _join(
    base: pa.Table, rows: NDArray[np.int64], hypotheses: pa.Table, places: NDArray[np.int64]
) -> pa.Table:
    repeated = base if len(rows) == base.num_rows else base.take(pa.array(rows))
    voids = places < 0
    taken = hypotheses.take(pa.array(places, mask=voids))
    void = pa.array(voids)
    columns: dict[str, Any] = {name: repeated.column(name) for name in repeated.column_names}
    for name in HYPOTHESIS_COLUMNS:
        column = taken.column(name)
        if name in ("translation", "translation_score", "failed"):
            if name in columns:  # a row with a given translation or an earlier failure keeps it
                column = pc.if_else(void, columns[name], column)
        else:
            column = pc.fill_null(column, 0 if name == "rank" else False)
        columns[name] = column.cast(COLUMNS[name].type)
    order = [name for name in COLUMNS if name in columns]
    extra = [repeated.schema.field(name) for name in columns if name not in COLUMNS]
    schema = schema_of(order, extra)
    return pa.table([columns[name] for name in schema.names], schema=schema)
