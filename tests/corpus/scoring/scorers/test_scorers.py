"""Scorers against slow implementations, on odd, random and real pairs."""

import json
import math
import re
import sys
import unicodedata
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraforge.base.errors import InputError
from paraforge.base.text.ngrams import shared_ngrams
from paraforge.base.text.tokens import tokenize, tokenize_column
from paraforge.base.word_vectors.vectors import UNKNOWN_WORD, WordVectors
from paraforge.corpus.scorer import Column, Scorer, Worse
from paraforge.corpus.scoring.cosine import cosine_of_rows
from paraforge.corpus.scoring.pairs import Pairs
from paraforge.corpus.scoring.scorers import models
from paraforge.corpus.scoring.scorers.models import CrossEncoderScore, ParaphraseScore
from paraforge.corpus.scoring.scorers.words import CopyRate, DigitMismatch, Lengths, Overlap

PAIR_CASES = [
    ("the cat sat on the mat", "the cat sat on the mat"),
    ("the cat sat", "a dog ran"),
    ("the the the cat", "the the dog"),
    ("a b a b a b", "b a b a"),
    ("a b c d", "d c b a"),
    ("one", "one two three four"),
    ("one two", "one two"),
    ("", "something"),
    ("something", ""),
    ("", ""),
    ("In 1999, 5,300 men", "5,300 men in 1999"),
    ("2 and 22", "22 and 22"),
    ("٣ cats", "3 cats"),
    ("x² is not 2", "x 2"),
]


def ngrams(tokens: list[str], order: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(tokens[i : i + order]) for i in range(len(tokens) - order + 1))


def slow_shared(reference: list[str], translation: list[str], order: int) -> int:
    return sum((ngrams(reference, order) & ngrams(translation, order)).values())


def slow_overlap(reference: list[str], translation: list[str], order: int) -> float:
    smaller = min(sum(ngrams(reference, order).values()), sum(ngrams(translation, order).values()))
    return slow_shared(reference, translation, order) / smaller if smaller else 0.0


def slow_mean(tokens: list[str], table: dict[str, list[float]]) -> list[float] | None:
    unknown = table.get(UNKNOWN_WORD)
    found = [table.get(token, unknown) for token in tokens]
    vectors = [vector for vector in found if vector is not None]
    if not vectors:
        return None
    return [math.fsum(numbers) / len(vectors) for numbers in zip(*vectors, strict=True)]


def slow_paraphrase_score(
    reference: list[str], translation: list[str], table: dict[str, list[float]]
) -> float | None:
    left, right = slow_mean(reference, table), slow_mean(translation, table)
    if left is None or right is None:
        return None
    norm = math.hypot(*left) * math.hypot(*right)
    return math.fsum(a * b for a, b in zip(left, right, strict=True)) / norm if norm else None


def check(texts: list[tuple[str, str]], vectors: WordVectors) -> None:
    references, translations = ([pair[side] for pair in texts] for side in (0, 1))
    pairs = Pairs.of(pa.array(references, pa.string()), pa.array(translations, pa.string()))
    scores: dict[str, list[float | bool | None]] = {}
    for scorer in (Lengths(), Overlap(), CopyRate(), DigitMismatch(), ParaphraseScore(vectors)):
        columns = scorer(pairs)
        assert tuple(columns) == scorer.names
        scores.update({name: column.to_pylist() for name, column in columns.items()})
    table = dict(zip(vectors.words, vectors.vectors.tolist(), strict=True))
    for row, (reference_text, translation_text) in enumerate(texts):
        reference, translation = tokenize(reference_text), tokenize(translation_text)
        assert scores["reference_tokens"][row] == len(reference)
        assert scores["translation_tokens"][row] == len(translation)
        for order in (1, 2, 3):
            expected = slow_overlap(reference, translation, order)
            assert scores[f"overlap_{order}"][row] == pytest.approx(expected, abs=1e-6)
        copied = slow_shared(reference, translation, 1) / len(translation) if translation else 0.0
        assert scores["copy_rate"][row] == pytest.approx(copied, abs=1e-6)
        numbers = [Counter(re.findall(r"\d+", text)) for text in (reference_text, translation_text)]
        assert scores["digit_mismatch"][row] == (numbers[0] != numbers[1])
        score = slow_paraphrase_score(reference, translation, table)
        if score is None:
            assert scores["paraphrase_score"][row] is None
        else:
            assert scores["paraphrase_score"][row] == pytest.approx(score, abs=2e-5)


def test_digits_of_every_script_are_compared() -> None:
    digits = [chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) == "Nd"]
    pairs = Pairs.of(pa.array([f"{digit} cats" for digit in digits]), pa.array(["cats"] * len(digits)))
    assert all(DigitMismatch()(pairs)["digit_mismatch"].to_pylist())


def random_vectors(words: list[str], unknown: bool, dimension: int = 10) -> WordVectors:
    names = [*dict.fromkeys(words), *([UNKNOWN_WORD] if unknown else [])]
    numbers = np.random.default_rng(3).normal(size=(len(names), dimension)).astype(np.float32)
    return WordVectors(names, numbers)


@pytest.mark.parametrize("unknown", [False, True])
def test_cases(unknown: bool) -> None:
    check(PAIR_CASES, random_vectors(["the", "cat", "one", "two", "a", "5,300"], unknown))


WORDS = st.sampled_from(["a", "b", "c", "A", "the", "1", "22", "it's", ".", "x,"])
SENTENCES = st.lists(WORDS, max_size=12).map(" ".join)


@given(st.lists(st.tuples(*[SENTENCES | st.text(max_size=20)] * 2), max_size=10), st.booleans())
def test_random_pairs(pairs: list[tuple[str, str]], unknown: bool) -> None:
    check(pairs, random_vectors(["a", "b", "the", "22", "'s", "0", "."], unknown))


