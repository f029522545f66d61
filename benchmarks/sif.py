"""W, R and WR of SIF over plain averaging (Arora 2017, Table 5), on word vectors made from the data.

python -m benchmarks.sif vectors vectors.txt     # unsupervised vectors from English text (PPMI and SVD)
python -m benchmarks.sif compare vectors.txt models/embeddings/word
"""

from __future__ import annotations

import gzip
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import typer

from benchmarks.hardware import hardware, peak_memory
from benchmarks.results import append, sts_figures
from experiments.pairs import data_directory, paraphrases, sts_sets
from paraforge.errors import require
from paraforge.evaluation.baselines.sif import SifOfEachSet
from paraforge.evaluation.baselines.weighting import (
    InverseDocumentFrequency,
    SmoothInverseFrequency,
    sentence_counts,
    word_counts,
)
from paraforge.evaluation.baselines.word_average import WordAverage
from paraforge.evaluation.similarity.comparing import Comparable
from paraforge.evaluation.similarity.sts import evaluate_sts
from paraforge.loading import open_word_vectors
from paraforge.scoring.vectors import WordVectors
from paraforge.text.tokens import TokenColumn, tokenize_column
from paraforge.text.vocabulary import most_frequent

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
_BLOCK = 50_000
_CUT = 40_000_000


def sentences() -> Iterator[list[str]]:
    """English sentences: the books, the Bible versions, news; no captions, which are the text of many STS
    sets."""
    with gzip.open(
        data_directory() / "books" / "sentences.tsv.gz", "rt", encoding="utf-8", newline="\n"
    ) as file:
        block: list[str] = []
        for line in file:
            block.append(line.rstrip("\n").split("\t")[-1])
            if len(block) == _BLOCK:
                yield block
                block = []
        yield block
    for source in ("bible", "news"):
        for pairs in paraphrases(source):
            yield list(dict.fromkeys([*pairs.left.to_pylist(), *pairs.right.to_pylist()]))


@app.command()
def vectors(
    output: Path,
    dimension: int = 300,
    vocabulary: int = 30_000,
    window: Annotated[int, typer.Option(help="words on either side")] = 5,
    seed: int = 1,
) -> None:
    """Word vectors without supervision: the square root of singular values times singular vectors of
    positive pointwise mutual information (Levy 2015)."""
    from scipy.sparse import csr_array

    extmath = require("sklearn.utils.extmath", "evaluation")
    print(hardware())
    begin = time.perf_counter()
    columns = [tokenize_column(pa.array(block)) for block in sentences()]
    ids, words, lengths = _joined(columns, vocabulary)
    print(f"{len(ids):,} tokens, {len(words):,} words: {time.perf_counter() - begin:.0f} s")
    size = len(words)
    sentence = np.repeat(np.arange(len(lengths)), lengths)
    total: Any = csr_array((size, size), dtype=np.float32)
    for distance in range(1, window + 1):
        together = (
            (sentence[distance:] == sentence[:-distance]) & (ids[distance:] > 0) & (ids[:-distance] > 0)
        )
        left, right = ids[:-distance][together], ids[distance:][together]
        for first in range(0, len(left), _CUT):
            cut = slice(first, first + _CUT)
            weight = np.full(len(left[cut]), 1 / distance, dtype=np.float32)
            total = total + csr_array((weight, (left[cut], right[cut])), shape=(size, size))
    total = total + total.T
    sums = np.asarray(total.sum(axis=1)).ravel()
    smoothed = sums**0.75
    counts = total.tocoo()
    pmi = np.log(counts.data * smoothed.sum() / (sums[counts.row] * smoothed[counts.col]))
    keep = pmi > 0
    positive = csr_array((pmi[keep], (counts.row[keep], counts.col[keep])), shape=(size, size))
    print(f"{positive.nnz:,} positive cells: {time.perf_counter() - begin:.0f} s")
    left_vectors, values, _ = extmath.randomized_svd(positive, dimension, n_iter=3, random_state=seed)
    table = (left_vectors * np.sqrt(values)).astype(np.float32)[1:]
    WordVectors(words[1:], table).write_text(output)
    print(f"{output}: {time.perf_counter() - begin:.0f} s, peak memory {peak_memory():,.0f} MiB")


def _joined(
    columns: list[TokenColumn], vocabulary: int
) -> tuple[npt.NDArray[np.int64], list[str], npt.NDArray[np.int64]]:
    """Ids over the most frequent words, 0 for all others; the words; tokens of each sentence."""
    counts: dict[str, int] = {}
    for column in columns:
        occurrences = np.bincount(column.ids, minlength=len(column.vocabulary))
        for word, count in zip(column.vocabulary, occurrences.tolist(), strict=True):
            counts[word] = counts.get(word, 0) + count
    chosen, _ = most_frequent(
        list(counts), np.array(list(counts.values())), minimum_count=5, maximum_size=vocabulary
    )
    ids = [chosen.ids_of(column.vocabulary)[column.ids] for column in columns]
    return np.concatenate(ids), chosen.units, np.concatenate([column.lengths for column in columns])


@app.command()
def compare(
    models: Annotated[list[Path], typer.Argument(help="vector files, tables, trained Word models")],
    a: float = 1e-3,
) -> None:
    """Pearson x 100 of averaging, W, R and WR (component of each set), and averaging weighted by IDF."""
    sets = sts_sets()
    background = word_counts(data_directory() / "wordfreq" / "enwiki_vocab_min200.txt.gz")
    idf = InverseDocumentFrequency(sentence_counts([text for s in sets for text in s.sentences], "sts"))
    sif = SmoothInverseFrequency(background, a)
    print(hardware())
    print(f"{sum(map(len, sets)):,} pairs in {len(sets)} sets; a = {a:g}, p(w) from enwiki")
    for path in models:
        table = open_word_vectors(path)
        weighted, plain = WordAverage(table, sif), WordAverage(table)
        variants: dict[str, Comparable] = {
            "average": plain,
            "IDF": WordAverage(table, idf),
            "W": weighted,
            "R": SifOfEachSet(plain),
            "WR": SifOfEachSet(weighted),
        }
        begin = time.perf_counter()
        for name, model in variants.items():
            groups = evaluate_sts(model, sets).groups
            append(
                "sif",
                f"{path.name}, {name}",
                sts_figures({group.name: group.pearson for group in groups}),
                vectors=path.name,
                method=name,
                a=a,
            )
        seconds = time.perf_counter() - begin
        print(
            f"\n{path}: {len(table):,} words, {table.dimension} dimensions; {seconds:.1f} s for five models"
        )


if __name__ == "__main__":
    app()
