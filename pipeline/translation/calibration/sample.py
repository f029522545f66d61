"""The calibration sample: sentences of the corpus that is to be translated, with their references."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.interrupts import check_interrupt
from paraforge.planning.population import blocks, survey
from paraforge.shards.store import ShardDirectory, ShardWriter
from paraforge.shards.work import replaced_directory

SAMPLE = pa.schema(
    [
        pa.field("sentence", pa.int64(), nullable=False),
        pa.field("cs", pa.string()),
        pa.field("reference", pa.string()),
    ]
)


def draw_sample(corpus: ShardDirectory, wanted: int) -> pa.Table:
    """Sentences of a corpus that wait for a translation, each with the reference of its first row.

    The same corpus gives the same sample. Lengths are spread as in the corpus: each stratum of the survey has
    its share. Memory does not grow with the corpus.

    Args:
        corpus: shards with the columns that ingest writes.
        wanted: sentences; all of them where there are fewer.

    Returns:
        Rows of :data:`SAMPLE`, at most ``wanted``, numbered from 0.
    """
    population = survey(corpus, kept=wanted)
    block = next(blocks(population, min(wanted, population.sentences)), [])
    sentences = list(dict.fromkeys(block))
    references = _references(corpus, sentences)
    return pa.table(
        [np.arange(len(sentences)), sentences, [references[sentence] for sentence in sentences]],
        schema=SAMPLE,
    )


def _references(corpus: ShardDirectory, sentences: list[str]) -> dict[str, str]:
    wanted = pa.array(sentences, pa.string())
    found: dict[str, str] = {}
    for table in corpus.tables(["cs", "reference", "rejected"]):
        check_interrupt()
        rows = table.filter(pc.and_(pc.is_null(table["rejected"]), pc.is_in(table["cs"], wanted)))
        for sentence, reference in zip(rows["cs"].to_pylist(), rows["reference"].to_pylist(), strict=True):
            found.setdefault(sentence, reference)
        if len(found) == len(sentences):
            break
    return found


def write_sample(corpus: ShardDirectory, wanted: int, output: Path) -> int:
    """Draw a sample and write it as one shard; ``output`` is replaced.

    Returns:
        Number of sentences.
    """
    table = draw_sample(corpus, wanted)
    with replaced_directory(output) as temporary:
        writer = ShardWriter(temporary, SAMPLE, max(1, table.num_rows))
        writer.write(table)
        writer.close({"step": "calibration-sample"})
    return table.num_rows