def test_paraphrase_score_by_hand() -> None:
    vectors = WordVectors(
        ["a", "b", "c", "zero"], np.array([[1, 0], [0, 1], [-1, 0], [0, 0]], dtype=np.float32)
    )
    texts = [("a", "a b"), ("a", "b"), ("a", "c"), ("a c", "b"), ("zero", "a"), ("q", "a"), ("a q", "a")]
    pairs = Pairs.of(pa.array([r for r, _ in texts]), pa.array([t for _, t in texts]))
    column = ParaphraseScore(vectors)(pairs)["paraphrase_score"]
    assert column.type == pa.float32()
    assert column.to_pylist() == [pytest.approx(math.sqrt(0.5)), 0, -1, None, None, None, 1]


def test_identical_sides_score_1() -> None:
    words = [f"w{i}" for i in range(200)]
    texts = [" ".join(words[i : i + 20]) for i in range(150)]
    pairs = Pairs.of(pa.array(texts), pa.array(texts))
    scores = ParaphraseScore(random_vectors(words, False, 300))(pairs)["paraphrase_score"].to_numpy()
    assert scores.max() <= 1
    assert scores.min() > 1 - 1e-6


def test_huge_vectors_do_not_overflow() -> None:
    vectors = WordVectors(["a", "b"], np.array([[3e38, 0], [3e38, 1]], dtype=np.float32))
    pairs = Pairs.of(pa.array(["a b", "a"]), pa.array(["b a", "b"]))
    assert ParaphraseScore(vectors)(pairs)["paraphrase_score"].to_pylist() == [None, 1]


def test_sides_must_share_a_vocabulary() -> None:
    with pytest.raises(ValueError, match="vocabulary"):
        shared_ngrams(tokenize_column(pa.array(["a"])), tokenize_column(pa.array(["a"])), 3)


def test_cosine_of_rows_without_direction() -> None:
    left = np.array([[1, 0], [0, 0], [np.inf, 1], [1e-30, 0]], dtype=np.float32)
    cosine = cosine_of_rows(left, np.array([[2, 0]] * 4, dtype=np.float32))
    np.testing.assert_array_equal(cosine, np.array([1, np.nan, np.nan, 1], dtype=np.float32))
    assert cosine_of_rows(np.array([[1e-161]]), np.array([[2.6e-162]])).tolist() == [1]


@pytest.mark.parametrize(
    ("worse", "expected"),
    [
        ("larger", [2, 1, 4, 2, None]),
        ("smaller", [1, -3, 4, 2, None]),
        ("farther", [2, -3, 4, 2, None]),
        (None, [9] * 5),
    ],
)
def test_worse_score_of_two_translations_counts(worse: Worse | None, expected: list[float]) -> None:
    """If one translation has no score, the score of the other one counts."""

    class Same(Scorer):
        columns = (Column("same", pa.float32(), ""),)

        def __call__(self, pairs: Any) -> dict[str, Any]:
            return {"same": pa.array(pairs, pa.float32())}

    Same.worse = worse
    sides: Any = ([1, -3, None, 2, None], [2, 1, 4, None, None])
    found = Same().with_worse_of({"same": pa.array([9.0] * 6, pa.float32())}, np.arange(1, 6), *sides)
    assert found["same"].to_pylist() == [9, *expected]


@pytest.mark.parametrize(("labels", "expected"), [(["similar"], 0.5), (["no", "Entailment"], 0.25)])
def test_cross_encoder_averages_both_directions(
    labels: list[str], expected: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The score is the mean of both directions, or the smaller probability of entailment. A side without
    tokens has no score.
    """

    def predict(pairs: list[tuple[str, str]], apply_softmax: bool, **_: object) -> np.ndarray:
        judged = [0.75 if pair == ("a", "b") else 0.25 for pair in pairs]
        return np.array([[9, one] for one in judged] if apply_softmax else judged)

    config = SimpleNamespace(id2label=dict(enumerate(labels)))
    model = SimpleNamespace(model=SimpleNamespace(config=config), predict=predict)
    monkeypatch.setattr(models, "load_model", lambda *_: model)
    pairs = Pairs.of(pa.array(["a", "b", "", "a", ""]), pa.array(["b", "a", "b", " ", ""]))
    found = CrossEncoderScore("model")(pairs)["cross_encoder"]
    assert found.to_pylist() == [expected, expected, None, None, None]
    assert CrossEncoderScore("model").similarity([], []).shape == (0,)
    config.id2label = {0: "positive", 1: "negative"}
    with pytest.raises(InputError, match="positive, negative"):
        CrossEncoderScore("model")


def test_model_directory_with_code_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A single class from outside the library is refused, and so is a directory without a model."""
    with pytest.raises(InputError, match=r"not a cross-encoder: config\.json is missing"):
        CrossEncoderScore(tmp_path)
    with pytest.raises(InputError, match=r"not a sentence-transformers model: modules\.json is missing"):
        models.SentenceTransformerCosine(tmp_path)
    library = SimpleNamespace(SentenceTransformer=lambda *_, **__: pytest.fail("it was loaded"))
    monkeypatch.setattr(models, "require", lambda *_: library)
    (tmp_path / "modules.json").write_text("[]x")
    with pytest.raises(InputError, match="cannot be loaded"):
        models.load_model(tmp_path)
    for strange in ("stranger.Module", "sentence_transformers_of_a_stranger.Module", "os.Module"):
        kinds = ["sentence_transformers.models.Pooling", strange]
        (tmp_path / "modules.json").write_text(json.dumps([{"type": kind} for kind in kinds]))
        with pytest.raises(InputError, match="contains code, which is never run"):
            models.load_model(tmp_path)
