"""The word scorer against its formula, and properties of the built-in one."""

import re
import shutil
from collections import Counter
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
from paraforge.corpus.scoring.alignment import _CELLS, BETA, CONTEXT, aligned_scores, directions_of
from paraforge.corpus.scoring.repetition import LENGTH, repeated_shares
from paraforge.corpus.scoring.word_scorer import COSINE_SHARE, DESCRIPTION, LENGTH_POWER, VECTORS, WordScorer
from tests.damage import DAMAGES, Damage

WORDS = st.sampled_from(["the", "a", "cat", "cats", "sat", "corimentment", "Ж", "😀", "1984", ".", "don't"])
TEXTS = st.lists(st.lists(WORDS, max_size=9).map(" ".join), min_size=2, max_size=12)


@pytest.fixture(scope="module")
def built_in() -> WordScorer:
    return WordScorer.open(general.DIRECTORY)


@given(TEXTS)
def test_built_in_scores_match_the_formula(texts: list[str]) -> None:
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


def test_scores_of_copies_never_exceed_1(built_in: WordScorer) -> None:
    """Otherwise a filter with the maximum 1 would reject them."""
    copies = ["house house old", "government house dog old sky year", "tree old the time dog day the old"]
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


def test_text_in_another_script_is_similar_only_to_itself(built_in: WordScorer) -> None:
    same, other = built_in.similarity(["金融市场今天下跌"] * 2, ["金融市场今天下跌", "股票昨天上涨了很多"])
    assert same == pytest.approx(1)
    assert other < 0.3


def test_the_built_in_scorer_warns_about_text_that_is_not_english(built_in: WordScorer) -> None:
    english = "The chairman said in Berlin yesterday that the government would not change the law."
    german = "Der Vorsitzende hat gestern in Berlin gesagt, dass die Regierung das Gesetz nicht ändert."
    assert built_in.doubt_about(pa.array([english] * 20)) is None
    assert built_in.doubt_about(pa.array(["wenige Wörter", None])) is None
    for known, is_doubtful in ((7, False), (6, True)):
        texts = pa.array([" ".join(["the"] * known + ["qzxqj"] * (10 - known))] * 10)
        assert (built_in.doubt_about(texts) is not None) == is_doubtful
    assert re.fullmatch(
        r"The built-in scorer knows [345]\d% of the references' words; in English text it knows 90%\.",
        built_in.doubt_about(pa.array([german] * 20)) or "",
    )


def test_the_built_in_vectors_are_small_and_licensed(built_in: WordScorer) -> None:
    path = general.DIRECTORY / VECTORS
    assert path.stat().st_size <= 8_000_000
    assert built_in.fingerprint == sha256_file(path)
    assert built_in.about["language"] == "en"
    assert all(part["license"] for part in built_in.about["trained_on"])
    card = (general.DIRECTORY / "README.md").read_text(encoding="utf-8")
    assert all(part["license"] in card for part in built_in.about["trained_on"])


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
def test_quantized_vectors_are_close_to_the_originals(seed: int, dimension: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(3, dimension)).astype(np.float32)
    vectors[1] = 0
    parts = SubwordVectors.quantized([" ab", "ab ", "\tab"], vectors, 1.0)
    (found,) = parts.of_words(["ab"])
    expected = vectors[0] + vectors[1] + 2 * vectors[2]
    np.testing.assert_allclose(found, expected, atol=2 * np.abs(vectors).max() / 127)
    assert parts.knows(["ab", "a", "abc"]).tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("language", "english"),
    [("en", True), ("eng_Latn", True), ("en-GB", True), ("cs|en", True), ("EN", True), ("de", False),
     ("enm", False), ("ces", False)],
)  # fmt: skip
def test_is_english_recognizes_language_codes(language: str, english: bool) -> None:
    assert general.is_english(language) is english


def slow_alignment(first: list[int], second: list[int], vectors: np.ndarray) -> float:
    def cosine(i: int, j: int) -> float:
        if (i, j) in ((-1, -1), (len(first), len(second))):
            return 1.0
        if not (0 <= i < len(first) and 0 <= j < len(second)):
            return 0.0
        left, right = vectors[first[i]].astype(float), vectors[second[j]].astype(float)
        norms = float(np.linalg.norm(left) * np.linalg.norm(right))
        return max(0.0, float(left @ right) / norms) if norms else 0.0

    def fit(i: int, j: int) -> float:
        around = (cosine(i - 1, j - 1) + cosine(i + 1, j + 1)) / 2
        return (1 - CONTEXT) * cosine(i, j) + CONTEXT * cosine(i, j) * around

    weights = [float(np.linalg.norm(v)) for v in vectors]
    total, other_total = sum(weights[w] for w in first), sum(weights[w] for w in second)
    if not total or not other_total:
        return float("nan")
    recall = sum(weights[w] * max(fit(i, j) for j in range(len(second))) for i, w in enumerate(first)) / total
    precision = (
        sum(weights[w] * max(fit(i, j) for i in range(len(first))) for j, w in enumerate(second))
        / other_total
    )
    if not recall + precision:
        return 0.0
    return (1 + BETA**2) * precision * recall / (BETA**2 * precision + recall)


