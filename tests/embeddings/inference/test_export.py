"""Exported models give the same vectors in other libraries."""

import json
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pytest
import torch

import paraforge
from paraforge.base.errors import InputError
from paraforge.base.files import check_digests
from paraforge.base.text.vocabulary import UNKNOWN, WORD_UNITS, Vocabulary
from paraforge.base.word_vectors.vectors import WordVectors
from paraforge.embeddings.encoders.averages import Average
from paraforge.embeddings.encoders.encoder import build_encoder
from paraforge.embeddings.encoders.parameters import (
    AverageParameters,
    CombinationParameters,
    LstmParameters,
    VectorParameters,
)
from paraforge.embeddings.inference.export import describe_encoder, export_model
from paraforge.embeddings.trainer.initial import random_table
from paraforge.embeddings.trainer.model import SentenceModel
from tests.embeddings.trainer.test_model import make_model
from tests.here import run_command

TEXTS = ["A dog.", "", "The dog's bone, isn't it?", "unseen words", "a a a", "Mr. U.S. dog..."]
ABOUT = {
    "signature": "pairs:9|data:0|v:1",
    "pairs": 9,
    "best_score": 61.25,
    "years": {"2012": {"pearson": 66.2, "spearman": None, "pairs": 3}},
    "leakage": {"pairs": 10, "leaked": 1, "dropped": 1},
    "training": {"epochs": 5},
}


def word_model(path: Path, unit: Literal["word", "bare_word"] = "word") -> SentenceModel:
    vocabulary = Vocabulary([UNKNOWN, "a", "dog", "'s", ".", "bone", "n't", "mr.", "u.s.", "..."])
    table = random_table(len(vocabulary), 4, 1.0, 1)
    parameters = AverageParameters(dimension=4, unit=unit)
    model = SentenceModel(Average(table, unit), parameters, {unit: vocabulary}, about=ABOUT)
    model.save(path)
    return model


@pytest.mark.parametrize(("unit", "known", "said"), [("word", "shared", False), ("bare_word", "own", True)])
def test_exported_tokenizer_matches_project(
    tmp_path: Path, unit: Literal["word", "bare_word"], known: Literal["shared", "own"], said: bool
) -> None:
    """The card says if unknown words share a vector."""
    tokenizers = pytest.importorskip("tokenizers")
    model = word_model(tmp_path / "model", unit)
    model.unknown_words = known
    model.save(tmp_path / "model")
    export_model(tmp_path / "model", tmp_path / "exported", "sentence-transformers")
    (written,) = (tmp_path / "exported").glob("*/tokenizer.json")
    encoded = tokenizers.Tokenizer.from_file(str(written)).encode_batch(TEXTS)
    assert [one for text in encoded for one in text.ids] == model.batch(pa.array(TEXTS))[unit].ids.tolist()
    card = (tmp_path / "exported" / "README.md").read_text(encoding="utf-8")
    assert ("share one vector; scores are of a model where each has its own" in card) == said


@pytest.mark.parametrize("unit", WORD_UNITS)
def test_exported_word_similarity_skips_unknown_words(
    tmp_path: Path, unit: Literal["word", "bare_word"]
) -> None:
    word_model(tmp_path / "model", unit)
    judged, scores = tmp_path / "judged.tsv", tmp_path / "scores.json"
    judged.write_text("word1\tword2\tscore\na\tdog\t7\na\tbone\t3\ndog\tgnu\t1\ngnu\tyak\t9\n")
    run_command("evaluate", tmp_path / "model", "--similarity", judged, "--output", scores)
    found = json.loads(scores.read_text())["words"]["judged"]
    assert (found["found"], found["pairs"]) == (2, 4)


@pytest.fixture(params=["addition", "nested"])
def several(request: pytest.FixtureRequest, tmp_path: Path) -> SentenceModel:
    """Averages of words, added or side by side, in the directory ``model``."""
    vocabulary = word_model(tmp_path / "one").vocabularies["word"]
    word = {"kind": "average", "dimension": 4}
    content: dict[str, object] = {"kind": "addition", "parts": [word, word, word]}
    if request.param == "nested":
        inner = {"kind": "addition", "parts": [word, word]}
        content = {"kind": "concatenation", "parts": [inner, {"kind": "average", "dimension": 3}]}
    parameters = CombinationParameters.model_validate(content)
    encoder = build_encoder(
        parameters, lambda part, number: random_table(len(vocabulary), part.dimension, 1.0, number), 1
    )
    model = SentenceModel(encoder, parameters, {"word": vocabulary}, about=ABOUT)
    model.save(tmp_path / "model")
    return model


def test_combined_word_models_export_one_table(tmp_path: Path, several: SentenceModel) -> None:
    export_model(tmp_path / "model", tmp_path / "vectors.txt", "word2vec")
    vectors = WordVectors.from_text(tmp_path / "vectors.txt")
    words = ["a", "dog", "bone"]
    rows = vectors.vectors[vectors.known_rows(words)]
    np.testing.assert_allclose(rows, several.encode(words), atol=1e-5)


def check_static_embedding(tmp_path: Path, model: SentenceModel) -> None:
    """The exported model gives the same vectors, and needs no module of ours."""
    library = pytest.importorskip("sentence_transformers")
    export_model(tmp_path / "model", tmp_path / "exported", "sentence-transformers")
    loaded = library.SentenceTransformer(str(tmp_path / "exported"), device="cpu")
    np.testing.assert_allclose(loaded.encode(TEXTS), model.encode(TEXTS), atol=1e-6)
    types = [module["type"] for module in json.loads((tmp_path / "exported" / "modules.json").read_text())]
    assert types == ["sentence_transformers.models.StaticEmbedding"]


