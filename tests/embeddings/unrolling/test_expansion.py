"""Vocabulary expansion: a map that is exact where one exists, and a model that reads more words as before."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from paraforge.base.errors import InputError
from paraforge.base.text.vocabulary import Vocabulary
from paraforge.base.word_vectors.vectors import WordVectors
from paraforge.embeddings.unrolling.model import DecoderModel, expand
from paraforge.embeddings.unrolling.parameters import DecodersParameters
from paraforge.embeddings.unrolling.triples import END
from tests.embeddings.unrolling.corpus import KINDS, SIZES, make_network
from tests.here import run_command

OWN = [f"w{number}" for number in range(7)]
NEW = ["new", "newer", "newest"]


def make_model(encoder: str, decoder: str) -> DecoderModel:
    parameters = DecodersParameters.model_validate(
        {"network": {"encoder": encoder, "decoder": decoder, "initial_bound": 0.8, **SIZES}}
    )
    return DecoderModel(
        make_network(encoder, decoder, words=9).float(), parameters, Vocabulary(["<unk>", END, *OWN], "<unk>")
    )


def vectors_of(model: DecoderModel, dimension: int = 5) -> tuple[WordVectors, npt.NDArray[np.float64]]:
    """Vectors of new and of known words, and the matrix that takes the known ones to the model's own."""
    generator = np.random.default_rng(3)
    matrix = generator.standard_normal((dimension, 5))
    table = model.network.words.detach().numpy()
    known = table[model.vocabulary.ids_of(OWN)] @ np.linalg.pinv(matrix)
    new = generator.standard_normal((len(NEW), dimension))
    return WordVectors([*NEW, *OWN], np.concatenate([new, known]).astype(np.float32)), matrix


@pytest.mark.parametrize(("encoder", "decoder"), KINDS)
def test_new_words_are_mapped_and_old_ones_read_as_before(tmp_path: Path, encoder: str, decoder: str) -> None:
    model = make_model(encoder, decoder)
    vectors, matrix = vectors_of(model)
    larger = expand(model, vectors)
    assert larger.vocabulary.units == [*model.vocabulary.units, *NEW]
    words = larger.network.words.detach().numpy()
    np.testing.assert_allclose(words[9:], vectors.vectors[:3] @ matrix, rtol=1e-3, atol=1e-4)
    known = ["w0 w1 w2", "w6", "w3 w3", ""]
    np.testing.assert_allclose(larger.encode(known), model.encode(known), rtol=1e-5, atol=1e-6)
    assert not np.allclose(larger.encode(["w0 new"]), model.encode(["w0 new"]))
    larger.save(tmp_path / "larger")
    opened = DecoderModel.open(tmp_path / "larger")
    texts = ["new w1", "newest newer", "unknown"]
    np.testing.assert_array_equal(opened.encode(texts), larger.encode(texts))
    assert opened.about["expanded"] == {"words": 3, "shared": 7}
    np.testing.assert_array_equal(expand(opened, vectors).encode(texts), larger.encode(texts))
    # Other vectors of words that were mapped before have no part in a second map.
    others = WordVectors([*NEW, *OWN, "last"], np.concatenate([vectors.vectors[::-1], vectors.vectors[:1]]))
    once, twice = (expand(before, others).network.words[-1] for before in (model, larger))
    np.testing.assert_array_equal(once.detach(), twice.detach())


def test_too_few_words_in_common_are_an_error() -> None:
    model = make_model("bow", "gru")
    with pytest.raises(InputError, match="7 words in common, fewer than the vectors' 8 dimensions"):
        expand(model, vectors_of(model, 8)[0])


def test_a_model_of_before_is_opened_and_a_damaged_one_is_refused(tmp_path: Path) -> None:
    model = make_model("bow", "gru")
    model.save(tmp_path / "model")
    path = tmp_path / "model" / "decoders.json"
    content = json.loads(path.read_text())
    del content["predicted"]
    path.write_text(json.dumps(content))
    np.testing.assert_array_equal(DecoderModel.open(tmp_path / "model").encode(["w1"]), model.encode(["w1"]))
    for wrong in (0, 10, "x", 8):
        path.write_text(json.dumps({**content, "predicted": wrong}))
        with pytest.raises(InputError):
            DecoderModel.open(tmp_path / "model")


def test_the_command(tmp_path: Path) -> None:
    model = make_model("bow", "gru")
    model.save(tmp_path / "model")
    vectors, _ = vectors_of(model)
    vectors.write_text(tmp_path / "vectors.txt")
    arguments = ("expand", tmp_path / "model", tmp_path / "vectors.txt", tmp_path / "out")
    assert "3 words more, by a map fitted on 7" in run_command(*arguments).output
    assert "new" in DecoderModel.open(tmp_path / "out").vocabulary
    with pytest.raises(InputError, match="already there"):
        run_command(*arguments)
    run_command(*arguments, "--force")
