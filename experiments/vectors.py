"""Makes word vectors and word counts from the English text in PARAFORGE_DATA, for the table `sif`.

python -m experiments.vectors vectors vectors.txt     # without supervision, by PPMI and SVD
python -m experiments.vectors counts books counts.txt
"""

import gzip
import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import typer

from benchmarks.command_line import start
from benchmarks.hardware import data_directory
from experiments.pairs import paraphrases
from paraforge.base.errors import require
from paraforge.base.files import atomic_path
from paraforge.base.text.tokens import TokenColumn, tokenize_column
from paraforge.base.text.vocabulary import most_frequent
from paraforge.base.word_vectors.vectors import WordVectors

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
_BLOCK = 50_000
_CUT = 40_000_000


def sentences(sources: Iterable[str] = ("books", "bible", "news")) -> Iterator[list[str]]:
    """Yield English sentences of the books and of sources of pairs, by default without captions, which are in
    many STS sets."""
    for source in sources:
        if source != "books":
            for pairs in paraphrases(source):
                yield list(dict.fromkeys([*pairs.left.to_pylist(), *pairs.right.to_pylist()]))
            continue
        path = data_directory() / "books" / "sentences.tsv.gz"
        with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
            while block := [line.rstrip("\n").split("\t")[-1] for line in itertools.islice(file, _BLOCK)]:
                yield block


@app.command()
def vectors(
    output: Path,
    dimension: int = 300,
    vocabulary: int = 30_000,
    window: Annotated[int, typer.Option(help="words on either side")] = 5,
    seed: int = 1,
) -> None:
    """Make unsupervised word vectors: singular vectors of positive pointwise mutual information, times the
    square roots of singular values (Levy 2015)."""
    from scipy.sparse import csr_array

    extmath = require("sklearn.utils.extmath", "evaluation")
    columns = [tokenize_column(pa.array(block)) for block in sentences()]
    ids, words, lengths = _joined(columns, vocabulary)
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
    left_vectors, values, _ = extmath.randomized_svd(positive, dimension, n_iter=3, random_state=seed)
    table = (left_vectors * np.sqrt(values)).astype(np.float32)[1:]
    WordVectors(words[1:], table).write_text(output)
    print(f"{output}: {len(words):,} words of {len(ids):,} tokens, {positive.nnz:,} positive cells")


def _joined(
    columns: list[TokenColumn], vocabulary: int
) -> tuple[npt.NDArray[np.int64], list[str], npt.NDArray[np.int64]]:
    """Return ids of the most frequent words (0 for all others), the words, and the token counts of
    sentences."""
    counts: dict[str, int] = {}
    for column in columns:
        _count(column, counts)
    chosen, _ = most_frequent(
        list(counts), np.array(list(counts.values())), minimum_count=5, maximum_size=vocabulary
    )
    ids = [chosen.ids_of(column.vocabulary)[column.ids] for column in columns]
    return np.concatenate(ids), chosen.units, np.concatenate([column.lengths for column in columns])


@app.command()
def random(output: Path, dimension: int = 300, seed: int = 1) -> None:
    """Make random vectors for the words of the counter-fitting vocabulary, a trivial baseline."""
    path = data_directory() / "ppdb" / "counterfit_vocabulary.txt.gz"
    words = sorted({*gzip.decompress(path.read_bytes()).decode("utf-8").split()})
    numbers = np.random.default_rng(seed).standard_normal((len(words), dimension), np.float32)
    WordVectors(words, numbers).write_text(output)


@app.command()
def counts(source: str, output: Path) -> None:
    """Write how often each word occurs in a source of pairs or in the books: word, tab, count."""
    found: dict[str, int] = {}
    for block in sentences([source]):
        _count(tokenize_column(pa.array(block)), found)
    ordered = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    with atomic_path(output) as path:
        path.write_text("".join(f"{word}\t{count}\n" for word, count in ordered), encoding="utf-8")


def _count(column: TokenColumn, counts: dict[str, int]) -> None:
    for word, count in column.occurrences().items():
        counts[word] = counts.get(word, 0) + count


if __name__ == "__main__":
    start(app)
