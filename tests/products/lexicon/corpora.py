"""Small corpora for the lexicon's tests."""

import random
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from tests.base.shards.steps import write_table

Corpus = list[tuple[str, str]]

SCHEMA = pa.schema(
    [("reference", pa.string()), ("translation", pa.string()), ("paraphrase_score", pa.float32())]
)


def zipf_corpus(pairs: int, words: int = 80, seed: int = 1, longest: int = 12) -> Corpus:
    """Sentences of Zipf-distributed words; half of the translations repeat half of their reference."""
    drawn = random.Random(seed)
    names = [f"w{number}" for number in range(words)]
    weights = [1 / (number + 1) for number in range(words)]
    corpus = []
    for _ in range(pairs):
        reference = drawn.choices(names, weights, k=drawn.randint(0, longest))
        translation = drawn.choices(names, weights, k=drawn.randint(0, longest))
        if drawn.random() < 0.5:
            translation[: len(reference) // 2] = reference[: len(reference) // 2]
        corpus.append((" ".join(reference), " ".join(translation)))
    return corpus


def write_corpus(directory: Path, corpus: Sequence[tuple[str, str]], rows_per_shard: int = 50_000) -> Path:
    """The corpus as shards, every pair with the score 0.9."""
    references, translations = zip(*corpus, strict=True) if corpus else ((), ())
    columns = [list(references), list(translations), [0.9] * len(corpus)]
    table = pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)
    return write_table(directory, table, rows_per_shard, step="test")
