"""Vectors of parts of words that have none of their own."""

import hashlib

import numpy as np

from paraforge.base.word_vectors.subword_vectors import hashed_vectors


def test_a_part_without_a_vector_has_the_signs_of_its_hash_and_a_given_length() -> None:
    found = hashed_vectors(["a", "b"], 12, 3.0)
    bits = np.unpackbits(np.frombuffer(hashlib.shake_128(b"b").digest(2), np.uint8))[:12]
    np.testing.assert_allclose(found[1], (2.0 * bits - 1) * 3 / 12**0.5, rtol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 3.0, rtol=1e-6)
