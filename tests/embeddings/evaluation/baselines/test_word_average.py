"""SIF against a slow implementation of Arora 2017's Algorithm 1, sentence by sentence and with an SVD."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from paraforge.base.errors import InputError
from paraforge.base.text.idf import Background
from paraforge.base.text.tokens import tokenize
from paraforge.base.word_vectors.vectors import UNKNOWN_WORD, WordVectors
from paraforge.embeddings.evaluation.baselines import word_average as module
from paraforge.embeddings.evaluation.baselines.word_average import (
    SmoothInverseFrequency,
    Weighting,
    WordAverage,
    common_components,
)

WORDS = ["the", "dog", "cat", "runs", ".", "sits", "a"]
COUNTS = {"the": 600, "a": 300, ".": 80, "dog": 12, "cat": 7, "unseen": 1}
WEIGHTING = SmoothInverseFrequency(Background("x", 1000, COUNTS), a=1e-2)
TEXTS = ["The dog runs.", "a cat sits", "unseen dog", "", "the THE the", "zebra", "A cat, a dog.", "cat"] * 3


def table(unknown: bool) -> WordVectors:
    words = [*WORDS, UNKNOWN_WORD] if unknown else WORDS
    # A part that all share, as real word vectors have it.
    numbers = np.random.default_rng(3).standard_normal((len(words), 5)) + np.array([2, 0, 0, 0, 1])
    return WordVectors(words, numbers.astype(np.float32))


def algorithm_1(
    texts: list[str], vectors: WordVectors, weighting: Weighting | None, components: int
) -> npt.NDArray[np.float64]:
    """Arora 2017, Algorithm 1, as it stands."""
    rows = {word: vectors.vectors[row].astype(np.float64) for row, word in enumerate(vectors.words)}
    matrix = np.zeros((len(texts), vectors.dimension))
    for number, text in enumerate(texts):
        total, words = np.zeros(vectors.dimension), 0
        for word in tokenize(text):
            vector = rows.get(word, rows.get(UNKNOWN_WORD))
            if vector is not None:
                weight = 1.0 if weighting is None else float(weighting.weights([word])[0])
                total += weight * vector
                words += 1
        if words:
            matrix[number] = total / words
    _, _, right = np.linalg.svd(matrix, full_matrices=False)
    for component in right[:components]:
        matrix -= np.outer(matrix @ component, component)
    return matrix


@pytest.mark.parametrize("unknown", [True, False], ids=["unknown vector", "left out"])
@pytest.mark.parametrize("weighting", [WEIGHTING, None], ids=["weights", "no weights"])
@pytest.mark.parametrize("components", [0, 1, 2])
def test_against_algorithm_1(
    unknown: bool, weighting: Weighting | None, components: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BLOCK_ROWS", 7)
    model = WordAverage(table(unknown), weighting)
    if components:
        model = model.fitted_to(TEXTS, components)
    vectors = model.encode(TEXTS)
    assert vectors.dtype == np.float32
    expected = algorithm_1(TEXTS, table(unknown), weighting, components)
    np.testing.assert_allclose(vectors, expected, atol=2e-6)


def test_fitted_on_one_set_and_used_on_another() -> None:
    model = WordAverage(table(True), WEIGHTING).fitted_to(TEXTS[:4])
    plain = WordAverage(table(True), WEIGHTING).encode(["a dog sits"])
    component = np.linalg.svd(WordAverage(table(True), WEIGHTING).encode(TEXTS[:4]))[2][0]
    np.testing.assert_allclose(
        model.encode(["a dog sits"]), plain - (plain @ component)[:, None] * component, atol=1e-6
    )
    assert model.components.shape == (1, 5)
    assert model.components[0, np.abs(model.components[0]).argmax()] > 0


def test_what_is_left_of_one_direction_is_nothing() -> None:
    model = WordAverage(table(False)).fitted_to(["dog", "dog dog"])
    assert (model.encode(["dog"]) == 0).all()
    assert (model.encode(["cat"]) != 0).any()


def test_no_texts_and_no_vectors() -> None:
    model = WordAverage(table(False), WEIGHTING)
    assert model.encode([]).shape == (0, 5)
    assert (model.encode(["zebra", ""]) == 0).all()
    with pytest.raises(InputError, match="no sentence has a vector"):
        model.fitted_to(["zebra"])
    with pytest.raises(InputError, match="6 components"):
        model.fitted_to(TEXTS, 6)
    with pytest.raises(InputError, match="no sentence"):
        common_components([])
