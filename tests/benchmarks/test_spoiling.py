"""Spoilt translations by what defines each kind, and the area under the ROC curve by counting pairs."""

import random
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.spoiling import SPOILINGS
from paraforge.base.errors import InputError
from paraforge.corpus.scoring.verdict import area
from paraforge.corpus.scoring.wrong_pairs import rows_of_similar_length

_WORDS = random.Random(5)
# Row n has words of its own, n_1 to n_k, so that a word shows which translation it is from.
TRANSLATIONS = [" ".join(f"{row}_{k}" for k in range(_WORDS.randint(1, 40))) for row in range(300)]
REFERENCES = [f"reference {row}" for row in range(300)]


def spoilt(kind: str, seed: int = 1) -> list[str]:
    return SPOILINGS[kind](REFERENCES, TRANSLATIONS, seed)


@pytest.mark.parametrize("kind", SPOILINGS)
def test_the_seed_alone_decides(kind: str) -> None:
    assert spoilt(kind) == spoilt(kind)
    assert len(spoilt(kind)) == len(TRANSLATIONS)
    assert spoilt(kind) != spoilt(kind, seed=2)


def test_another_sentence_has_a_similar_length() -> None:
    rows = rows_of_similar_length(REFERENCES, TRANSLATIONS)
    assert spoilt("other_sentence") == [TRANSLATIONS[row] for row in rows]
    lengths = np.array([len(text.split()) for text in TRANSLATIONS])
    assert np.abs(lengths[rows] - lengths).max() <= 1
    # Next in the order of lengths: all but the last two rows are another row's only once.
    assert len(set(rows.tolist())) >= len(rows) - 1


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["x", "y y", "z z z"])), min_size=1),
    st.integers(0, 3),
)
def test_another_sentence_differs_in_both_texts(pairs: list[tuple[str, str]], seed: int) -> None:
    references, translations = map(list, zip(*pairs, strict=True))
    possible = [any(a != c and b != d for c, d in pairs) for a, b in pairs]
    others = rows_of_similar_length(references, translations, seed)
    assert (others >= 0).tolist() == possible
    for row in np.flatnonzero(others >= 0):
        assert references[row] != references[others[row]]
        assert translations[row] != translations[others[row]]
    if not all(possible):
        with pytest.raises(InputError, match="no other pair differs"):
            SPOILINGS["other_sentence"](references, translations, seed)


def test_three_fifths_of_the_words_are_of_other_rows() -> None:
    for row, text in enumerate(spoilt("replaced_words")):
        words, right = text.split(), TRANSLATIONS[row].split()
        kept = [place for place, word in enumerate(words) if word == right[place]]
        assert len(words) == len(right)
        assert len(words) - len(kept) == max(1, round(0.6 * len(right)))
        assert all(re.fullmatch(r"\d+_\d+", word) for word in words)
        assert not [word for p, word in enumerate(words) if p not in kept and word.startswith(f"{row}_")]
    with pytest.raises(InputError, match="no other translations"):
        SPOILINGS["replaced_words"](["one"], ["a b c"], 1)


def test_a_stutter_repeats_the_end_of_the_last_word_kept() -> None:
    for text, right in zip(spoilt("stutter"), TRANSLATIONS, strict=True):
        words = right.split()
        kept = " ".join(words[: max(1, len(words) // 2)])
        piece = kept.split(" ")[-1][-4:]
        assert text in [kept + piece * times for times in range(4, 13)]
    assert SPOILINGS["stutter"]([""], ["a giant cup here"], 1)[0].startswith("a giantiantiantiantiant")


def test_half_of_the_words_stay_in_their_order() -> None:
    for text, right in zip(spoilt("half_of_words"), TRANSLATIONS, strict=True):
        words = right.split()
        kept = [words.index(word) for word in text.split()]
        assert kept == sorted(set(kept))
        assert len(kept) == max(1, len(words) // 2)


@pytest.mark.parametrize("kind", ["replaced_words", "stutter", "half_of_words"])
def test_nothing_can_be_spoilt_of_a_blank(kind: str) -> None:
    assert SPOILINGS[kind](["a", "b", "c"], ["", "x y", "z"], 1)[0] == ""


@given(
    st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1),
    st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1),
)
def test_the_area_is_the_share_of_pairs_in_the_right_order(right: list[float], wrong: list[float]) -> None:
    in_order = sum((r > w) + (r == w) / 2 for r in right for w in wrong)
    assert area(np.array(right), np.array(wrong)) == pytest.approx(in_order / len(right) / len(wrong))


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.25, 1.0]), st.integers(1, 4)), min_size=1),
    st.lists(st.tuples(st.sampled_from([0.0, 0.25, 1.0]), st.integers(1, 4)), min_size=1),
)
def test_a_weight_is_as_many_translations(
    right: list[tuple[float, int]], wrong: list[tuple[float, int]]
) -> None:
    """A translation of weight 3 counts as three of weight 1."""
    weighted = [np.array(side, dtype=float).T for side in (right, wrong)]
    repeated = [np.repeat(scores, weights.astype(int)) for scores, weights in weighted]
    (a, a_weights), (b, b_weights) = weighted
    assert area(a, b, a_weights, b_weights) == pytest.approx(area(*repeated))


@pytest.mark.parametrize(("right", "wrong"), [([], [1.0]), ([1.0], []), ([np.nan], [1.0])])
def test_an_area_needs_scores(right: list[float], wrong: list[float]) -> None:
    with pytest.raises(ValueError, match="scores"):
        area(np.array(right), np.array(wrong))


def test_half_of_the_sentence_is_missing() -> None:
    halves = set()
    for text, right in zip(spoilt("missing_half"), TRANSLATIONS, strict=True):
        words = right.split()
        half = max(1, len(words) // 2)
        assert text.split() in (words[:half], words[-half:])
        halves |= {text.split() == words[:half]} if len(words) > 1 else set()
    assert halves == {True, False}


def test_another_sentence_is_added() -> None:
    rows = rows_of_similar_length(REFERENCES, TRANSLATIONS)
    assert spoilt("another_added") == [
        f"{text} {TRANSLATIONS[row]}" for text, row in zip(TRANSLATIONS, rows, strict=True)
    ]


def test_gibberish_is_made_of_pieces_of_the_words() -> None:
    texts = ["alpha beta gamma delta", "one two three four five six seven", ""]
    pool = {"alpha", "beta", "gamma", "delta", "three", "four", "five", "seven"}
    pieces = {word[a : a + n] for word in pool for a in range(len(word) - 1) for n in range(2, 6)}
    for text, right in zip(SPOILINGS["gibberish"](["r"] * 3, texts, 1), texts, strict=True):
        changed = [new for new, old in zip(text.split(), right.split(), strict=True) if new != old]
        assert len(changed) == (max(1, round(0.3 * len(right.split()))) if right else 0)
        for word in changed:
            assert any(
                word in (a + b, a + b + c)
                for a in pieces
                if word.startswith(a)
                for b in pieces
                if word[len(a) :].startswith(b)
                for c in pieces | {""}
            )
