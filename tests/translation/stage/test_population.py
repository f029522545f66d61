"""Samples have the lengths of the whole, whatever its size, and count what translation will translate."""

from collections import Counter
from collections.abc import Set
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from benchmarks.bitext import write_ingested
from paraforge.base.shards.store import ShardDirectory
from paraforge.translation.memory.distinct import find_distinct
from paraforge.translation.stage.population import blocks, survey


def write_corpus(
    path: Path, sentences: list[str], rejected: Set[int] = frozenset(), rows: int = 40
) -> ShardDirectory:
    """Ingested shards of these sentences; equal ones know their first row."""
    reasons = ["duplicate" if row in rejected else None for row in range(len(sentences))]
    write_ingested(path, sentences, ["a reference"] * len(sentences), reasons, rows)
    return ShardDirectory(path)


@pytest.fixture
def sentences() -> list[str]:
    dice = np.random.default_rng(3)
    return [f"{'x' * int(dice.lognormal(3.5, 0.8))} {dice.integers(300)}" for _ in range(1000)]


def test_the_sentences_are_those_that_translation_finds(tmp_path: Path, sentences: list[str]) -> None:
    repeated = [*sentences, *sentences[:250]]
    corpus = write_corpus(tmp_path / "in", repeated, rejected={3, 77, 1100})
    population = survey(corpus)
    distinct = find_distinct(corpus, tmp_path / "distinct")
    expected = [
        text for texts in distinct.texts(corpus, np.arange(len(distinct))) for text in texts.to_pylist()
    ]
    assert population.sentences == len(expected)
    assert population.text_bytes == sum(len(text.encode()) for text in expected)
    assert (population.rows, population.waiting) == (1250, distinct.row_counts().waiting)
    assert sum(stratum.sentences for stratum in population.strata.values()) == len(expected)


def test_every_block_has_the_lengths_of_the_whole(tmp_path: Path, sentences: list[str]) -> None:
    population = survey(write_corpus(tmp_path / "in", sentences))
    wanted = np.mean([len(text) for text in sentences])
    found = [np.mean([len(text) for text in block]) for block in islice(blocks(population, 150), 40)]
    assert all(len(block) == 150 for block in islice(blocks(population, 150), 3))
    assert np.mean(found) == pytest.approx(wanted, rel=0.02)
    # A simple random sample of 150 would vary by about 80 % / sqrt(150) = 6.5 %.
    assert np.std(found) < 0.03 * wanted
    drawn = Counter(text for block in islice(blocks(population, 100), 6) for text in block)
    assert max(drawn[text] for text in set(sentences) if sentences.count(text) == 1) <= 2


def test_memory_is_bounded_and_the_kept_are_a_fair_sample(tmp_path: Path) -> None:
    texts = [f"{number:06d}" for number in range(3000)]
    population = survey(write_corpus(tmp_path / "in", texts, rows=500), kept=200)
    (stratum,) = population.strata.values()
    assert (stratum.sentences, len(stratum.kept)) == (3000, 200)
    # Neither early nor late rows are preferred.
    assert np.mean([int(text) for text in stratum.kept]) == pytest.approx(1500, abs=3 * 866 / 200**0.5)
    again = survey(ShardDirectory(tmp_path / "in"), kept=200)
    assert next(iter(again.strata.values())).kept == stratum.kept


def test_nothing_to_translate(tmp_path: Path) -> None:
    population = survey(write_corpus(tmp_path / "in", ["a", "b"], rejected={0, 1}))
    assert population.sentences == 0
    assert list(islice(blocks(population, 5), 2)) == []