def test_alignment_matches_a_slow_definition() -> None:
    generator = np.random.default_rng(1)
    words = [f"w{n}" for n in range(30)]
    texts = [
        [" ".join(generator.choice(words, generator.integers(0, 12))) for _ in range(60)] for _ in range(2)
    ]
    columns = tokenize_columns(*map(pa.array, texts))
    vectors = generator.normal(size=(len(columns[0].vocabulary), 6)).astype(np.float32)
    vectors[columns[0].vocabulary.index("w3")] = 0
    rows = [
        [side.ids[side.offsets[row] : side.offsets[row + 1]].tolist() for side in columns]
        for row in range(60)
    ]
    expected = [slow_alignment(*row, vectors) for row in rows]
    np.testing.assert_allclose(aligned_scores(*columns, *directions_of(vectors)), expected, atol=1e-5)
    assert np.isnan(expected).any() and max(expected) > 0.3


def test_missing_and_moved_words_lower_the_alignment_score() -> None:
    translations = ["a b c d", "a b", "a b c d e f", "d c b a", "x"]
    columns = tokenize_columns(pa.array(["a b c d"] * 5), pa.array(translations))
    vectors = np.eye(len(columns[0].vocabulary), dtype=np.float32)
    same, half, more, moved, other = aligned_scores(*columns, *directions_of(vectors)).tolist()
    assert same == 1
    assert other == 0
    # In "d c b a" no word has a neighbor of before.
    assert moved == pytest.approx(1 - CONTEXT)
    # Two words missing are worse than two too many.
    assert half < more < same


def test_long_texts_are_aligned_in_blocks_without_losing_neighbors() -> None:
    """The text has more words than one block of the alignment."""
    words = 1100
    text = " ".join(f"w{n}" for n in range(words))
    columns = tokenize_columns(pa.array([text]), pa.array([text]))
    vectors = np.random.default_rng(1).normal(size=(words, 16)).astype(np.float32)
    assert words**2 > _CELLS
    assert aligned_scores(*columns, *directions_of(vectors)).tolist() == pytest.approx([1.0], abs=1e-5)


def slow_repetition(reference: str, translation: str) -> float:
    def pieces(text: str) -> list[str]:
        joined = f" {' '.join(tokenize(text))} "
        return [joined[start : start + LENGTH] for start in range(len(joined) - LENGTH + 1)]

    expected, found = Counter(pieces(reference)), Counter(pieces(translation))
    if not tokenize(translation) or not found:
        return 0.0
    return sum(max(0, n - max(1, expected[piece])) for piece, n in found.items()) / found.total()


def shares(references: list[str], translations: list[str]) -> list[float]:
    return repeated_shares(*tokenize_columns(pa.array(references), pa.array(translations))).tolist()


REPEATING = st.lists(st.text(st.sampled_from("ab é😀."), max_size=40), min_size=2, max_size=8)


@given(REPEATING)
def test_repetition_matches_a_slow_definition(texts: list[str]) -> None:
    half = len(texts) // 2
    references, translations = texts[:half], texts[half : 2 * half]
    expected = list(map(slow_repetition, references, translations))
    np.testing.assert_allclose(shares(references, translations), expected, atol=1e-6)


@pytest.mark.parametrize(
    "translation",
    [
        "a giant corimentmentmentmentment at night",
        "a giant tree at night at night at night at night",
        "a a a a a a a a a a a a a a a a",
        "a giant tree!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!",
    ],
)
def test_repeated_letters_words_and_phrases_are_found(translation: str) -> None:
    reference = "a giant sequoia tree at night"
    assert shares([reference], [translation])[0] > 0.2
    # What the reference repeats may be repeated.
    assert shares([translation], [translation]) == [0]
    assert shares([reference], ["a giant tree at night in a forest"]) == [0]


def test_a_long_row_does_not_change_the_others() -> None:
    texts = ["one two three"] * 3 + ["word " * 50_000] + ["one two three"] * 3
    assert shares(texts, texts) == [0] * 7
    assert shares(["word"] * 2, ["word " * 50_000, "word"])[1] == 0
