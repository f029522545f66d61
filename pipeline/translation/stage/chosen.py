"""Chooses which sentences of a corpus to translate if their number is limited. The rows of the others fail
as ``not_chosen``, and a later run with a higher limit translates them."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from paraforge.base.files import remove_directory
from paraforge.base.shards.groups import Keys, run_query
from paraforge.base.shards.pool import threads_for
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.schema import COLUMNS
from paraforge.base.shards.store import ShardDirectory, shard_name, write_index, write_shard
from paraforge.base.shards.work import WorkDirectory, replaced_directory
from paraforge.translation.memory.distinct import DistinctSentences, find_distinct, mapped_array
from paraforge.translation.stage.parameters import TranslateParameters

logger = logging.getLogger(__name__)

NOT_CHOSEN: Final = "not_chosen"
STEP: Final = "chosen"
# Number of keys to read at once.
_BLOCK = 1_000_000
_ENTRIES = pa.schema({"high": pa.uint64(), "low": pa.uint64(), "number": pa.int64()})
_DRAWN = "SELECT number FROM entries ORDER BY high, low, number LIMIT {wanted}"


def chosen_corpus(parameters: TranslateParameters, ingested: Path, resources: Resources) -> Path:
    """Write a copy of the corpus in which unchosen rows have failed, and return the directory to translate.

    The sentences with the smallest hashes are chosen. So the choice does not depend on shards, workers or
    threads, and a higher limit keeps all earlier choices. Memory does not grow with the corpus.

    parameters: ``maximum_sentences``. ingested: shards with the columns that ingest writes.
    resources: the work directory and reading threads.

    Returns a directory in the work directory whose column ``failed`` is ``not_chosen`` in rows that are left
    out, or ``ingested`` itself if there are none. If the call is killed, the next one starts over.

    Raises InputError if a shard is damaged or the disk is full, WorkLockedError if another process chooses.
    """
    limit = parameters.maximum_sentences
    if limit is None:
        return ingested
    corpus = ShardDirectory(ingested)
    work = WorkDirectory(STEP, resources.work.resolve())
    threads = threads_for(resources, corpus.total_rows)
    with work.lock():
        distinct = find_distinct(corpus, work.path / "distinct", threads)
        total, output = len(distinct), ingested
        if total > limit:
            output = work.path / "corpus"
            keys = mapped_array(distinct.keys, "<u8").reshape(-1, 2)
            drawn = draw(keys, limit, work.path / "drawn")
            _write(corpus, distinct, drawn, output, {"maximum_sentences": limit})
            logger.info("%d of %d distinct sentences are translated", limit, total)
        for name in ("distinct", "drawn"):
            remove_directory(work.path / name)
    return output


def draw(keys: Keys, wanted: int, directory: Path) -> NDArray[np.bool_]:
    """Draw the sentences with the smallest keys. DuckDB sorts in at most 1 GB.

    keys: keys of sentences, n x 2. wanted: number of sentences to draw.
    directory: for the file; its content is removed first.

    Returns whether each sentence is drawn, mapped from a file.
    """

    def entries() -> Iterator[pa.RecordBatch]:
        for begin in range(0, len(keys), _BLOCK):
            high, low = np.ascontiguousarray(keys[begin : begin + _BLOCK].T)
            numbers = np.arange(begin, begin + len(high))
            yield pa.record_batch([pa.array(column) for column in (high, low, numbers)], schema=_ENTRIES)

    reader = pa.RecordBatchReader.from_batches(_ENTRIES, entries())
    query = _DRAWN.format(wanted=wanted)
    result = run_query(query, {"entries": reader}, directory, "sentences cannot be drawn")
    drawn = np.lib.format.open_memmap(directory / "drawn.npy", "w+", np.bool_, (len(keys),))
    with pq.ParquetFile(result) as file:
        for batch in file.iter_batches():
            drawn[batch.column(0).to_numpy()] = True
    return drawn


def _write(
    corpus: ShardDirectory,
    distinct: DistinctSentences,
    drawn: NDArray[np.bool_],
    output: Path,
    about: dict[str, Any],
) -> None:
    """Write the corpus with the column ``failed``."""
    places = ShardDirectory(distinct.places)
    records = []
    with replaced_directory(output) as temporary:
        for index, table in enumerate(corpus.tables()):
            sentence = places.read(index)["sentence"]
            left_out = ~drawn[pc.fill_null(sentence, 0).to_numpy()] & sentence.is_valid().to_numpy()
            reasons = pc.if_else(pa.array(left_out), NOT_CHOSEN, pa.scalar(None, pa.string()))
            table = table.append_column(COLUMNS["failed"], reasons)
            records.append(write_shard(table, temporary / shard_name(index)))
        write_index(temporary, records, {"step": STEP, STEP: about})
