"""Trained networks on disk, their vectors, and further words."""

import json
import shutil
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from experiments.programs import app
from paraforge.base.errors import ConfigurationError, InputError
from paraforge.base.text.vocabulary import UNKNOWN, Vocabulary
from paraforge.base.word_vectors.vectors import WordVectors
from paraforge.papers.unrolling.model import DecoderModel, expand
from paraforge.papers.unrolling.parameters import RepresentationParameters, is_decoder_model, split_name
from paraforge.papers.unrolling.triples import END
from tests.here import run_command
from tests.papers.unrolling import oracle
from tests.papers.unrolling.corpus import make_model, make_network

TEXTS = ["w1 W2", "", "w3 w3 unheard w4 w1 w2 w5", " ", "w1", "never heard"]


@pytest.mark.parametrize(("encoder", "decoder"), [("bow", "gru"), ("gru", "bow")])
def test_saved_model_gives_same_vectors(tmp_path: Path, encoder: str, decoder: str) -> None:
    model = make_model(encoder, decoder, tmp_path / "store")
    vectors = model.encode(TEXTS)
    assert vectors.shape == (6, model.dimension)
    assert vectors.dtype == np.float32
    assert vectors.any(1).tolist() == [True, False, True, False, True, True]
    model.about["score"] = 1.5
    model.save(tmp_path / "model")
    opened = DecoderModel.open(tmp_path / "model")
    assert np.array_equal(opened.encode(TEXTS), vectors)
    assert opened.about == {"score": 1.5}


@pytest.mark.parametrize("encoder", ["bow", "gru"])
def test_unrolled_vectors_do_not_depend_on_other_texts(tmp_path: Path, encoder: str) -> None:
    model = make_model(encoder, "gru", tmp_path / "store")
    vectors = model.encode(TEXTS)
    for number, text in enumerate(TEXTS):
        np.testing.assert_allclose(model.encode(text), vectors[number], rtol=1e-4, atol=1e-6)


def test_unrolled_vectors_cover_words_and_end(tmp_path: Path) -> None:
    model = make_model("gru", "gru", tmp_path / "store")
    ids = model.vocabulary.id_of
    long = ["w1", *["w2", "w3"] * 14]
    for text, words in (
        ("w1 W2", ["w1", "w2"]),
        ("w1 Who? w3", ["w1", UNKNOWN, UNKNOWN, "w3"]),
        (f"{' '.join(long)} w4 w5", long),  # cut to 30, the end included
    ):
        sentence = [*map(ids, words), ids(END)]
        expected = np.reshape(oracle.unroll(model.network, sentence, 3), -1)
        np.testing.assert_allclose(model.encode(text), expected, rtol=1e-4, atol=1e-6)


def test_unrolled_similarity_is_dot_product(tmp_path: Path) -> None:
    model = make_model("bow", "gru", tmp_path / "store")
    left, right = model.encode(TEXTS[:3]), model.encode(TEXTS[2:5])
    np.testing.assert_allclose(model.similarity(TEXTS[:3], TEXTS[2:5]), (left * right).sum(1), rtol=1e-5)
    cosine = model.read_by(RepresentationParameters(similarity="cosine")).similarity(["w1", ""], ["w1", "w1"])
    assert cosine.tolist() == pytest.approx([1, 0])
    with pytest.raises(ValueError, match="two lists of the same length"):
        model.similarity(["w1"], ["w1", "w2"])


def test_model_name_selects_representation(tmp_path: Path) -> None:
    make_model("bow", "gru", tmp_path / "store").save(tmp_path / "model")
    make_model("bow", "bow", tmp_path / "store").save(tmp_path / "bow")
    model = tmp_path / "model"
    for text, kind, steps, similarity, dimension in (
        ("", "unrolled", 3, "dot", 30),
        ("@context", "context", 3, "dot", 5),
        ("@context:cosine", "context", 3, "cosine", 5),
        ("@unrolled:30", "unrolled", 30, "dot", 300),
        ("@mean:2:cosine", "mean", 2, "cosine", 5),
        ("@unrolled", "unrolled", 3, "dot", 30),
    ):
        name = f"{model}{text}"
        opened = DecoderModel.open(name)
        found = opened.representation
        assert (found.kind, found.steps, found.similarity) == (kind, steps, similarity)
        assert opened.dimension == opened.encode("w1").size == dimension
        assert is_decoder_model(name)
        assert split_name(f"x@{found}") == (Path("x"), found)
    for wrong in ("nothing", "unrolled:0", "unrolled:31", "unrolled:99", "unrolled:100", "unrolled:-1",
                  "context:3", "unrolled:3:x", ""):  # fmt: skip
        with pytest.raises(InputError, match=r"no representation .*unrolled:N"):
            DecoderModel.open(f"{model}@{wrong}")
    with pytest.raises(InputError, match="no states to unroll"):
        DecoderModel.open(f"{tmp_path}/bow@unrolled:2")
    assert DecoderModel.open(tmp_path / "bow").representation.kind == "context"
    with pytest.raises(ConfigurationError, match="device"):
        DecoderModel.open(model, "tpu")
    # A directory may have the sign in its own name.
    shutil.copytree(model, tmp_path / "a@b")
    assert DecoderModel.open(tmp_path / "a@b").dimension == 30
    assert DecoderModel.open(f"{tmp_path}/a@b@unrolled:1").dimension == 10
    assert not is_decoder_model(tmp_path / "store")


