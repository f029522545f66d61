"""Word similarity of vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import spearmanr

from paraforge.base.word_vectors.vectors import UNKNOWN_WORD, WordVectors
from paraforge.embeddings.evaluation.similarity.word_lists import SimilarityList, evaluate_words

PAIRS = [("dog", "cat"), ("dog", "sky"), ("cat", "sky"), ("dog", "zebra"), ("zebra", "gnu")]
JUDGEMENTS = SimilarityList("list", PAIRS, [9.0, 1.0, 2.0, 7.0, 8.0])
VECTORS = {"dog": [1.0, 0.2], "cat": [1.0, 0.4], "sky": [-0.2, 1.0], UNKNOWN_WORD: [1.0, 1.0]}


class Embedder:
    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        return np.array([VECTORS.get(text, [0, 0]) for text in texts], dtype=np.float32)


def cosine(first: str, second: str) -> float:
    left, right = np.array(VECTORS[first]), np.array(VECTORS[second])
    return float(left @ right / np.linalg.norm(left) / np.linalg.norm(right))


def test_a_table_and_an_embedder() -> None:
    table = WordVectors(list(VECTORS), np.array(list(VECTORS.values()), dtype=np.float32))
    values = [cosine(*pair) if "zebra" not in pair else 0.0 for pair in PAIRS]
    expected = round(100 * float(spearmanr(JUDGEMENTS.scores, values).statistic), 2)
    for model in (table, Embedder()):
        found = evaluate_words(model, JUDGEMENTS)
        assert (found.pairs, found.found) == (5, 3)
        assert found.spearman == pytest.approx(expected)


def test_no_word_is_known() -> None:
    found = evaluate_words(WordVectors(["x"], np.ones((1, 2), np.float32)), JUDGEMENTS)
    assert (found.spearman, found.found) == (None, 0)
