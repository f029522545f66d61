"""Chooses which sentences of a corpus to translate if their number is limited. The rows of the others fail
as ``not_chosen``, and a later run with a higher limit translates them."""

import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from paraforge.base.devices import torch_threads
from paraforge.base.files import remove_directory, sha256_file
from paraforge.base.interrupts import check_interrupt
from paraforge.base.shards.groups import Keys, run_query
from paraforge.base.shards.pool import threads_for
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.schema import COLUMNS
from paraforge.base.shards.store import ShardDirectory, shard_name, write_index, write_shard
from paraforge.base.shards.work import WorkDirectory, replaced_directory
from paraforge.base.word_vectors.cells import find_centroids, nearest_cells
from paraforge.base.word_vectors.subword_vectors import SubwordVectors
from paraforge.translation.memory.distinct import DistinctSentences, find_distinct, mapped_array
from paraforge.translation.stage.parameters import TranslateParameters

logger = logging.getLogger(__name__)

NOT_CHOSEN: Final = "not_chosen"
STEP: Final = "chosen"
CLUSTERS: Final = 256
"""A fixed number, because with other clusters a higher limit would choose other sentences."""
# Number of sentences to find clusters on, and number of sentences to embed at once.
_SAMPLE, _BLOCK = 50_000, 50_000
_SEED = 1
_ENTRIES = pa.schema({"high": pa.uint64(), "low": pa.uint64(), "number": pa.int64(), "cluster": pa.int16()})
# The first sentence of each cluster, then the second of each cluster that has one, and so on.
_DRAWN = """
    SELECT number
    FROM entries
    ORDER BY row_number() OVER (PARTITION BY cluster ORDER BY high, low, number), high, low, number
    LIMIT {wanted}
"""


def chosen_corpus(
    parameters: TranslateParameters, ingested: Path, vectors: Path, resources: Resources
) -> Path:
    """Write a copy of the corpus in which unchosen rows have failed, and return the directory to translate.

    The vector of a foreign sentence's first reference decides its cluster, and the sentence's hash decides
    its rank in that cluster. The choice depends on the corpus but not on shards, workers or threads, and a
    higher limit keeps all earlier choices. If the corpus grows, its clusters change, so some earlier choices
    can be dropped. With ``uniform`` that only happens if new sentences have smaller hashes. Memory does not
    grow with the corpus.

    parameters: ``maximum_sentences`` and ``spread``. ingested: shards with the columns that ingest writes.
    vectors: file of the built-in scorer's vectors. resources: the work directory and reading threads.

    Returns a directory in the work directory whose column ``failed`` is ``not_chosen`` in rows that are left
    out, or ``ingested`` itself if there are none. If the call is killed, the next one starts over.

    Raises InputError if a shard is damaged or the disk is full, WorkLockedError if another process chooses,
    Interrupted on SIGTERM or Ctrl-C.
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
            about: dict[str, Any] = {"maximum_sentences": limit, "spread": parameters.spread}
            opened = None
            if parameters.spread == "clusters":
                opened, about["vectors"] = SubwordVectors.open(vectors), sha256_file(vectors)
            drawn = draw(_entries(corpus, distinct, opened, threads), limit, work.path / "drawn")
            _write(corpus, distinct, drawn, output, about)
            logger.info("%d of %d distinct sentences are translated", limit, total)
        for name in ("distinct", "drawn"):
            remove_directory(work.path / name)
    return output


def draw(blocks: Iterable[tuple[Keys, NDArray[np.int16]]], wanted: int, directory: Path) -> NDArray[np.bool_]:
    """Draw the same number of sentences from each cluster, those with the smallest keys.

    From a smaller cluster all sentences are drawn, and more from the others. DuckDB sorts in at most 1 GB.

    blocks: keys of sentences, n x 2, and their clusters. wanted: number of sentences to draw.
    directory: for the file; its content is removed first.

    Returns whether each sentence is drawn, mapped from a file.
    """
    total = 0

    def entries() -> Iterator[pa.RecordBatch]:
        nonlocal total
        for keys, clusters in blocks:
            numbers = np.arange(total, total + len(keys))
            columns = (np.ascontiguousarray(keys[:, 0]), np.ascontiguousarray(keys[:, 1]), numbers, clusters)
            yield pa.record_batch([pa.array(column) for column in columns], schema=_ENTRIES)
            total += len(keys)

    reader = pa.RecordBatchReader.from_batches(_ENTRIES, entries())
    query = _DRAWN.format(wanted=wanted)
    result = run_query(query, {"entries": reader}, directory, "sentences cannot be drawn")
    drawn = np.lib.format.open_memmap(directory / "drawn.npy", "w+", np.bool_, (total,))
    with pq.ParquetFile(result) as file:
        for batch in file.iter_batches():
            drawn[batch.column(0).to_numpy()] = True
    return drawn


def sentence_vectors(texts: Any, vectors: SubwordVectors) -> NDArray[np.float32]:
    """Return the sum of each text's word vectors, scaled to length 1, (texts, dimension); zeros for a text
    without words."""
    sums = vectors.of_texts(texts)
    return sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), np.float32(1e-12))


def _entries(
    corpus: ShardDirectory, distinct: DistinctSentences, vectors: SubwordVectors | None, threads: int
) -> Iterator[tuple[Keys, NDArray[np.int16]]]:
    """Yield keys and clusters in blocks that do not depend on the shards; without vectors, one cluster."""
    keys = mapped_array(distinct.keys, "<u8").reshape(-1, 2)
    spans = [(begin, min(begin + _BLOCK, len(keys))) for begin in range(0, len(keys), _BLOCK)]

    def embed(sentences: NDArray[np.int64], table: SubwordVectors) -> NDArray[np.float32]:
        texts = distinct.texts(corpus, sentences, threads, "reference")
        return sentence_vectors(pa.chunked_array(texts, pa.string()), table)

    if vectors is not None:
        least = int(min(1, _SAMPLE / len(keys)) * (2**64 - 1))
        sample = [begin + np.flatnonzero(keys[begin:end, 0] <= np.uint64(least)) for begin, end in spans]
        centroids = find_centroids(embed(np.concatenate(sample), vectors), CLUSTERS, _SEED)
    for begin, end in spans:
        check_interrupt()
        clusters = np.zeros(end - begin, np.int16)
        if vectors is not None:
            with torch_threads(1):  # so that no sum depends on the number of threads
                clusters = nearest_cells(embed(np.arange(begin, end), vectors), centroids)
        yield np.asarray(keys[begin:end]), clusters


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
            check_interrupt()
            sentence = places.read(index)["sentence"]
            left_out = ~drawn[pc.fill_null(sentence, 0).to_numpy()] & sentence.is_valid().to_numpy()
            reasons = pc.if_else(pa.array(left_out), NOT_CHOSEN, pa.scalar(None, pa.string()))
            table = table.append_column(COLUMNS["failed"], reasons)
            records.append(write_shard(table, temporary / shard_name(index)))
        write_index(temporary, records, {"step": STEP, STEP: about})