OWN = [f"w{number}" for number in range(7)]
NEW = ["new", "newer", "newest"]


def small_model(encoder: str, decoder: str) -> DecoderModel:
    network = make_network(encoder, decoder, words=9).float()
    return DecoderModel.of_network(network, Vocabulary(["<unk>", END, *OWN], "<unk>"))


def vectors_of(model: DecoderModel, dimension: int = 5) -> tuple[WordVectors, npt.NDArray[np.float64]]:
    """Vectors of new and of known words, and the matrix that takes the known ones to the model's own."""
    generator = np.random.default_rng(3)
    matrix = generator.standard_normal((dimension, 5))
    table = model.network.words.detach().numpy()
    known = table[model.vocabulary.ids_of(OWN)] @ np.linalg.pinv(matrix)
    new = generator.standard_normal((len(NEW), dimension))
    return WordVectors([*NEW, *OWN], np.concatenate([new, known]).astype(np.float32)), matrix


@pytest.mark.parametrize(("encoder", "decoder"), [("bow", "gru"), ("gru", "bow")])
def test_new_words_are_mapped_and_old_unchanged(tmp_path: Path, encoder: str, decoder: str) -> None:
    model = small_model(encoder, decoder)
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
    read_by = RepresentationParameters(kind="context", similarity="cosine")
    assert expand(model.read_by(read_by), vectors).representation == read_by
    np.testing.assert_array_equal(expand(opened, vectors).encode(texts), larger.encode(texts))
    # Other vectors of words that were mapped before have no part in a second map.
    others = WordVectors([*NEW, *OWN, "last"], np.concatenate([vectors.vectors[::-1], vectors.vectors[:1]]))
    once, twice = (expand(before, others).network.words[-1] for before in (model, larger))
    np.testing.assert_array_equal(once.detach(), twice.detach())


def test_too_few_common_words_are_error() -> None:
    model = small_model("bow", "gru")
    expand(model, vectors_of(model, 7)[0])
    with pytest.raises(InputError, match="7 words in common, but the 8 dimensions"):
        expand(model, vectors_of(model, 8)[0])


def test_damaged_unrolling_model_is_error(tmp_path: Path) -> None:
    model = small_model("bow", "gru")
    model.save(tmp_path / "model")
    path = tmp_path / "model" / "decoders.json"
    content = json.loads(path.read_text())
    for wrong in (0, 10, "x", 8, 1 << 64):
        architecture = {**content["architecture"], "predicted": wrong}
        path.write_text(json.dumps({**content, "architecture": architecture}))
        with pytest.raises(InputError, match=r"damaged|another architecture"):
            DecoderModel.open(tmp_path / "model")
    small_model("gru", "bow").save(tmp_path / "model")
    content = json.loads(path.read_text())
    path.write_text(
        json.dumps({**content, "architecture": {**content["architecture"], "representation": {}}})
    )
    with pytest.raises(InputError, match="no states to unroll"):
        DecoderModel.open(tmp_path / "model")
    model.save(tmp_path / "model")
    Vocabulary(["<unk>", "end", *OWN], "<unk>").save(tmp_path / "model" / "word.vocabulary.json")
    with pytest.raises(InputError, match="no end-of-sentence symbol"):
        DecoderModel.open(tmp_path / "model")
    (tmp_path / "model" / "decoders.json").unlink()
    with pytest.raises(InputError, match="not a directory of a trained model"):
        DecoderModel.open(tmp_path / "model")


def test_the_command(tmp_path: Path) -> None:
    model = small_model("bow", "gru")
    model.save(tmp_path / "model")
    vectors, _ = vectors_of(model)
    vectors.write_text(tmp_path / "vectors.txt")
    arguments = ("expand", tmp_path / "model", tmp_path / "vectors.txt", tmp_path / "out")
    assert "3 words more, by a map fitted on 7" in run_command(*arguments, app=app).output
    assert "new" in DecoderModel.open(tmp_path / "out").vocabulary
