"""Vectors of words from the vectors of their parts."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from paraforge.base.errors import InputError
from paraforge.base.word_vectors.subword_vectors import SubwordVectors, hashed_vectors


def test_unknown_part_gets_hashed_vector() -> None:
    found = hashed_vectors(["a", "b"], 12, 3.0)
    bits = np.unpackbits(np.frombuffer(hashlib.shake_128(b"b").digest(2), np.uint8))[:12]
    np.testing.assert_allclose(found[1], (2.0 * bits - 1) * 3 / 12**0.5, rtol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 3.0, rtol=1e-6)


def test_word_is_the_sum_of_its_parts() -> None:
    # A word that is a part counts twice.
    numbers, scales = np.array([[4, -3], [1, 2]], np.int8), np.array([0.5, 0.25], np.float32)
    vectors = SubwordVectors(["\tcat", "\tdog"], numbers, scales, 0.0)
    assert vectors.of_words(["cat", "dog", "cow"]).tolist() == [[4.0, -3.0], [0.5, 1.0], [0.0, 0.0]]
    assert vectors.knows(["cow", "dog"]).tolist() == [False, True]


def test_mismatched_parts_and_vectors_are_error(tmp_path: Path) -> None:
    numbers, scales = np.zeros((2, 3), np.int8), np.array([1, np.nan], np.float32)
    for parts, values, message in (
        (["a"], numbers, "1 parts"),
        (["a", "a"], numbers, "1 parts"),
        (["a", "b"], numbers[0], "2 parts"),
        (["a", "b\n"], numbers, "line break"),
    ):
        with pytest.raises(ValueError, match=message):
            SubwordVectors(parts, values, scales, 1.0)
    for found, length in ((scales, 1.0), (np.ones(2, np.float32), np.inf)):
        SubwordVectors(["a", "b"], numbers, found, length).save(tmp_path / "parts")
        with pytest.raises(InputError, match="parts: not a file of subword vectors: a scale is not finite"):
            SubwordVectors.open(tmp_path / "parts")
