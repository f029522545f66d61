"""Trainings on small pairs that the oracle follows exactly."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from paraforge.base.text.pair_blocks import PairBlock
from paraforge.base.text.units import Units
from paraforge.embeddings.encoders.averages import Average
from paraforge.embeddings.learning.loop import Record
from paraforge.embeddings.trainer import objective
from paraforge.embeddings.trainer.objective import encoder_trainer
from paraforge.embeddings.trainer.pair_store import PairStore, build_pair_store
from paraforge.embeddings.trainer.parameters import TrainingParameters, VocabularyParameters

WORDS = [f"w{number}" for number in range(40)]


def block(pairs: Sequence[tuple[str | None, str | None]]) -> PairBlock:
    """Pairs of texts as one block."""
    left, right = ([pair[side] for pair in pairs] for side in (0, 1))
    return PairBlock(pa.array(left, pa.string()), pa.array(right, pa.string()))


def store_of(directory: Path, left: list[str], right: list[str], minimum: int = 1) -> PairStore:
    """Pairs of texts, with every word that occurs as often in the vocabulary."""
    pairs = block(list(zip(left, right, strict=True)))
    return build_pair_store(directory, [pairs], [Units()], VocabularyParameters(minimum_count=minimum))


def make_store(directory: Path, pairs: int = 57, seed: int = 1) -> PairStore:
    generator = np.random.default_rng(seed)

    def sentences() -> list[str]:
        return [" ".join(generator.choice(WORDS, size=generator.integers(1, 7))) for _ in range(pairs)]

    return store_of(directory, sentences(), sentences())


def make_encoder(store: PairStore, dtype: torch.dtype = torch.float64, dimension: int = 5) -> Average:
    generator = torch.Generator().manual_seed(7)
    return Average(torch.randn(len(store.vocabularies["word"]), dimension, dtype=dtype, generator=generator))


def parameters(**values: Any) -> TrainingParameters:
    default = {"epochs": 2, "batch_size": 8, "mega_batch": 3, "anneal": 0, "learning_rate": 0.01}
    return TrainingParameters(**{**default, **values})


def train(store: PairStore, settings: TrainingParameters, **options: Any) -> tuple[Tensor, Record]:
    encoder = make_encoder(store, options.pop("dtype", torch.float64))
    with patch.object(objective, "PRODUCTS", options.pop("products", "float32")):
        record = encoder_trainer(encoder, store, settings, **options).run()
    return encoder.table.detach(), record


def make_repetitive_store(directory: Path, kinds: int = 3) -> PairStore:
    """Mega-batches of it often hold pairs that are all the same, or half the same."""
    generator = np.random.default_rng(2)
    first, second = (generator.integers(kinds, size=61).tolist() for _ in range(2))
    return store_of(directory, *([f"w{number} x" for number in side] for side in (first, second)))


TOPICS = 12


def sentence_pairs(pairs: int = 120, seed: int = 1) -> list[tuple[str, str]]:
    """Sentences of four words; every word has one synonym."""
    generator = np.random.default_rng(seed)
    drawn = [generator.integers(TOPICS, size=4) for _ in range(pairs)]
    return [(" ".join(f"left{n}" for n in words), " ".join(f"right{n}" for n in words)) for words in drawn]


def write_pairs(path: Path, pairs: list[tuple[str, str]]) -> Path:
    """A TSV."""
    path.write_text("".join(f"{left}\t{right}\n" for left, right in pairs), encoding="utf-8")
    return path


def write_sts(path: Path, pairs: list[tuple[str, str]]) -> Path:
    """Judgments: 5 for a pair, 0 for the left side with another's right side."""
    rows = [f"5\t{left}\t{right}" for left, right in pairs]
    rows += [f"0\t{pairs[n][0]}\t{pairs[n - 1][1]}" for n in range(len(pairs))]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path