@pytest.mark.full
@pytest.mark.parametrize("unit", ["word", "bare_word"])
def test_exported_word_model_needs_only_library(tmp_path: Path, unit: Literal["word", "bare_word"]) -> None:
    check_static_embedding(tmp_path, word_model(tmp_path / "model", unit))


@pytest.mark.full
def test_exported_combined_word_models_need_only_library(tmp_path: Path, several: SentenceModel) -> None:
    check_static_embedding(tmp_path, several)


@pytest.mark.parametrize("unknown_words", ["own", "shared"])
def test_other_encoders_export_own_module(tmp_path: Path, unknown_words: Literal["own", "shared"]) -> None:
    library = pytest.importorskip("sentence_transformers")
    make_model(unknown_words=unknown_words).save(tmp_path / "model", ABOUT)
    export_model(tmp_path / "model", tmp_path / "exported", "sentence-transformers")
    loaded = library.SentenceTransformer(str(tmp_path / "exported"), device="cpu", trust_remote_code=True)
    expected = SentenceModel.open(tmp_path / "model").encode(TEXTS)
    np.testing.assert_allclose(loaded.encode(TEXTS), expected, atol=1e-6)
    np.testing.assert_allclose(loaded.encode(TEXTS, batch_size=2, prompt=None), expected, atol=1e-6)
    prompted = loaded.encode(TEXTS, prompt="a dog ")  # as mteb asks
    np.testing.assert_allclose(prompted, loaded.encode([f"a dog {text}" for text in TEXTS]), atol=1e-6)
    # Each version of the library asks by another of the two names.
    assert loaded[0].get_sentence_embedding_dimension() == expected.shape[1]
    assert loaded[0].get_embedding_dimension() == expected.shape[1]
    with pytest.raises(InputError, match="never run") as caught:
        paraforge.load(tmp_path / "exported")
    assert "encoder.json" in (caught.value.remedy or "")
    (inside,) = (tmp_path / "exported").glob("*/encoder.json")
    np.testing.assert_array_equal(paraforge.load(inside.parent).encode(TEXTS), expected)
    assert loaded.similarity(expected[:1], expected[:1]).item() == pytest.approx(1)
    with torch.no_grad():
        next(loaded[0].encoder.parameters()).mul_(2)
    for name in ("again", "exported"):  # the last one is that which was loaded
        loaded.save_pretrained(str(tmp_path / name))
        again = library.SentenceTransformer(str(tmp_path / name), device="cpu", trust_remote_code=True)
        np.testing.assert_array_equal(again.encode(TEXTS), loaded.encode(TEXTS))
        (inside,) = (tmp_path / name).glob("*/encoder.json")
        assert not check_digests(inside.parent)


@pytest.mark.full
def test_unknown_words_share_vector_without_hashing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    library = pytest.importorskip("sentence_transformers")
    model = word_model(tmp_path / "model")
    assert not caplog.records
    expected = model.encode(TEXTS)
    model.unknown_words = "own"
    model.save(tmp_path / "model")
    export_model(tmp_path / "model", tmp_path / "exported", "sentence-transformers")
    assert "share one vector" in caplog.text
    loaded = library.SentenceTransformer(str(tmp_path / "exported"), device="cpu")
    np.testing.assert_allclose(loaded.encode(TEXTS), expected, atol=1e-6)


def test_exported_word2vec_reads_back(tmp_path: Path) -> None:
    model = word_model(tmp_path / "model")
    export_model(tmp_path / "model", tmp_path / "vectors.txt", "word2vec")
    assert (tmp_path / "vectors.txt").read_text(encoding="utf-8").startswith("10 4\nUUUNKKK ")
    vectors = WordVectors.from_text(tmp_path / "vectors.txt")
    assert vectors.words == model.vocabularies["word"].units
    np.testing.assert_allclose(vectors.vectors, model.encoder.get_parameter("table").detach(), rtol=1e-6)
    make_model().save(tmp_path / "mixed")
    with pytest.raises(InputError, match="this model has 2 tables of words"):
        export_model(tmp_path / "mixed", tmp_path / "vectors.txt", "word2vec")


@pytest.mark.parametrize(
    ("parameters", "line"),
    [
        (AverageParameters(unit="trigram"), "average of trigram 300"),
        (LstmParameters(kind="blstm", output_dimension=150), "blstm of word 300 to 150"),
        (LstmParameters(kind="lstm", pooling="max"), "lstm of word 300 to 300 (pooling max)"),
        (
            LstmParameters(kind="blstm", pooling="max", directions="concatenation"),
            "blstm of word 300 to 300 (pooling max, directions concatenation)",
        ),
    ],
)
def test_model_card_describes_encoder(parameters: VectorParameters, line: str) -> None:
    assert describe_encoder(parameters) == line


def test_export_writes_model_card(tmp_path: Path) -> None:
    word_model(tmp_path / "model")
    export_model(tmp_path / "model", tmp_path / "exported", "sentence-transformers")
    card = (tmp_path / "exported" / "README.md").read_text(encoding="utf-8")
    for part in (
        "library_name: sentence-transformers", "average of word 4",
        "`pairs:9|data:0|v:1`", "| training pairs | 9 |", "61.25",
        "| 2012 | 66.20 | - |",
        "Of 10 pairs 1 have a sentence of a development set, a test set or a held-out split: left out.",
        "| `epochs` | 5 |",
    ):  # fmt: skip
        assert part in card
