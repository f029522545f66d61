"""Samples of the sentences to translate are fair for any shards."""

from collections import Counter
from collections.abc import Set
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from benchmarks.bitext import write_ingested
from paraforge.base.shards.store import ShardDirectory
from paraforge.translation.memory.distinct import blocks, find_distinct, survey


def write_corpus(
    path: Path, sentences: list[str], rejected: Set[int] = frozenset(), rows: int = 40
) -> ShardDirectory:
    """Ingested shards of these sentences; equal ones know their first row."""
    reasons = ["duplicate" if row in rejected else None for row in range(len(sentences))]
    write_ingested(path, sentences, [f"reference {row}" for row in range(len(sentences))], reasons, rows)
    return ShardDirectory(path)


@pytest.fixture
def sentences() -> list[str]:
    dice = np.random.default_rng(3)
    return [f"{'x' * int(dice.lognormal(3.5, 0.8))} {dice.integers(300)}" for _ in range(1000)]


def test_population_matches_translated_sentences(tmp_path: Path, sentences: list[str]) -> None:
    repeated = [*sentences, *sentences[:250]]
    corpus = write_corpus(tmp_path / "in", repeated, rejected={3, 77, 1100})
    population = survey(corpus)
    distinct = find_distinct(corpus, tmp_path / "distinct")
    parts = distinct.texts(corpus, np.arange(len(distinct)))
    expected = [text for texts in parts for text in texts.to_pylist()]
    assert population.sentences == len(expected)
    assert population.text_bytes == sum(len(text.encode()) for text in expected)
    assert population.rows == 1250
    assert sorted(population.sample) == sorted(expected)


def test_sentence_counts_if_first_row_is_translated(tmp_path: Path) -> None:
    texts, given = ["a", "b", "a", "a"], ["x", None, None, None]
    corpus = ShardDirectory(write_ingested(tmp_path / "in", texts, rows_per_shard=2, translation=given))
    assert sorted(survey(corpus).sample) == ["a", "b"]


def test_sampled_blocks_are_distinct(tmp_path: Path, sentences: list[str]) -> None:
    population = survey(write_corpus(tmp_path / "in", sentences))
    found = [text for block in islice(blocks(population, 100), 10) for text in block]
    assert len(found) == 1000
    assert set(found[: len(set(sentences))]) == set(sentences)
    assert max(Counter(found).values()) <= 2
    # In random order: a simple random sample of 500 varies by about 80% / sqrt(500) = 3.6%.
    wanted = np.mean([len(text) for text in sentences])
    assert np.mean([len(text) for text in found[:500]]) == pytest.approx(wanted, rel=0.1)


def test_population_sample_is_fair_with_bounded_memory(tmp_path: Path) -> None:
    texts = [f"{number:06d}" for number in range(3000)]
    population = survey(write_corpus(tmp_path / "in", texts, rows=500), kept=200)
    kept = population.sample
    assert (population.sentences, len(kept)) == (3000, 200)
    # Neither early nor late rows are preferred.
    assert np.mean([int(text) for text in kept]) == pytest.approx(1500, abs=3 * 866 / 200**0.5)
    # Shards and their order change nothing, and a larger sample has the smaller one.
    again = survey(write_corpus(tmp_path / "again", texts[::-1], rows=70), kept=300)
    assert again.sample[:200] == kept
    # A limited translation is of the same sentences.
    limited = survey(ShardDirectory(tmp_path / "in"), kept=200, maximum=50)
    assert (limited.sentences, limited.text_bytes) == (50, 50 * 6)
    assert limited.sample == kept[:50]


def test_population_without_sentences(tmp_path: Path) -> None:
    population = survey(write_corpus(tmp_path / "in", ["a", "b"], rejected={0, 1}))
    assert population.sentences == 0
    assert list(islice(blocks(population, 5), 2)) == []
