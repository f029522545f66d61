"""Exports are what mteb evaluates: SentenceTransformers as mteb asks them, and by mteb where installed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paraforge.embeddings.inference.export import export_model
from paraforge.embeddings.trainer.model import SentenceModel
from tests.embeddings.inference.test_export import TEXTS, word_model
from tests.embeddings.trainer.test_model import make_model


@pytest.fixture(params=["words", "module of ours"])
def exported(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[SentenceModel, Any]:
    """A model, and its export opened by the library."""
    library = pytest.importorskip("sentence_transformers")
    if request.param == "words":
        model = word_model(tmp_path / "model")
    else:
        model = make_model(unknown_words="own")
        model.save(tmp_path / "model")
    export_model(tmp_path / "model", tmp_path / "exported", "sentence-transformers")
    place = str(tmp_path / "exported")
    return model, library.SentenceTransformer(place, device="cpu", trust_remote_code=True)


@pytest.mark.full
def test_what_mteb_asks_of_sentence_transformers(exported: tuple[SentenceModel, Any]) -> None:
    """Lists of texts in small batches, with and without a prompt; similarities of all and of pairs."""
    model, opened = exported
    expected = model.encode(TEXTS)
    options = {"prompt": None, "batch_size": 2, "show_progress_bar": False}
    vectors = opened.encode(TEXTS, **options)
    assert vectors.shape == (len(TEXTS), model.dimension) and vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
    np.testing.assert_allclose(opened.encode(TEXTS, convert_to_tensor=True).numpy(), expected, atol=1e-6)
    prompted = opened.encode(TEXTS, **(options | {"prompt": "a dog "}))
    np.testing.assert_allclose(prompted, model.encode([f"a dog {text}" for text in TEXTS]), atol=1e-6)
    assert opened.get_sentence_embedding_dimension() == model.dimension
    pairs = [model.similarity([left], [right])[0] for left, right in zip(TEXTS[:3], TEXTS[3:], strict=True)]
    np.testing.assert_allclose(opened.similarity_pairwise(vectors[:3], vectors[3:]), pairs, atol=1e-6)
    np.testing.assert_allclose(opened.similarity(vectors[:3], vectors[3:]).diagonal(), pairs, atol=1e-6)
