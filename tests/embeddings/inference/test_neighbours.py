"""Nearest neighbours against a sort of everything."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from paraforge.base.errors import InputError
from paraforge.base.text.vocabulary import UNKNOWN, Unit, Vocabulary
from paraforge.base.word_vectors.vectors import WordVectors
from paraforge.embeddings.encoders.average import Average
from paraforge.embeddings.encoders.parameters import AverageParameters
from paraforge.embeddings.inference import neighbours as module
from paraforge.embeddings.inference.neighbours import neighbours
from paraforge.embeddings.trainer.initial import random_table
from paraforge.embeddings.trainer.model import SentenceModel
from paraforge.embeddings.unrolling.model import DecoderModel
from paraforge.embeddings.unrolling.triples import END
from paraforge.products.loading import load_fixed
from tests.embeddings.unrolling.corpus import make_model

WORDS = [f"word{number}" for number in range(50)]


def make(unit: Unit = "word") -> SentenceModel:
    vocabulary = Vocabulary([UNKNOWN, *WORDS])
    table = random_table(len(vocabulary), 6, 1.0, 1)
    return SentenceModel(Average(table, unit), AverageParameters(dimension=6, unit=unit), {unit: vocabulary})


def cosine(model: SentenceModel, first: str, second: str) -> float:
    a, b = model.encode([first, second]).astype(np.float64)
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


@pytest.mark.parametrize("block", [3, 1000])
def test_words(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(module, "_BLOCK", block)
    model = make()
    found = neighbours(model, ["word3", "word7 word8"], count=5)
    for query, best in zip(["word3", "word7 word8"], found, strict=True):
        others = sorted((word for word in WORDS if word != query), key=lambda w: -cosine(model, query, w))
        assert [one.text for one in best] == others[:5]
        assert best[0].cosine == pytest.approx(cosine(model, query, others[0]), abs=1e-6)


def test_sentences_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK", 2)
    lines = ["Word1 word2.", "word1, word2", "word9", "", "word1 word2 word5", "word40"]
    path = tmp_path / "lines.txt"
    path.write_text("\n".join(lines))
    model = make()
    (found,) = neighbours(model, ["word1 word2"], path, count=10)
    # The query itself, but for case and marks, is no neighbour; nor is the second time that a line comes.
    assert sorted(one.text for one in found if one.text) == ["word1 word2 word5", "word40", "word9"]
    assert found[0].text == "word1 word2 word5"


def test_what_cannot_be_found(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no words to choose among"):
        neighbours(make("trigram"), ["dog"])
    with pytest.raises(InputError, match="' ' has no token"):
        neighbours(make(), [" "])


def test_words_of_vectors_and_decoders(tmp_path: Path) -> None:
    """Before training as after it, and whatever was trained."""
    vectors = WordVectors(["dog", "puppy", "car"], np.array([[1, 0], [0.9, 0.1], [0, 1]], np.float32))
    vectors.save(tmp_path / "vectors")
    (found,) = neighbours(load_fixed(tmp_path / "vectors"), ["dog"])
    assert [one.text for one in found] == ["puppy", "car"]
    with pytest.raises(InputError, match="'zebra' has no token that the model knows"):
        neighbours(load_fixed(tmp_path / "vectors"), ["zebra"])
    make_model("bow", "gru", tmp_path / "triples").save(tmp_path / "decoders")
    decoders = DecoderModel.open(f"{tmp_path / 'decoders'}@context")
    query, *others = (word for word in decoders.vocabulary.units if word not in (UNKNOWN, END))
    (found,) = neighbours(decoders, [query], count=len(others) + 5)
    assert {one.text for one in found} == {*others}
    with pytest.raises(InputError, match=r"gives no vectors\. Give a trained model.*modules\.json\)\.$"):
        load_fixed("jaccard")


def test_a_query_of_unknown_words_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    neighbours(make(), ["word1 zebra"])
    assert not caplog.text
    neighbours(make(), ["zebra"])
    assert "'zebra': the model knows nothing in it" in caplog.text
