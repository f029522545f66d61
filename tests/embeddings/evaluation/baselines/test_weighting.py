"""Weights of words, against the formulas."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pytest

from paraforge.base.errors import InputError
from paraforge.base.text.idf import Background
from paraforge.base.text.pair_blocks import PairBlock
from paraforge.embeddings.evaluation.baselines.word_average import (
    InverseDocumentFrequency,
    SmoothInverseFrequency,
    count_pairs,
    sentence_counts,
    word_counts,
)
from tests.base.text.test_pair_blocks import write_corpus


def test_smooth_inverse_frequency() -> None:
    weighting = SmoothInverseFrequency(Background("x", 1000, {"the": 900, "dog": 1}), a=0.001)
    expected = [0.001 / 0.901, 0.001 / 0.002, 1]
    assert weighting.weights(["the", "dog", "unheard-of"]).tolist() == pytest.approx(expected)
    assert weighting.weights([]).shape == (0,)
    with pytest.raises(InputError, match="greater than 0"):
        SmoothInverseFrequency(weighting.background, a=0)


def test_inverse_document_frequency() -> None:
    weighting = InverseDocumentFrequency(sentence_counts(["The dog, the dog!", "a dog", "cats"], "x"))
    assert weighting.weights(["dog", "the", "bird"]).tolist() == pytest.approx(
        [math.log(4 / 3), math.log(4 / 2), math.log(4)]
    )


def test_counts_of_pairs() -> None:
    block = PairBlock(pa.array(["The dog.", "the the"]), pa.array(["A dog!", ""]))
    counted = count_pairs([block, block], "x")
    assert counted.counts == {"the": 6, "dog": 4, ".": 2, "a": 2, "!": 2}
    assert counted.documents == 16
    with pytest.raises(InputError, match="not a word"):
        count_pairs([], "x")


def test_counts_of_a_file_and_of_a_corpus(tmp_path: Path) -> None:
    (tmp_path / "counts.txt").write_text("the 10\nThe 5\ndog 2\n")
    assert word_counts(tmp_path / "counts.txt").counts == {"the": 15, "dog": 2}
    (tmp_path / "bad.txt").write_text("the 10\ndog\n")
    with pytest.raises(InputError, match=r"bad\.txt:2"):
        word_counts(tmp_path / "bad.txt")
    rows: list[dict[str, str | None]] = [
        {"reference": "a dog", "translation": "the dog"},
        {"reference": "refused", "translation": None, "rejected": "too_long"},
    ]
    assert word_counts(write_corpus(tmp_path / "corpus", rows)).counts == {"a": 1, "dog": 2, "the": 1}
