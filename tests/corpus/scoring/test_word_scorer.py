"""Scores of words against their formula, and the built-in scorer: what it is and what it finds."""

import re
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save

from paraforge.base.errors import InputError
from paraforge.base.files import read_json, sha256_file, write_json
from paraforge.base.text.tokens import tokenize, tokenize_columns
from paraforge.base.word_vectors.subword_vectors import SubwordVectors
from paraforge.corpus.scoring import general
from paraforge.corpus.scoring.alignment import aligned_scores, directions_of
from paraforge.corpus.scoring.repetition import repeated_shares
from paraforge.corpus.scoring.word_scorer import COSINE_SHARE, DESCRIPTION, LENGTH_POWER, VECTORS, WordScorer
from tests.damage import DAMAGES, Damage

WORDS = st.sampled_from(["the", "a", "cat", "cats", "sat", "corimentment", "Ж", "😀", "1984", ".", "don't"])
TEXTS = st.lists(st.lists(WORDS, max_size=9).map(" ".join), min_size=2, max_size=12)


@pytest.fixture(scope="module")
def built_in() -> WordScorer:
    return WordScorer.open(general.DIRECTORY)


@given(TEXTS)
def test_a_score_is_the_formula(texts: list[str]) -> None:
    scorer = WordScorer.open(general.DIRECTORY)
    half = len(texts) // 2
    columns = tokenize_columns(pa.array(texts[:half]), pa.array(texts[half : 2 * half]))
    vectors = scorer.vectors.of_words(columns[0].vocabulary)
    aligned = aligned_scores(*columns, *directions_of(vectors))
    repeated = repeated_shares(*columns)
    for row, found in enumerate(scorer.scores(*columns).tolist()):
        sides = [column.row(row) for column in columns]
        if not all(sides):
            assert np.isnan(found)
            continue
        left, right = (
            sum(vectors[columns[0].vocabulary.index(word)].astype(float) for word in side) for side in sides
        )
        cosine = max(0, left @ right / np.linalg.norm(left) / np.linalg.norm(right))
        sizes = [sum(len(word) + 1 for word in side) for side in sides]
        expected = COSINE_SHARE * cosine + (1 - COSINE_SHARE) * float(aligned[row])
        expected *= (1 - float(repeated[row])) * (min(sizes) / max(sizes)) ** LENGTH_POWER
        assert found == pytest.approx(expected, abs=1e-5)
        assert 0 <= found <= 1


def test_rounding_lifts_no_copy_over_1(built_in: WordScorer) -> None:
    """A filter that accepts scores up to 1 would refuse it."""
    names = ("dad", "mum", "sister", "old dancer in a skirt", "budget of the local cabinet")
    copies = [f"Our {one} stayed with the {other} because it was glad." for one in names for other in names]
    assert built_in.similarity(copies, copies).max() <= 1


def test_wrong_translations_score_lower_than_right_ones(built_in: WordScorer) -> None:
    reference = "a giant sequoia tree next to a road at night"
    right = ["a huge sequoia beside a street at night", "a giant sequoia tree near a road in the night"]
    wrong = [
        "a giant corimentmentment ... at night",
        "two dogs are playing in the snow",
        "a giant sequoia tree next to a to a to a to a to a to a to a to a",
        "giant a to at",
    ]
    scores = built_in.similarity([reference] * 6, right + wrong)
    assert scores[:2].min() > scores[2:].max() + 0.15
    assert built_in.similarity([reference], [reference])[0] == pytest.approx(1)


def test_what_is_written_in_another_alphabet_is_like_itself_alone(built_in: WordScorer) -> None:
    same, other = built_in.similarity(["金融市场今天下跌"] * 2, ["金融市场今天下跌", "股票昨天上涨了很多"])
    assert same == pytest.approx(1)
    assert other < 0.3


