"""Kinds of models are recognized by their files."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import paraforge
from paraforge.base.errors import InputError
from paraforge.base.text.vocabulary import Vocabulary
from paraforge.corpus.scoring import general
from paraforge.embeddings.encoders.averages import Average
from paraforge.embeddings.encoders.parameters import AverageParameters
from paraforge.embeddings.evaluation.averages import WordAverage, save_sif
from paraforge.embeddings.trainer.initial import random_table
from paraforge.embeddings.trainer.model import SentenceModel
from paraforge.products.loading import open_model
from tests import here
from tests.embeddings.evaluation.test_averages import TEXTS, WEIGHTING, WORDS, table


def save_word_model(directory: Path, unit: str = "word") -> SentenceModel:
    vectors = table(True)
    parameters = AverageParameters(dimension=5, unit="word" if unit == "word" else "trigram")
    vocabulary = Vocabulary(vectors.words)
    encoder = Average(random_table(len(vocabulary), 5, 1.0, 1), unit)
    model = SentenceModel(encoder, parameters, {unit: vocabulary})
    model.save(directory)
    return model


def test_built_in_scorer_compares_without_vectors() -> None:
    for name in ("general", str(general.DIRECTORY)):
        opened = open_model(name)
        (same, other) = opened.model.similarity(["A dog runs."] * 2, ["A dog is running.", "It rains."])
        assert same > other + 0.3
        with pytest.raises(InputError, match="gives no vectors"):
            paraforge.load(name)


def test_trained_model_is_loaded(tmp_path: Path) -> None:
    trained = save_word_model(tmp_path / "model")
    opened = open_model(str(tmp_path / "model"))
    assert opened.kind == "trained average, 5 dimensions"
    assert isinstance(opened.model, SentenceModel)
    assert np.array_equal(opened.model.encode(TEXTS), trained.encode(TEXTS))
    save_word_model(tmp_path / "trigrams", "trigram")
    assert open_model(str(tmp_path / "trigrams")).words is None


def test_models_give_vectors_and_similarities(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One function takes lists, columns and single texts. A text without a vector has similarity 0."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    save_word_model(tmp_path / "trained")
    table(False).save(tmp_path / "table")
    table(False).write_text(tmp_path / "vectors.txt")
    average = WordAverage(table(False), WEIGHTING)
    save_sif(WordAverage(table(False), WEIGHTING, of_each_set=1), tmp_path / "each")
    save_sif(average.fitted_to(TEXTS), tmp_path / "fitted")
    kinds = {
        "trained": "trained average, 5 dimensions",
        "table": "plain average of word vectors",
        "vectors.txt": "plain average of word vectors",
        "each": "of each set",
        "fitted": "average weighted by sif, 1 fitted component(s) removed",
    }
    for name, kind in kinds.items():
        opened = open_model(str(tmp_path / name))
        assert kind in opened.kind and opened.words is not None
        assert opened.words.words[: len(WORDS)] == WORDS or name == "trained"
        model = paraforge.load(tmp_path / name)
        vectors = model.encode(TEXTS)
        assert vectors.shape == (len(TEXTS), model.dimension)
        assert vectors.dtype == np.float32
        if "plain" in kind:
            assert np.array_equal(vectors, WordAverage(table(False)).encode(TEXTS))
        assert model.encode(TEXTS[0]).shape == (model.dimension,)
        column = pa.chunked_array([TEXTS[:2], TEXTS[2:]])
        assert np.array_equal(model.encode(column), vectors)
        same = model.similarity(TEXTS, TEXTS)
        assert same.shape == (len(TEXTS),)
        np.testing.assert_allclose(model.similarity(column, column), same, rtol=1e-6)
        assert model.similarity(["", TEXTS[0]], [TEXTS[0], TEXTS[0]])[0] == 0
        for first, second in (
            (TEXTS[:1], TEXTS),
            (TEXTS, TEXTS[:1]),
            (TEXTS[0], TEXTS[0]),
            (TEXTS[:2], TEXTS),
        ):
            with pytest.raises(ValueError, match="two lists of the same length"):
                model.similarity(first, second)


def test_adapting_model_is_not_a_fixed_file(tmp_path: Path) -> None:
    """Each block of lines would get vectors of a different model."""
    save_sif(WordAverage(table(True), WEIGHTING, of_each_set=1), tmp_path / "each")
    (tmp_path / "lines.tsv").write_text("the dog\ta cat\n")
    with pytest.raises(InputError, match="was saved without a common component"):
        here.run_command("embed", tmp_path / "each", tmp_path / "lines.tsv", tmp_path / "o.npy")


def test_invalid_model_directories(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such model"):
        open_model(str(tmp_path / "missing"))
    with pytest.raises(InputError, match="not a model"):
        open_model(str(tmp_path))
    (tmp_path / "model.pt").write_bytes(b"\x80\x04\x95\x10\x00\x00\x00")
    with pytest.raises(InputError, match=r"model\.pt: pickles are never loaded"):
        open_model(str(tmp_path / "model.pt"))
    (tmp_path / "model.pt").rename(tmp_path / "model.PKL")
    with pytest.raises(InputError, match="pickles are never loaded"):
        open_model(str(tmp_path / "model.PKL"))
