"""Trained models on disk, and embedding of text."""

import hashlib
import json
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pytest
import torch

from paraforge.base.errors import ConfigurationError, InputError
from paraforge.base.text.vocabulary import UNKNOWN, Vocabulary
from paraforge.embeddings.encoders.encoder import build_encoder
from paraforge.embeddings.encoders.parameters import (
    AverageParameters,
    CombinationParameters,
    LstmParameters,
    VectorParameters,
)
from paraforge.embeddings.encoders.recurrent import IdentityRnnParameters
from paraforge.embeddings.trainer import model as model_module
from paraforge.embeddings.trainer.initial import random_table
from paraforge.embeddings.trainer.model import SentenceModel

TEXTS = ["A dog.", "", "the dog runs", "unseen words", "a a a"]


def make_model(
    new_words: Sequence[str] = (), unknown_words: Literal["own", "shared"] = "shared"
) -> SentenceModel:
    """new_words: in the vocabulary behind the others, with the vectors that unknown words get."""
    known = [UNKNOWN, "a", "dog", ".", "the", "runs"]
    vocabularies = {
        "word": Vocabulary([*known, *new_words]),
        "trigram": Vocabulary([UNKNOWN, " a ", "dog", "og ", " do"]),
    }
    parameters = CombinationParameters(
        kind="concatenation",
        parts=[
            AverageParameters(dimension=4),
            AverageParameters(dimension=3, unit="trigram"),
            LstmParameters(kind="blstm", dimension=4, output_dimension=2),
        ],
    )

    def table(part: VectorParameters, number: int) -> torch.Tensor:
        size = len(known if part.unit == "word" else vocabularies["trigram"])
        rows = random_table(size, part.dimension, part.initial_scale, number)
        if part.unit != "word":
            return rows
        length = 1.2 * rows[-model_module.RARE :].norm(dim=1).mean()
        vectors = dict(zip(known, rows, strict=True))
        new = [_of_letters(word, part.dimension) * length + _of_parts(word, vectors) for word in new_words]
        return torch.cat([rows, *(row[None] for row in new)])

    encoder = build_encoder(parameters, table, 3)
    return SentenceModel(encoder, parameters, vocabularies, unknown_words=unknown_words)


def _by_hash(part: str, dimension: int) -> torch.Tensor:
    """The first bits of the part's SHAKE128 as signs."""
    bits = int.from_bytes(hashlib.shake_128(part.encode()).digest(8), "big")
    return torch.tensor([1.0 if bits >> (63 - place) & 1 else -1.0 for place in range(dimension)])


def _of_letters(word: str, dimension: int) -> torch.Tensor:
    """Of length 1: of the trigrams between two spaces, and twice of the word after a tab."""
    between = f" {word} "
    parts = [between[place : place + 3] for place in range(len(word))] + 2 * [f"\t{word}"]
    vector = torch.stack([_by_hash(part, dimension) for part in parts]).sum(0)
    return vector / max(float(vector.norm()), 1e-9)


def _of_parts(word: str, vectors: dict[str, torch.Tensor]) -> torch.Tensor:
    """Of the known words between hyphens."""
    nothing = torch.zeros_like(vectors[UNKNOWN])
    return sum((vectors.get(part, nothing) for part in word.split("-") if part != UNKNOWN), nothing)


UNSEEN = ["Žižka met unseen words.", "a dog", "Žižka", "", "UUUNKKK", "A dog-runs, the-Žižka and a - -dog-x"]
UNSEEN_WORDS = ["žižka", "met", "unseen", "words", "uuunkkk", "dog-runs", ",", "the-žižka", "and", "-"]
UNSEEN_WORDS += ["-dog-x"]


@pytest.mark.parametrize("rare", [2, 1000])
def test_hashed_unknown_words_are_possible_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rare: int
) -> None:
    """Unknown words behave as if they were in the vocabulary, in averages and BLSTMs, beside trigrams, and in
    any batch.
    """
    monkeypatch.setattr(model_module, "RARE", rare)
    model, expected = make_model(unknown_words="own"), make_model(new_words=UNSEEN_WORDS).encode(UNSEEN)
    # The trigrams of the oracle know no more than the model's.
    np.testing.assert_allclose(model.encode(UNSEEN), expected, rtol=1e-5, atol=1e-7)
    for text, vector in zip(UNSEEN, expected, strict=True):
        np.testing.assert_allclose(model.encode(text), vector, rtol=1e-5, atol=1e-7)
    assert model.similarity(["žižka"], ["words"])[0] < make_model().similarity(["žižka"], ["words"])[0]
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(SentenceModel.open(tmp_path / "model").encode(UNSEEN), model.encode(UNSEEN))


