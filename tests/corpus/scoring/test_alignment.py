"""Aligned words against a loop over the definition, and against arithmetic that a reader can do."""

import numpy as np
import pyarrow as pa
import pytest

from paraforge.base.text.tokens import tokenize_columns
from paraforge.corpus.scoring.alignment import _CELLS, BETA, CONTEXT, aligned_scores, directions_of


def slow(first: list[int], second: list[int], vectors: np.ndarray) -> float:
    def cosine(i: int, j: int) -> float:
        if (i, j) in ((-1, -1), (len(first), len(second))):
            return 1.0
        if not (0 <= i < len(first) and 0 <= j < len(second)):
            return 0.0
        left, right = vectors[first[i]].astype(float), vectors[second[j]].astype(float)
        norms = float(np.linalg.norm(left) * np.linalg.norm(right))
        return max(0.0, float(left @ right) / norms) if norms else 0.0

    def fit(i: int, j: int) -> float:
        around = (cosine(i - 1, j - 1) + cosine(i + 1, j + 1)) / 2
        return (1 - CONTEXT) * cosine(i, j) + CONTEXT * cosine(i, j) * around

    weights = [float(np.linalg.norm(v)) for v in vectors]
    total, other_total = sum(weights[w] for w in first), sum(weights[w] for w in second)
    if not total or not other_total:
        return float("nan")
    recall = sum(weights[w] * max(fit(i, j) for j in range(len(second))) for i, w in enumerate(first)) / total
    precision = (
        sum(weights[w] * max(fit(i, j) for i in range(len(first))) for j, w in enumerate(second))
        / other_total
    )
    if not recall + precision:
        return 0.0
    return (1 + BETA**2) * precision * recall / (BETA**2 * precision + recall)


def test_against_the_definition() -> None:
    generator = np.random.default_rng(1)
    words = [f"w{n}" for n in range(30)]
    texts = [
        [" ".join(generator.choice(words, generator.integers(0, 12))) for _ in range(60)] for _ in range(2)
    ]
    columns = tokenize_columns(*map(pa.array, texts))
    vectors = generator.normal(size=(len(columns[0].vocabulary), 6)).astype(np.float32)
    vectors[columns[0].vocabulary.index("w3")] = 0
    rows = [
        [side.ids[side.offsets[row] : side.offsets[row + 1]].tolist() for side in columns]
        for row in range(60)
    ]
    expected = [slow(*row, vectors) for row in rows]
    np.testing.assert_allclose(aligned_scores(*columns, *directions_of(vectors)), expected, atol=1e-5)
    assert np.isnan(expected).any() and max(expected) > 0.3


def test_what_is_missing_and_what_is_moved_lowers_the_score() -> None:
    translations = ["a b c d", "a b", "a b c d e f", "d c b a", "x"]
    columns = tokenize_columns(pa.array(["a b c d"] * 5), pa.array(translations))
    vectors = np.eye(len(columns[0].vocabulary), dtype=np.float32)
    same, half, more, moved, other = aligned_scores(*columns, *directions_of(vectors)).tolist()
    assert same == 1
    assert other == 0
    # In "d c b a" no word has a neighbour of before.
    assert moved == pytest.approx(1 - CONTEXT)
    # Two words missing are worse than two too many.
    assert half < more < same


def test_words_of_a_long_text_keep_their_neighbors() -> None:
    """It is aligned in blocks of rows."""
    words = 1100
    text = " ".join(f"w{n}" for n in range(words))
    columns = tokenize_columns(pa.array([text]), pa.array([text]))
    vectors = np.random.default_rng(1).normal(size=(words, 16)).astype(np.float32)
    assert words**2 > _CELLS
    assert aligned_scores(*columns, *directions_of(vectors)).tolist() == pytest.approx([1.0], abs=1e-5)
