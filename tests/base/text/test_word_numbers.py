"""Words are numbered as they come; what was asked before changes no vector."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraforge.base.text.word_numbers import WordNumbers
from paraforge.corpus.scoring.general import DIRECTORY
from paraforge.corpus.scoring.word_scorer import WordScorer

lists = st.lists(
    st.lists(st.sampled_from(["a", "dog", "Á", "", "cats", "ran", "'t"]), max_size=6), max_size=6
)


@given(lists)
def test_numbers_are_of_the_words_first_asked_for(asked: list[list[str]]) -> None:
    numbers, order = WordNumbers(), []
    for words in asked:
        order += [word for word in dict.fromkeys(words) if word not in order]
        for _ in range(2):
            assert numbers.of(words).tolist() == [order.index(word) for word in words]
    assert len(numbers) == len(order)


@pytest.mark.parametrize("most", [0, 3, 100])
def test_vectors_do_not_depend_on_what_was_asked_before(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paraforge.base.word_vectors.subword_vectors._MOST_WORDS", most)
    vectors = WordScorer.open(DIRECTORY).vectors
    for words in (["dog", "ran"], ["ran", "cats", "dog", "ran"], ["'t"], [], ["cats", "dog", "zebra", "'t"]):
        alone = WordScorer.open(DIRECTORY).vectors.of_words(list(words))
        assert np.array_equal(vectors.of_words(list(words)), alone)
