"""Counts the sentences to translate by length, and draws samples with the same distribution of lengths."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from paraforge.base.progress import progress
from paraforge.base.shards.store import ShardDirectory
from paraforge.translation.memory.distinct import waiting_columns, waiting_rows

# Strata per doubling of the length: a sentence is at most a fifth longer than others of its stratum.
_STRATA_A_DOUBLING = 4
# Sentences per stratum that are kept for drawing samples.
KEPT = 2000

SAMPLE = pa.schema(
    [
        pa.field("sentence", pa.int64(), nullable=False),
        pa.field("source_text", pa.string()),
        pa.field("reference", pa.string()),
    ]
)


@dataclass
class Stratum:
    """Sentences of similar length: their number, and a random sample of them."""

    sentences: int = 0
    kept: list[str] = field(default_factory=list)
    keys: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))


@dataclass
class Population:
    """Distinct sentences that wait for a translation.

    rows: rows of the corpus. waiting: rows that wait for a translation.
    sentences: distinct sentences among them. text_bytes: UTF-8 bytes of the distinct sentences.
    strata: strata by length, the shortest first.
    """

    rows: int = 0
    waiting: int = 0
    sentences: int = 0
    text_bytes: int = 0
    strata: dict[int, Stratum] = field(default_factory=dict)


def survey(corpus: ShardDirectory, kept: int = KEPT) -> Population:
    """Count the distinct sentences of a corpus by length and keep some of each length, in one pass.

    Memory does not grow with the corpus.

    corpus: shards with the columns that ingest writes. kept: sentences to keep per stratum.
    """
    found = Population(rows=corpus.total_rows)
    columns = ["source_text", *waiting_columns(corpus.schema)]
    start = 0
    with progress(total=corpus.total_rows, unit="rows", description="lengths") as bar:
        for index in range(len(corpus)):
            table = corpus.read(index, columns)
            texts = _distinct(table, start, found)
            lengths = pc.binary_length(texts).to_numpy()
            found.sentences += len(texts)
            found.text_bytes += int(lengths.sum())
            _keep(found, texts, lengths, np.random.default_rng([1, index]).random(len(texts)), kept)
            start += table.num_rows
            bar.update(table.num_rows)
    found.strata = dict(sorted(found.strata.items()))
    return found


def _distinct(table: pa.Table, start: int, found: Population) -> pa.Array:
    """Return the waiting sentences whose first row is in this shard."""
    waits = waiting_rows(table)
    rows = pa.array(np.arange(start, start + table.num_rows))
    first = pc.fill_null(table.column("first_row").combine_chunks(), -1)
    own = pc.or_(pc.less(first, 0), pc.equal(first, rows))
    found.waiting += int(pc.sum(waits).as_py() or 0)
    return table.column("source_text").filter(pc.and_(waits, own)).combine_chunks()


def _keep(
    found: Population, texts: pa.Array, lengths: NDArray[np.int64], keys: NDArray[np.float64], kept: int
) -> None:
    numbers = (_STRATA_A_DOUBLING * np.log2(np.maximum(lengths, 1))).astype(np.int64)
    for number in np.unique(numbers):
        stratum = found.strata.setdefault(int(number), Stratum())
        here = np.flatnonzero(numbers == number)
        stratum.sentences += len(here)
        # The smallest of random keys, one per sentence, are a uniform sample without replacement.
        if len(stratum.keys) >= kept:
            here = here[keys[here] < stratum.keys[-1]]
        all_keys = np.concatenate([stratum.keys, keys[here]])
        all_texts = [*stratum.kept, *texts.take(pa.array(here)).to_pylist()]
        order = np.argsort(all_keys, kind="stable")[:kept]
        stratum.keys, stratum.kept = all_keys[order], [all_texts[place] for place in order]


def blocks(population: Population, size: int, seed: int = 1) -> Iterator[list[str]]:
    """Yield random samples of ``size`` sentences with the population's distribution of lengths, without end.

    A stratum with a share p of all sentences has ``size * p`` sentences in each sample, rounded up or down at
    random. A sentence only repeats once all kept sentences of its stratum have been used.
    """
    dice = np.random.default_rng([seed, 1 << 20])
    strata = [stratum for stratum in population.strata.values() if stratum.kept]
    shares = np.array([stratum.sentences for stratum in strata], dtype=np.float64)
    ends = np.cumsum(shares) / max(1.0, shares.sum()) * size
    given = [0] * len(strata)
    while strata:
        # Systematic sampling: one point per unit, all with the same random offset.
        points = np.arange(size) + dice.random()
        counts = np.bincount(
            np.minimum(np.searchsorted(ends, points, "right"), len(strata) - 1), minlength=len(strata)
        )
        block: list[str] = []
        for number, (stratum, count) in enumerate(zip(strata, counts, strict=True)):
            places = (given[number] + np.arange(count)) % len(stratum.kept)
            given[number] += int(count)
            block += [stratum.kept[place] for place in places]
        dice.shuffle(block)
        yield block


def draw_sample(corpus: ShardDirectory, wanted: int) -> pa.Table:
    """Return sentences of a corpus that wait for a translation, each with the reference of its first row.

    The same corpus gives the same sample, with the corpus' distribution of lengths. Memory does not grow with
    the corpus.

    corpus: shards with the columns that ingest writes. wanted: number of sentences; fewer if there are fewer.

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
        rows = table.filter(pc.and_(pc.is_null(table["rejected"]), pc.is_in(table["source_text"], wanted)))
        for sentence, reference in zip(
            rows["source_text"].to_pylist(), rows["reference"].to_pylist(), strict=True
        ):
            found.setdefault(sentence, reference)
        if len(found) == len(sentences):
            break
    return found
