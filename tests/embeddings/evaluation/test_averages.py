"""SIF against a slow implementation of Algorithm 1 (Arora 2017), and word weights."""

import json
import math
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from paraforge.base.errors import InputError
from paraforge.base.text.idf import Background
from paraforge.base.text.tokens import tokenize
from paraforge.base.word_vectors.vectors import UNKNOWN_WORD, WordVectors
from paraforge.embeddings.evaluation import averages as module
from paraforge.embeddings.evaluation.averages import (
    Weighting,
    WordAverage,
    common_components,
    open_sif,
    save_sif,
    sentence_counts,
)
from tests.project import digests

WORDS = ["the", "dog", "cat", "runs", ".", "sits", "a"]
COUNTS = {"the": 600, "a": 300, ".": 80, "dog": 12, "cat": 7, "unseen": 1}
WEIGHTING = Weighting("sif", Background("x", 1000, COUNTS), a=1e-2)
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


@pytest.mark.parametrize(
    ("unknown", "weighting", "components"),
    [(True, WEIGHTING, 1), (False, None, 0), (True, None, 2), (False, WEIGHTING, 2)],
)
def test_sif_matches_algorithm_1(
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


def test_common_component_transfers_to_other_set() -> None:
    model = WordAverage(table(True), WEIGHTING).fitted_to(TEXTS[:4])
    plain = WordAverage(table(True), WEIGHTING).encode(["a dog sits"])
    component = np.linalg.svd(WordAverage(table(True), WEIGHTING).encode(TEXTS[:4]))[2][0]
    np.testing.assert_allclose(
        model.encode(["a dog sits"]), plain - (plain @ component)[:, None] * component, atol=1e-6
    )
    assert model.components.shape == (1, 5)
    assert model.components[0, np.abs(model.components[0]).argmax()] > 0


def test_removing_the_only_direction_leaves_zero() -> None:
    model = WordAverage(table(False)).fitted_to(["dog", "dog dog"])
    assert (model.encode(["dog"]) == 0).all()
    assert (model.encode(["cat"]) != 0).any()


def test_no_texts_and_no_vectors() -> None:
    model = WordAverage(table(False), WEIGHTING)
    assert model.encode([]).shape == (0, 5)
    assert (model.encode(["zebra", ""]) == 0).all()
    with pytest.raises(InputError, match="no sentence has a vector"):
        model.fitted_to(["zebra"])
    assert model.fitted_to(TEXTS, 5).components.shape == (5, 5)
    with pytest.raises(InputError, match="6 components"):
        model.fitted_to(TEXTS, 6)
    with pytest.raises(InputError, match="no sentence"):
        common_components([])


def test_smooth_inverse_frequency() -> None:
    weighting = Weighting("sif", Background("x", 1000, {"the": 900, "dog": 1}))
    expected = [0.001 / 0.901, 0.001 / 0.002, 1]
    assert weighting.weights(["the", "dog", "unheard-of"]).tolist() == pytest.approx(expected)
    assert weighting.weights([]).shape == (0,)
    with pytest.raises(InputError, match="greater than 0"):
        Weighting("sif", weighting.background, a=0)


def test_inverse_document_frequency() -> None:
    weighting = Weighting("idf", sentence_counts(["The dog, the dog!", "a dog", "cats"], "x"))
    assert weighting.weights(["dog", "the", "bird"]).tolist() == pytest.approx(
        [math.log(4 / 3), math.log(4 / 2), math.log(4)]
    )


@pytest.mark.parametrize(
    ("weighting", "components"),
    [(WEIGHTING, 2), (None, 0), (Weighting("idf", sentence_counts(TEXTS, "texts")), 0)],
)
def test_saved_and_opened(tmp_path: Path, weighting: Weighting | None, components: int) -> None:
    model = WordAverage(table(True), weighting)
    if components:
        model = model.fitted_to(TEXTS, components)
    save_sif(model, tmp_path / "sif", {"fitted": "here"})
    opened = open_sif(tmp_path / "sif")
    assert isinstance(opened, WordAverage)
    assert np.array_equal(opened.encode(TEXTS), model.encode(TEXTS))
    before = digests(tmp_path / "sif")
    save_sif(opened, tmp_path / "sif", {"fitted": "here"})
    assert digests(tmp_path / "sif") == before


def test_common_component_fitted_per_set(tmp_path: Path) -> None:
    save_sif(WordAverage(table(True), WEIGHTING, of_each_set=2), tmp_path / "sif")
    opened = open_sif(tmp_path / "sif")
    assert opened.of_each_set == 2
    expected = WordAverage(table(True), WEIGHTING).fitted_to(TEXTS[:5], 2).encode(TEXTS[:5])
    assert np.array_equal(opened.adapted_to(TEXTS[:5]).encode(TEXTS[:5]), expected)
    first, second = TEXTS[:2], TEXTS[2:4]
    of_both = opened.adapted_to(first + second).similarity(first, second)
    np.testing.assert_array_equal(opened.similarity(first, second), of_both)
    assert not np.array_equal(opened.adapted_to(first).similarity(first, second), of_both)


def test_set_without_known_words_is_unchanged() -> None:
    model = WordAverage(table(False), WEIGHTING, of_each_set=1)
    adapted = model.adapted_to(["zzz qqq", ""])
    assert not adapted.encode(["zzz qqq", ""]).any()


def test_damaged(tmp_path: Path) -> None:
    path = tmp_path / "sif"
    save_sif(WordAverage(table(True), WEIGHTING), path)
    right = (path / "sif.json").read_text()
    wrong = [{"format": 9}, {"components": [[1.0, 2.0]]}, {"components": [[np.nan] * table(True).dimension]}]
    for documents, counts in ((0, {}), (1, {"a": -1}), (1, {"a": np.nan})):
        background = {"name": "x", "documents": documents, "counts": counts}
        wrong.append({"weighting": {"kind": "sif", "background": background}})
    for changes in (*wrong, {"weighting": {}}):
        (path / "sif.json").write_text(json.dumps({**json.loads(right), **changes}))
        with pytest.raises(InputError, match="sif"):
            open_sif(path)
    (path / "sif.json").write_text(right)
    vectors = path / "vectors" / "vectors.npy"
    vectors.write_bytes(vectors.read_bytes()[:-4] + b"\0\0\0\1")
    with pytest.raises(InputError, match=r"differ from table\.json"):
        open_sif(path)
    vectors.unlink()
    with pytest.raises(InputError, match="cannot be read"):
        open_sif(path)