def test_english_is_known_and_german_is_not(built_in: WordScorer) -> None:
    english = "The chairman said in Berlin yesterday that the government would not change the law."
    german = "Der Vorsitzende hat gestern in Berlin gesagt, dass die Regierung das Gesetz nicht ändert."
    known, unknown = (built_in.known_share(pa.array([text] * 20)) for text in (english, german))
    assert known is not None and unknown is not None
    assert known > 0.9 and unknown < 0.6
    assert built_in.known_share(pa.array(["too few words", None])) is None
    assert built_in.doubt_about(pa.array([english] * 20)) is None
    assert re.fullmatch(
        r"The built-in scorer knows \d+% of the references' words; in English text it knows 90%\.",
        built_in.doubt_about(pa.array([german] * 20)) or "",
    )


def test_the_file_is_the_recipes_and_small(built_in: WordScorer) -> None:
    path = general.DIRECTORY / VECTORS
    assert path.stat().st_size <= 8_000_000
    assert built_in.fingerprint == sha256_file(path)
    assert built_in.about["language"] == "en"
    assert all(part["licence"] for part in built_in.about["trained_on"])
    card = (general.DIRECTORY / "README.md").read_text(encoding="utf-8")
    assert all(part["licence"] in card for part in built_in.about["trained_on"])


def of_another_kind(path: Path) -> None:
    path.write_bytes(save({"numbers": np.zeros((2, 2), dtype=np.int8)}))


def of_another_format(path: Path) -> None:
    write_json(path, {**read_json(path), "format": 9})


@pytest.mark.parametrize(
    ("name", "damage"),
    [*((VECTORS, one) for one in (*DAMAGES, of_another_kind)), (DESCRIPTION, of_another_format)],
)
def test_a_damaged_scorer_is_refused(tmp_path: Path, name: str, damage: Damage) -> None:
    for file in (DESCRIPTION, VECTORS):
        shutil.copy(general.DIRECTORY / file, tmp_path)
    damage(tmp_path / name)
    with pytest.raises(InputError) as caught:
        WordScorer.open(tmp_path)
    assert str(tmp_path) in str(caught.value)


@given(st.integers(0, 2**31), st.integers(1, 12))
def test_eight_bits_are_near_the_vectors(seed: int, dimension: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(3, dimension)).astype(np.float32)
    vectors[1] = 0
    parts = SubwordVectors.quantised([" ab", "ab ", "\tab"], vectors, 1.0)
    (found,) = parts.of_words(["ab"])
    expected = vectors[0] + vectors[1] + 2 * vectors[2]
    np.testing.assert_allclose(found, expected, atol=2 * np.abs(vectors).max() / 127)
    assert parts.knows(["ab", "a", "abc"]).tolist() == [True, False, False]


@given(st.lists(st.lists(st.sampled_from(["ab", "abc", "xyz", "é", ""]), unique=True), max_size=6))
def test_a_word_has_the_same_vector_whatever_was_asked_before(questions: list[list[str]]) -> None:
    table = np.random.default_rng(0).normal(size=(4, 16)).astype(np.float32)

    def made() -> SubwordVectors:
        return SubwordVectors.quantised([" ab", "ab ", "\tab", "abc"], table, 1.0)

    asked = made()
    for words in questions:
        assert asked.of_words(words).tobytes() == made().of_words(words).tobytes()


def test_a_part_that_is_unknown_has_a_vector_of_its_own() -> None:
    parts = SubwordVectors.quantised(["\tab"], np.ones((1, 64), dtype=np.float32), 3.0)
    first, again, other = parts.of_words(["x", "x", "y"])
    assert (first == again).all()
    # One trigram and twice the word, of length 3 each and nearly at right angles.
    assert 3 * 5**0.5 * 0.7 < np.linalg.norm(first) < 3 * 5**0.5 * 1.3
    assert abs(first @ other) < 0.5 * np.linalg.norm(first) * np.linalg.norm(other)
    assert tokenize("x") == ["x"]


@pytest.mark.parametrize(
    ("language", "english"),
    [("en", True), ("eng_Latn", True), ("en-GB", True), ("cs|en", True), ("EN", True), ("de", False),
     ("enm", False), ("ces", False)],
)  # fmt: skip
def test_codes_of_english(language: str, english: bool) -> None:
    assert general.is_english(language) is english
