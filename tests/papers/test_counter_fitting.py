"""Counter-fitting against its definition."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from experiments.programs import app
from paraforge.base.errors import ConfigurationError, InputError
from paraforge.base.word_vectors.vectors import WordVectors
from paraforge.embeddings.evaluation.word_lists import Pair
from paraforge.papers import counter_fitting as module
from paraforge.papers.counter_fitting import counter_fit
from tests.here import run_command

Vectors = dict[str, npt.NDArray[np.float64]]


def slow(vectors: Vectors, synonyms: set[Pair], antonyms: set[Pair]) -> Vectors:
    """Algorithm of the paper with full steps: gradients of each word's active constraints, averaged."""
    words = {word for pair in synonyms | antonyms for word in pair}
    unit = {word: vectors[word] / np.linalg.norm(vectors[word]) for word in words}
    start = dict(unit)
    for _ in range(20):
        moved = {}
        for word in words:
            updates = []
            for other in words - {word}:
                pair = (min(word, other), max(word, other))
                cosine, before = unit[word] @ unit[other], start[word] @ start[other]
                gradient = unit[other] - cosine * unit[word]
                if pair in synonyms:
                    updates.append(gradient)
                if pair in antonyms and cosine > 0:
                    updates.append(-gradient)
                if before >= 0.8 and cosine < before:
                    updates.append(gradient)
            new = unit[word] + 0.1 * np.mean(updates, axis=0) if updates else unit[word]
            moved[word] = new / np.linalg.norm(new)
        unit = moved
    fitted = {word: unit[word] * np.linalg.norm(vectors[word]) for word in words}
    return {**vectors, **fitted}


def test_neighbors_are_words_above_minimum_cosine() -> None:
    unit = module._normalize(np.array([[1, 0], [4, 3], [3.9, 3.1]], np.float32))
    assert module._neighbors(unit).tolist() == [[0, 1], [1, 2]]


def test_counter_fitting_matches_slow_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK", 3)
    generator = np.random.default_rng(3)
    common = generator.normal(size=6)
    words = [f"w{number:02}" for number in range(14)]
    vectors = {word: 2 * (common + 0.4 * generator.normal(size=6)) for word in words}
    synonyms: set[Pair] = {("w00", "w01"), ("w01", "w02"), ("w03", "w09"), ("absent", "w00")}
    antonyms: set[Pair] = {("w02", "w04"), ("w00", "w05"), ("w06", "w07"), ("near", "x"), ("far", "x")}
    # Antonyms only stay where they are if their cosine is not above 0.
    for word, cosine in (("x", 1), ("near", 0.01), ("far", -0.01)):
        vectors[word] = np.array([cosine, (1 - cosine**2) ** 0.5, 0, 0, 0, 0])
    words = list(vectors)
    table = WordVectors(words, np.array([vectors[word] for word in words], dtype=np.float32))
    fitted, used = counter_fit(table, synonyms, antonyms)
    assert used == {"synonyms": 3, "antonyms": 5} and fitted.words == words
    expected = slow(vectors, synonyms - {("absent", "w00")}, antonyms)
    np.testing.assert_allclose(fitted.vectors, [expected[word] for word in words], rtol=2e-4, atol=2e-4)
    unused = [row for row, word in enumerate(words) if word in ("w08", "w10", "w11", "w12", "w13")]
    np.testing.assert_array_equal(fitted.vectors[unused], table.vectors[unused])
    assert np.linalg.norm(fitted.vectors - table.vectors) > 1


def test_command_excludes_evaluation_pairs(tmp_path: Path) -> None:
    vectors, fitted = tmp_path / "vectors.txt", tmp_path / "fitted.txt"
    vectors.write_text("hot 1 0.2\ncold 1 0.1\nwarm 0.5 -1\nicy 1 -1\nother 3 4\n")
    (tmp_path / "synonyms.txt").write_text("Hot warm\ncold icy\nhot cold\n")
    (tmp_path / "antonyms.txt").write_text("cold hot\nwarm icy\n")
    (tmp_path / "judged.txt").write_text("word1 word2 score\nicy cold 9\nwarm other 1\n")
    options = ["--synonyms", tmp_path / "synonyms.txt", "--antonyms", tmp_path / "antonyms.txt"]
    run_command("fit-words", vectors, fitted, *options, "--without", tmp_path / "judged.txt", app=app)
    found = WordVectors.from_text(fitted)
    pairs = {("hot", "warm")}, {("cold", "hot"), ("icy", "warm")}
    expected, used = counter_fit(WordVectors.from_text(vectors), *pairs)
    assert used == {"synonyms": 1, "antonyms": 2}
    np.testing.assert_array_equal(found.vectors, expected.vectors)


def test_invalid_pairs_are_error(tmp_path: Path) -> None:
    table = WordVectors(["a", "b"], np.eye(2, dtype=np.float32))
    with pytest.raises(InputError, match="no pair of synonyms or antonyms has vectors of both words"):
        counter_fit(table, {("a", "c"), ("a", "a")}, set())
    table.write_text(tmp_path / "vectors.txt")
    with pytest.raises(ConfigurationError, match="give --synonyms, --antonyms or both"):
        run_command("fit-words", tmp_path / "vectors.txt", tmp_path / "out.txt", app=app)
