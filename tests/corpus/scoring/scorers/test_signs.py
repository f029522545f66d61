"""Signs of a bad translation against their definitions, on odd, random and real pairs."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paraforge.base.text.tokens import tokenize
from paraforge.base.word_vectors.subword_vectors import SubwordVectors
from paraforge.corpus.scoring.character_model import CharacterModel
from paraforge.corpus.scoring.corpus_counts import CorpusCounts, count_shard, put_together
from paraforge.corpus.scoring.pairs import Pairs
from paraforge.corpus.scoring.repeats import LONGEST_PART, LONGEST_PHRASE
from paraforge.corpus.scoring.scorers.character_score import CharacterScore
from paraforge.corpus.scoring.scorers.copied_words import CopiedWords
from paraforge.corpus.scoring.scorers.length_surprise import LengthSurprise
from paraforge.corpus.scoring.scorers.repetition import Repetition
from paraforge.corpus.scoring.scorers.unknown_words import UnknownWords
from paraforge.corpus.scoring.word_scorer import WordScorer

REFERENCES = ["The cat sat on the mat.", "Novák helped Trabzonspor.", "ha ha ha", "5 - 7", "", "Café Slavia"]
TRANSLATIONS = [
    "the cat cat cat sat on a mtmtmtmat",
    "Novák helped helped Trabzonsporu 5 7",
    "ha ha ha ha",
    "-- . 5",
    "",
    "café slavia kavárna kavárna",
    "corimentmentmentment",
    "we say that that is so we say that that is so",
]
SOURCES = ["Kočka seděla na rohoži.", "Trabzonsporu helped", "kavárna Slavia", "", None]
PAIRS = st.lists(
    st.tuples(st.sampled_from(REFERENCES), st.sampled_from(TRANSLATIONS), st.sampled_from(SOURCES)),
    min_size=1,
    max_size=12,
)
Row = tuple[str, str, str | None]


@pytest.fixture(autouse=True)
def _few_words_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paraforge.corpus.scoring.corpus_scorer.FEWEST_WORDS", 0)


def test_a_small_corpus_does_not_tell_what_a_word_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paraforge.corpus.scoring.corpus_scorer.FEWEST_WORDS", 4)
    rows = [("one two three", "one owt", None)]
    general = WordScorer(SubwordVectors(["\ttwo"], np.ones((1, 4), np.int8), np.ones(1, np.float32), 1.0), {})
    for sign in (UnknownWords, CharacterScore):
        assert values(sign(counts_of(rows))(pairs_of(rows))) == [None]
        assert None not in values(sign(counts_of(rows), general)(pairs_of(rows)))
        assert None not in values(sign(counts_of([*rows, ("four", "five", None)]))(pairs_of(rows)))


def pairs_of(rows: Sequence[Row], sources: Sequence[str | None] | None = None) -> Pairs:
    reference, translation, foreign = (pa.array(texts, pa.string()) for texts in zip(*rows, strict=True))
    source = None if sources is None else pa.array(sources, pa.string())
    return Pairs.of(reference, translation, source, foreign)


def counts_of(rows: Sequence[Row]) -> CorpusCounts:
    columns = {
        "reference": pa.array([r for r, _, _ in rows], pa.string()),
        "translation": pa.array([t for _, t, _ in rows], pa.string()),
    }
    return put_together([count_shard(pa.table(columns))])


def words(text: str | None) -> list[str]:
    return [token for token in tokenize(text or "") if any(map(str.isalpha, token))]


def values(scored: dict[str, Any]) -> list[Any]:
    (column,) = scored.values()
    return list(column.to_pylist())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(PAIRS, st.integers(0, 3))
def test_unknown_and_copied_words(rows: list[Row], counted: int) -> None:
    counts = counts_of(rows[:counted])
    known = {word for reference, _, _ in rows[:counted] for word in words(reference)}
    unknown, copied = (values(sign(counts)(pairs_of(rows))) for sign in (UnknownWords, CopiedWords))
    for (reference, translation, foreign), share, copies in zip(rows, unknown, copied, strict=True):
        found = words(translation)
        odd = [word for word in found if word not in known and word not in words(reference)]
        if not found:
            assert share is copies is None
            continue
        assert share == pytest.approx(len(odd) / len(found))
        if foreign is None:
            assert copies is None
        else:
            assert copies == pytest.approx(sum(word in tokenize(foreign) for word in odd) / len(found))


def test_words_of_the_general_scorer_are_known() -> None:
    vectors = SubwordVectors(["\tkavárna"], np.ones((1, 4), np.int8), np.ones(1, np.float32), 1.0)
    rows = [("one", "the slavia kavárna", "Slavia kavárna")]
    counts, general = counts_of([("the", "the", None)]), WordScorer(vectors, {})
    for sign, alone, together in ((UnknownWords, 2 / 3, 1 / 3), (CopiedWords, 2 / 3, 1 / 3)):
        assert values(sign(counts)(pairs_of(rows))) == [pytest.approx(alone)]
        assert values(sign(counts, general)(pairs_of(rows))) == [pytest.approx(together)]


def slow_repeats(items: Sequence[str], longest: int, least: int | None = None) -> set[int]:
    """Places of items that are in a run of copies of the block before them.

    least: items of such a run; None: as many as the block has.
    """
    found: set[int] = set()
    for period in range(1, min(longest, len(items) // 2) + 1):
        same = [k >= period and items[k] == items[k - period] for k in range(len(items))]
        for value, group in itertools.groupby(range(len(items)), key=lambda k, same=same: same[k]):
            run = list(group)
            if value and len(run) >= (period if least is None else least):
                found |= set(run)
    return found


def slow_letters(word: str) -> int:
    best = 0
    for period in range(1, LONGEST_PART + 1):
        least = period if period >= 4 else 2 * period if period >= 2 else 3
        if 2 * period <= len(word):
            run = 0
            for place in range(period, len(word)):
                run = run + 1 if word[place] == word[place - period] else 0
                best = max(best, run if run >= least else 0)
    return best


def slow_share(text: str) -> float:
    tokens = tokenize(text)
    letters = [sum(character.isalpha() or character.isdigit() for character in token) for token in tokens]
    repeated = slow_repeats(tokens, LONGEST_PHRASE)
    found = [
        count if place in repeated else min(count, slow_letters(token))
        for place, (token, count) in enumerate(zip(tokens, letters, strict=True))
    ]
    return sum(found) / sum(letters) if sum(letters) else 0.0


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(PAIRS, st.lists(st.text("ab ", max_size=30), min_size=1, max_size=5))
def test_repetition(rows: list[Row], odd: list[str]) -> None:
    rows = [*rows, *((odd[0], text, None) for text in odd)]
    for (reference, translation, _), share in zip(rows, values(Repetition()(pairs_of(rows))), strict=True):
        assert share == pytest.approx(max(0.0, slow_share(translation) - slow_share(reference)), abs=1e-6)


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("corimentment", 4 / 12),
        ("couscous", 4 / 8),
        ("Mississippi murmur papa bee", 0),
        ("nooooo", 4 / 6),
        ("a dog in a dog in a park", 7 / 17),
        ("over and over again", 0),
        ("- - - - . . .", 0),
        ("1 1 1", 2 / 3),
    ],
)
def test_what_counts_as_repeated(text: str, share: float) -> None:
    assert values(Repetition()(pairs_of([("once", text, None)]))) == [pytest.approx(share)]
    assert values(Repetition()(pairs_of([(text, text, None)]))) == [0]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(PAIRS)
def test_character_score(rows: list[Row]) -> None:
    counts = counts_of(rows)
    model = CharacterModel(counts.words, counts.counts)

    def mean(text: str) -> float | None:
        found = words(text)
        if not found:
            return None
        total = float(model.log_probabilities(pa.array(found)).sum())
        return total / sum(len(word) + 1 for word in found)

    for (reference, translation, _), score in zip(
        rows, values(CharacterScore(counts)(pairs_of(rows))), strict=True
    ):
        one, other = mean(reference), mean(translation)
        if one is None or other is None:
            assert score is None
        else:
            assert score == pytest.approx(other - one, rel=1e-5, abs=1e-6)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(PAIRS, st.data())
def test_length_surprise(rows: list[Row], data: st.DataObject) -> None:
    usual = {"long": (0.5, 0.1), "": (-0.1, 0.3)}
    counts = CorpusCounts(pa.array([], pa.string()), np.zeros(0, dtype=np.int64), usual)
    sources = data.draw(
        st.lists(st.sampled_from(["long", "other", None]), min_size=len(rows), max_size=len(rows))
    )
    found = values(LengthSurprise(counts)(pairs_of(rows, sources)))
    for (reference, translation, _), source, surprise in zip(rows, sources, found, strict=True):
        middle, deviation = usual.get(source or "", (0.0, 0.2))
        ratio = math.log((len(translation) + 1) / (len(reference) + 1))
        assert surprise == pytest.approx((ratio - middle) / deviation, rel=1e-5, abs=1e-5)
