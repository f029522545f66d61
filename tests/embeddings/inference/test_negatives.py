"""The hardest allowed negative of each size of mega-batch, for random pairs."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paraforge.base.errors import InputError
from paraforge.base.text.pair_blocks import PairBlock
from paraforge.embeddings.inference.neighbours import _drawn, chosen_negatives


class Letters:
    """A text's vector: how often it has each of four letters, and a constant."""

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        return np.array([[*(text.count(letter) for letter in "abcd"), 1] for text in texts], np.float32)


def block(pairs: list[tuple[str, str]]) -> PairBlock:
    left, right = zip(*pairs, strict=True)
    return PairBlock(pa.array(left, pa.string()), pa.array(right, pa.string()))


def cosine(one: str, other: str) -> float:
    first, second = Letters().encode([one, other]).astype(np.float64)
    return float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))


texts = st.text("abcd", min_size=1, max_size=6)


@given(st.lists(st.tuples(texts, texts), min_size=6, max_size=30), st.integers(0, 99), st.integers(1, 30))
@settings(max_examples=60)
def test_negatives_are_the_nearest_allowed_texts(pairs: list[tuple[str, str]], seed: int, cut: int) -> None:
    parts = [block(pairs[first : first + cut]) for first in range(0, len(pairs), cut)]
    order = _drawn(parts, len(pairs), np.random.default_rng(seed))
    assert sorted(order) == sorted(pairs)
    found = chosen_negatives(Letters(), parts, [1, 3], batch_size=2, count=5, seed=seed)
    assert [(one.left, one.right) for one in found] == _drawn(parts, 6, np.random.default_rng(seed))[:2]
    drawn = _drawn(parts, 6, np.random.default_rng(seed))
    for one in found:
        for size in (1, 3):
            candidates = [
                (text, cosine(one.left, text))
                for left, right in drawn[: 2 * size]
                for text, other in ((left, right), (right, left))
                if text not in (one.left, one.right) and other != one.left
            ]
            if not candidates:
                assert size not in one.negatives
                continue
            text, value = one.negatives[size]
            assert value == pytest.approx(max(known for _, known in candidates), abs=1e-5)
            assert text in [name for name, _ in candidates]


def test_too_few_pairs_are_an_error() -> None:
    with pytest.raises(InputError, match="3 pairs, and a mega-batch of 2 times 2 has 4"):
        chosen_negatives(Letters(), [block([("a", "b")] * 3)], [1, 2], batch_size=2)


def test_every_pair_is_drawn_as_often() -> None:
    pairs = [(f"l{number}", f"r{number}") for number in range(12)]
    parts = [block(pairs[:7]), block(pairs[7:])]
    counts = dict.fromkeys(pairs, 0)
    for seed in range(600):
        for pair in _drawn(parts, 4, np.random.default_rng(seed)):
            counts[pair] += 1
    assert min(counts.values()) > 130 and max(counts.values()) < 280  # 200 on average
