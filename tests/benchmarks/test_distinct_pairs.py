"""Pairs made from real ones: the same whoever asks, hardly any text twice, and still pairs."""

import random

import numpy as np
import pytest

from benchmarks import distinct_pairs
from benchmarks.distinct_pairs import DistinctPairs

DICE = random.Random(3)
WORDS = [f"word{number}" for number in range(3000)]
SENTENCES = [DICE.choices(WORDS, range(3000, 0, -1), k=DICE.randint(5, 20)) for _ in range(400)]
# The other side has half of the words.
PAIRS = [
    (" ".join(words), " ".join([*words[::2], *DICE.choices(WORDS, k=len(words) // 2 + 3)]))
    for words in SENTENCES
]


@pytest.fixture(scope="module")
def made() -> DistinctPairs:
    return DistinctPairs([*PAIRS, ("too short", "too short, too"), PAIRS[0]])


def test_real_ones_come_first_and_numbers_decide(
    made: DistinctPairs, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sorted(made.pairs) == sorted(PAIRS)
    first = made.texts(np.arange(400))
    assert list(zip(*(side.to_pylist() for side in first), strict=True)) == made.pairs
    monkeypatch.setattr(distinct_pairs, "BLOCK", 70)
    for side in range(2):
        whole = made.texts(np.arange(1000))[side].to_pylist()
        blocks = made.blocks(1000)
        assert [text for block in blocks for text in block[side].to_pylist()] == whole


def test_hardly_any_text_is_there_twice(made: DistinctPairs) -> None:
    for side in made.texts(np.arange(20_000)):
        assert len(side.unique()) > 0.995 * 20_000  # the shortest have five words of 3,000


def test_a_word_of_both_sides_is_exchanged_in_both(made: DistinctPairs) -> None:
    base, exchanged = 7, 0
    for number in range(base + 400, base + 40_000, 400):
        sides = [side.to_pylist()[0].split() for side in made.texts(np.array([number]))]
        for place, word in enumerate(made.pairs[base][0].split()):
            for other, own in zip(made.pairs[base][1].split(), sides[1], strict=True):
                assert other != word or own == sides[0][place]
        changed = [
            sum(map(str.__ne__, pair.split(), side))
            for pair, side in zip(made.pairs[base], sides, strict=True)
        ]
        assert min(changed) >= 1
        exchanged += sum(changed)
    share = exchanged / 99 / len(" ".join(made.pairs[base]).split())
    assert 0.2 < share < 0.4