def test_saved_model_gives_same_vectors(tmp_path: Path) -> None:
    model = make_model()
    vectors = model.encode(TEXTS)
    assert vectors.shape == (5, 9)
    assert vectors.dtype == np.float32
    model.save(tmp_path / "model", {"score": 1.5})
    opened = SentenceModel.open(tmp_path / "model")
    assert np.array_equal(opened.encode(TEXTS), vectors)
    assert np.array_equal(opened.encode(pa.chunked_array([TEXTS[:2], TEXTS[2:]])), vectors)
    assert json.loads((tmp_path / "model" / "encoder.json").read_text())["about"] == {"score": 1.5}
    model.save(tmp_path / "model")  # replaces
    assert not list(tmp_path.glob(".*"))


def test_embedding_matches_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_model()
    table = model.encoder.get_parameter("parts.0.table").detach().numpy()
    vectors = model.encode(TEXTS)[:, :4]
    np.testing.assert_allclose(vectors[0], (table[1] + table[2] + table[3]) / 3, rtol=1e-6)
    np.testing.assert_allclose(vectors[3], table[0], rtol=1e-6)
    assert (model.encode(TEXTS)[1] == 0).all()
    monkeypatch.setattr(model_module, "BATCH_TEXTS", 2)
    np.testing.assert_allclose(model.encode(TEXTS), make_model().encode(TEXTS), rtol=1e-5, atol=1e-7)
    assert model.encode([]).shape == (0, 9)
    similarity = model.similarity(["a dog", ""], ["a dog", "dog"])
    assert similarity[0] == pytest.approx(1)
    assert similarity[1] == 0


def test_long_texts_have_finite_vectors(caplog: pytest.LogCaptureFixture) -> None:
    """An identity RNN whose matrix has grown doubles its state with each word."""
    parameters = IdentityRnnParameters(dimension=2)
    encoder = build_encoder(parameters, lambda part, number: torch.ones(2, part.dimension), 1)
    with torch.no_grad():
        encoder.get_parameter("state_weight").mul_(2)
    model = SentenceModel(encoder, parameters, {"word": Vocabulary([UNKNOWN, "a"])})
    vectors = model.encode(["a", "a " * 1_000, "", "a a"])
    np.testing.assert_allclose(vectors, [[1, 1], [0, 0], [0, 0], [1.5, 1.5]])
    assert "1 texts are too long" in caplog.text


def test_invalid_model_directories_are_error(tmp_path: Path) -> None:
    path = tmp_path / "model"
    make_model().save(path)
    with pytest.raises(InputError, match="not a directory of a trained model"):
        SentenceModel.open(tmp_path)  # as of decoders
    with pytest.raises(ConfigurationError, match="tpu"):
        SentenceModel.open(path, "tpu")
    (tmp_path / "model.pt").write_bytes(pickle.dumps(Path.home))
    with pytest.raises(InputError, match=r"not a directory of a trained model.*pickles"):
        SentenceModel.open(tmp_path / "model.pt")
    Vocabulary([UNKNOWN, "a"]).save(path / "word.vocabulary.json")
    with pytest.raises(InputError, match=r"2 units, encoder.json says 6"):
        SentenceModel.open(path)
    model = make_model()
    with torch.no_grad():
        model.encoder.get_parameter("parts.0.table")[1, 1] = torch.nan
    model.save(path)
    with pytest.raises(InputError, match="NaN"):
        SentenceModel.open(path)


def test_invalid_model_description_is_error(tmp_path: Path) -> None:
    make_model().save(tmp_path)
    description = json.loads((tmp_path / "encoder.json").read_text())
    first, *others = description["architecture"]["parts"]
    wider = {**description["architecture"], "parts": [{**first, "dimension": 5}, *others]}
    for changes, message in (
        ({"architecture": wider}, "another architecture"),
        ({"architecture": {"kind": "transformer"}}, "damaged"),
        *(({"architecture": {"kind": kind, "dimension": 3, "output_dimension": 10**size}},
           "another architecture") for kind in ("rnn", "lstm") for size in (4, 8)),
        ({"format": 99}, "format 99.*Upgrade"),
        ({"unknown_words": "none"}, "damaged.*unknown_words 'none'"),
    ):  # fmt: skip
        (tmp_path / "encoder.json").write_text(json.dumps({**description, **changes}))
        with pytest.raises(InputError, match=message):
            SentenceModel.open(tmp_path)
    (tmp_path / "encoder.json").write_text("[" * 200_000)
    with pytest.raises(InputError, match=r"encoder.json: the JSON is nested too deeply"):
        SentenceModel.open(tmp_path)
