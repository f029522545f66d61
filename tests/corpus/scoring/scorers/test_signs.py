"""Signs of a bad translation against their definitions."""

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
from paraforge.corpus.scorer import ScorerChoice
from paraforge.corpus.scoring.corpus_counts import CorpusCounts, count_shard, put_together
from paraforge.corpus.scoring.general import DIRECTORY
from paraforge.corpus.scoring.pairs import Pairs
from paraforge.corpus.scoring.scorers.meaning import Meaning
from paraforge.corpus.scoring.scorers.words import CopiedWords, LengthSurprise, UnknownWords
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
    monkeypatch.setattr("paraforge.corpus.scoring.scorers.words.FEWEST_WORDS", 0)


def test_small_corpus_has_no_unknown_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paraforge.corpus.scoring.scorers.words.FEWEST_WORDS", 4)
    rows = [("one two three", "one owt", None)]
    general = WordScorer(SubwordVectors(["\ttwo"], np.ones((1, 4), np.int8), np.ones(1, np.float32), 1.0), {})
    assert values(UnknownWords(counts_of(rows))(pairs_of(rows))) == [None]
    assert None not in values(UnknownWords(counts_of(rows), general)(pairs_of(rows)))
    assert None not in values(UnknownWords(counts_of([*rows, ("four", "five", None)]))(pairs_of(rows)))


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


def test_signs_use_chosen_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    built_in = WordScorer.open(DIRECTORY)
    other = WordScorer(built_in.vectors, {})
    asked = []
    monkeypatch.setattr(other, "of_words", lambda words: (asked.append(words), built_in.of_words(words))[1])
    for chosen in (None, other):
        assert asked == []
        Meaning.build(ScorerChoice(chosen))(pairs_of([("one cat", "two cats", None)]))
    assert len(asked) == 1


def test_words_of_built_in_scorer_are_known() -> None:
    vectors = SubwordVectors(["\tkavárna"], np.ones((1, 4), np.int8), np.ones(1, np.float32), 1.0)
    rows = [("one", "the slavia kavárna", "Slavia kavárna")]
    counts, general = counts_of([("the", "the", None)]), WordScorer(vectors, {})
    for sign, alone, together in ((UnknownWords, 2 / 3, 1 / 3), (CopiedWords, 2 / 3, 1 / 3)):
        assert values(sign(counts)(pairs_of(rows))) == [pytest.approx(alone)]
        assert values(sign(counts, general)(pairs_of(rows))) == [pytest.approx(together)]


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
