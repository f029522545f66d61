"""Vectors of parts of words that have none of their own."""

import hashlib
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraforge.base.errors import InputError
from paraforge.base.word_vectors import subword_vectors
from paraforge.base.word_vectors.subword_vectors import SubwordVectors, WordNumbers, hashed_vectors


def test_a_part_without_a_vector_has_the_signs_of_its_hash_and_a_given_length() -> None:
    found = hashed_vectors(["a", "b"], 12, 3.0)
    bits = np.unpackbits(np.frombuffer(hashlib.shake_128(b"b").digest(2), np.uint8))[:12]
    np.testing.assert_allclose(found[1], (2.0 * bits - 1) * 3 / 12**0.5, rtol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 3.0, rtol=1e-6)


@pytest.mark.parametrize("most", [0, 2, 100])
@given(st.lists(st.lists(st.sampled_from(["ab", "abc", "xyz", "é", ""]), max_size=6), max_size=6))
def test_a_word_has_the_same_vector_whatever_was_asked_before(most: int, questions: list[list[str]]) -> None:
    """Also where the words asked for are more than are kept, and counted anew."""
    table = np.random.default_rng(0).normal(size=(4, 16)).astype(np.float32)

    def made() -> SubwordVectors:
        return SubwordVectors.quantised([" ab", "ab ", "\tab", "abc"], table, 1.0)

    asked = made()
    with mock.patch.object(subword_vectors, "_MOST_WORDS", most):
        for words in questions:
            assert asked.of_words(words).tobytes() == made().of_words(words).tobytes()


def test_parts_and_numbers_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    numbers, scales = np.zeros((2, 3), np.int8), np.array([1, np.nan], np.float32)
    for parts, values, message in (
        (["a"], numbers, "1 parts"),
        (["a", "a"], numbers, "1 parts"),
        (["a", "b"], numbers[0], "2 parts"),
        (["a", "b\n"], numbers, "line break"),
    ):
        with pytest.raises(ValueError, match=message):
            SubwordVectors(parts, values, scales, 1.0)
    SubwordVectors(["a", "b"], numbers, scales, 1.0).save(tmp_path / "parts")
    with pytest.raises(InputError, match="parts: not a file of subword vectors: a scale is not finite"):
        SubwordVectors.open(tmp_path / "parts")


@given(st.lists(st.lists(st.sampled_from(["a", "dog", "Á", "", "cats", "'t"]), max_size=6), max_size=6))
def test_numbers_are_of_the_words_first_asked_for(asked: list[list[str]]) -> None:
    numbers, order = WordNumbers(), []
    for words in asked:
        order += [word for word in dict.fromkeys(words) if word not in order]
        for _ in range(2):
            assert numbers.of(words).tolist() == [order.index(word) for word in words]
    assert len(numbers) == len(order)
