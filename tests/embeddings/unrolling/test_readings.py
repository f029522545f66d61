"""Scores of every reading against those of a model that is read so, one reading after the other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from paraforge.embeddings.evaluation.sets.sentence_pairs import SentencePairs
from paraforge.embeddings.evaluation.similarity.sts import evaluate_sts
from paraforge.embeddings.unrolling.parameters import parse_representation
from paraforge.embeddings.unrolling.train_decoders import readings_of, scores_by_reading
from tests.embeddings.unrolling.corpus import KINDS, make_model, random_documents


def sets() -> list[SentencePairs]:
    """Two sets of a year with rows that are not judged, one without any judgement, texts without a word."""
    generator = np.random.default_rng(2)
    texts = [text for document in random_documents(9, seed=4) for text in document]
    found = []
    for name, rows in (("2020.a", 12), ("2020.b", 7), ("2021.c", 5)):
        gold = generator.random(rows)
        gold[:: 4 if name != "2021.c" else 1] = np.nan
        first, second = ([*generator.choice(texts, rows - 1), ""] for _ in range(2))
        found.append(SentencePairs(name, name[:4], first, second, gold))
    return found


@pytest.mark.parametrize(("encoder", "decoder"), KINDS)
def test_each_reading_is_judged_as_alone(encoder: str, decoder: str, tmp_path: Path) -> None:
    reading = {"kind": "context"} if decoder == "bow" else {"kind": "mean", "steps": 2}
    model = make_model(encoder, decoder, tmp_path, representation=reading)
    found = scores_by_reading(model, sets())
    expected = ["context", "context:cosine"]
    if decoder == "gru":
        expected += ["unrolled:2", "unrolled:2:cosine", "mean:2", "mean:2:cosine"]
    assert list(found) == [str(reading) for reading in readings_of(model.parameters)] == expected
    for name, years in found.items():
        alone = evaluate_sts(model.read_by(parse_representation(name)), sets()).groups
        assert list(years) == ["2020", "2021"] and years["2021"] is None
        assert years["2020"] == pytest.approx(alone[0].pearson, abs=1e-4)
        assert alone[0].pearson is not None
    assert scores_by_reading(model, []) == {}
