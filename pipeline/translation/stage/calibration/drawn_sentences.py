"""Samples for the check of quantised translation: of a corpus, of a bitext, of a file of sentences."""

from collections.abc import Collection, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.base.errors import InputError
from paraforge.base.interrupts import check_interrupt
from paraforge.base.shards.store import ShardDirectory, ShardWriter
from paraforge.base.shards.work import replaced_directory
from paraforge.base.text.lines import PIPE
from paraforge.translation.stage.calibration.loss import MINIMUM, SENTENCES, SHARE, sample_size
from paraforge.translation.stage.population import blocks, survey
from paraforge.translation.stage.text_file import read_sentences

Item = TypeVar("Item")
_SEED = 1

SAMPLE = pa.schema(
    [
        pa.field("sentence", pa.int64(), nullable=False),
        pa.field("source_text", pa.string()),
        pa.field("reference", pa.string()),
    ]
)


def draw_sample(corpus: ShardDirectory, wanted: int) -> pa.Table:
    """Sentences of a corpus that wait for a translation, each with the reference of its first row.

    The same corpus gives the same sample. Lengths are spread as in the corpus: each stratum of the survey has
    its share. Memory does not grow with the corpus.

    corpus: shards with the columns that ingest writes. wanted: sentences; all of them where there are fewer.

    Returns rows of :data:`SAMPLE`, at most ``wanted``, numbered from 0.
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
    for table in corpus.tables(["source_text", "reference", "rejected"]):
        check_interrupt()
        rows = table.filter(pc.and_(pc.is_null(table["rejected"]), pc.is_in(table["source_text"], wanted)))
        for sentence, reference in zip(
            rows["source_text"].to_pylist(), rows["reference"].to_pylist(), strict=True
        ):
            found.setdefault(sentence, reference)
        if len(found) == len(sentences):
            break
    return found


def waiting_among(corpus: ShardDirectory, sentences: Collection[str]) -> set[str]:
    """Which of the sentences a corpus has in rows that are not rejected."""
    wanted = pa.array(sorted(sentences), pa.string())
    found: set[str] = set()
    for table in corpus.tables(["source_text", "rejected"]):
        check_interrupt()
        texts = table.filter(pc.is_null(table["rejected"]))["source_text"]
        found.update(texts.filter(pc.is_in(texts, wanted)).unique().to_pylist())
    return found


def write_sample(corpus: ShardDirectory, wanted: int, output: Path) -> int:
    """Draw a sample and write it as one shard; ``output`` is replaced. Returns number of sentences."""
    table = draw_sample(corpus, wanted)
    with replaced_directory(output) as temporary:
        writer = ShardWriter(temporary, SAMPLE, max(1, table.num_rows))
        writer.write(table)
        writer.close({"step": "calibration-sample"})
    return table.num_rows


def bitext_sample(bitext: Path, columns: tuple[int, int], wanted: int) -> tuple[list[str], list[str]]:
    """Foreign sentences of a bitext with their references, always the same ones.

    bitext: directory of ingested shards, or a TSV, compressed or not.
    columns: of a TSV, counted from 0: the reference and the foreign side.
    wanted: sentences; all of them where there are fewer.

    Raises InputError: a line is not text or has too few columns.
    """
    if bitext.is_dir():
        table = draw_sample(ShardDirectory(bitext), wanted)
        return table["source_text"].to_pylist(), table["reference"].to_pylist()
    pairs, _ = reservoir(_pairs(bitext, columns), wanted)
    return [source for source, _ in pairs], [reference for _, reference in pairs]


def _pairs(path: Path, columns: tuple[int, int]) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(read_sentences(path), start=1):
        fields = line.split("\t")
        if len(fields) <= max(columns):
            raise InputError(f"{len(fields)} columns, but column {max(columns)} is asked for", path, number)
        reference, source = (fields[column].strip() for column in columns)
        if source and reference:
            yield source, reference


def sampled(path: Path, sentences: Iterator[str]) -> tuple[list[str], Iterator[str]]:
    """A random sample of a file's sentences, in proportion to it, always the same one; and all sentences.

    A file is read twice. Standard input cannot be: of it, the sample is drawn from as many sentences as the
    smallest one needs.

    path: of the input, ``-`` for standard input.
    sentences: what :func:`~paraforge.translation.stage.text_file.read_sentences` gave for it.

    Raises InputError: a line of the file cannot be read.
    """
    first = list(islice(sentences, MINIMUM * SHARE)) if path == PIPE else []
    kept, count = reservoir(filter(str.strip, first or sentences), SENTENCES)
    whole = chain(first, sentences) if path == PIPE else read_sentences(path)
    order = np.random.default_rng(_SEED).permutation(len(kept))
    return [kept[place] for place in order[: sample_size(count)]], whole


def reservoir(items: Iterable[Item], wanted: int) -> tuple[list[Item], int]:
    """A uniform sample without replacement of a stream, seeded, in bounded memory (Vitter's algorithm R).
    Returns the sample, in no particular order, and the number of items."""
    dice = np.random.default_rng(_SEED)
    kept: list[Item] = []
    count = 0
    for item in items:
        count += 1
        if len(kept) < wanted:
            kept.append(item)
        elif (place := int(dice.integers(count))) < wanted:
            kept[place] = item
    return kept, count
