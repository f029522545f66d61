"""The character model against its definition, written out; it is a probability distribution over words."""

import math
from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraforge.corpus.scoring import character_model
from paraforge.corpus.scoring.character_model import ORDER, CharacterModel

WORDS = st.dictionaries(st.text("abč𝒳", min_size=1, max_size=7), st.integers(1, 50), min_size=1, max_size=12)


def slow(words: dict[str, int], asked: str) -> float:
    """Witten and Bell's smoothing, character by character."""
    following: dict[str, Counter[str]] = defaultdict(Counter)
    for word, count in words.items():
        spelled = f" {word} "
        for place in range(1, len(spelled)):
            for before in range(min(ORDER, place + 1)):
                following[spelled[place - before : place]][spelled[place]] += count
    characters = {character for word in words for character in f" {word} "}
    total = 0.0
    spelled = f" {asked} "
    for place in range(1, len(spelled)):
        probability = 1 / (len(characters) + 1)
        for before in range(min(ORDER, place + 1)):
            counts = following.get(spelled[place - before : place])
            if counts:
                kinds = len(counts)
                probability = (counts[spelled[place]] + kinds * probability) / (counts.total() + kinds)
        total += math.log(probability)
    return total


def model(words: dict[str, int]) -> CharacterModel:
    return CharacterModel(pa.array(list(words), pa.string()), np.array(list(words.values()), dtype=np.int64))


@given(WORDS, st.lists(st.text("abčd𝒳", max_size=8), min_size=1))
def test_definition(words: dict[str, int], asked: list[str]) -> None:
    asked = [*asked, *words]
    trained = model(words)
    for _ in range(2):  # the second time from memory
        found = trained.log_probabilities(pa.array(asked))
        assert found == pytest.approx([slow(words, word) for word in asked], rel=1e-9)


def test_the_probabilities_of_all_words_are_at_most_one() -> None:
    words = {"ab": 3, "a": 5, "ba": 1}
    short = ["".join(letters) for letters in _products("ab", 7)]
    total = np.exp(model(words).log_probabilities(pa.array(short))).sum()
    assert 0.9 < total < 1


def _products(letters: str, longest: int) -> list[str]:
    found = [""]
    for word in found:
        if len(word) < longest:
            found += [word + letter for letter in letters]
    return found


def test_gibberish_is_less_probable_a_character() -> None:
    words = {"comment": 4, "department": 3, "corner": 2, "current": 4, "mention": 3}
    known, odd, foreign = model(words).log_probabilities(pa.array(["commention", "cmnttn", "žluťoučký"]))
    assert known / 11 > odd / 7 > foreign / 10


def test_trained_on_the_most_frequent_words_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    words = {"aa": 1, "bb": 5, "cc": 1, "dd": 3}
    monkeypatch.setattr(character_model, "MOST_WORDS", 3)
    asked = pa.array(["aa", "cc", "dd"])
    kept = {"aa": 1, "bb": 5, "dd": 3}
    assert model(words).log_probabilities(asked) == pytest.approx(model(kept).log_probabilities(asked))


def test_a_model_of_no_words() -> None:
    # One unknown character, and nothing else to be expected: each is certain.
    assert model({}).log_probabilities(pa.array(["ab"])).tolist() == [0.0]
    assert model({"a": 1}).log_probabilities(pa.array([], pa.string())).tolist() == []
