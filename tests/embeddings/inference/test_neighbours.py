"""Nearest neighbours against a sort of everything; embeddings and similarities of files, however the work is
divided."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from paraforge.base.errors import InputError
from paraforge.base.text.vocabulary import UNKNOWN, Unit, Vocabulary
from paraforge.base.word_vectors.vectors import WordVectors
from paraforge.embeddings.encoders.average import Average
from paraforge.embeddings.encoders.parameters import AverageParameters
from paraforge.embeddings.inference import embed as embed_module
from paraforge.embeddings.inference import neighbours as module
from paraforge.embeddings.inference.embed import embed_file
from paraforge.embeddings.inference.neighbours import cosines_of_files, cosines_of_table, neighbours
from paraforge.embeddings.trainer.initial import random_table
from paraforge.embeddings.trainer.model import SentenceModel
from paraforge.papers.unrolling.model import DecoderModel
from paraforge.papers.unrolling.triples import END
from paraforge.products.loading import load_fixed
from tests.embeddings.trainer.test_model import make_model
from tests.papers.unrolling.corpus import make_model as make_decoders

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
    make_decoders("bow", "gru", tmp_path / "triples").save(tmp_path / "decoders")
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


LEFT = ["a dog", "the dog runs", "", "a"]
RIGHT = ["a dog .", "dog", "a", "the"]


def test_both_forms_give_the_models_cosines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAIRS_AT_ONCE", 3)
    model = make_model()
    expected = model.similarity(LEFT, RIGHT)
    table, left, right = tmp_path / "pairs.tsv", tmp_path / "left", tmp_path / "right"
    table.write_text("".join(f"x\t{b}\t{a}\n" for a, b in zip(LEFT, RIGHT, strict=True)))
    left.write_text("\n".join(LEFT))
    right.write_text("\n".join(RIGHT) + "\n")
    np.testing.assert_allclose(np.concatenate([*cosines_of_table(model, table, (2, 1))]), expected, atol=1e-6)
    np.testing.assert_allclose(np.concatenate([*cosines_of_files(model, left, right)]), expected, atol=1e-6)
    assert expected[2] == 0


def test_unequal_files_are_refused(tmp_path: Path) -> None:
    left, right = tmp_path / "left", tmp_path / "right"
    left.write_text("a\nb\n")
    right.write_text("a\n")
    with pytest.raises(InputError, match="right: has fewer lines"):
        list(cosines_of_files(make_model(), left, right))
    with pytest.raises(InputError, match="no such file"):
        list(cosines_of_table(make_model(), tmp_path / "missing"))


TEXTS = ["A dog.", "", "the dog runs", "unseen words", "a a a"] * 40


@pytest.fixture
def model(tmp_path: Path) -> Path:
    make_model().save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(TEXTS) + "\n")
    return path


def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed_module, "BLOCK_BYTES", 100)


def test_vectors_are_the_models(
    model: Path, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = SentenceModel.open(model).encode(TEXTS)
    for name in ("whole", "blocks"):
        assert embed_file(model, texts, tmp_path / f"{name}.npy", SentenceModel.open) == len(TEXTS)
        assert embed_file(model, texts, tmp_path / f"{name}.parquet", SentenceModel.open) == len(TEXTS)
        vectors = np.load(tmp_path / f"{name}.npy", allow_pickle=False)
        assert vectors.dtype == np.float32
        np.testing.assert_allclose(vectors, expected, rtol=1e-5, atol=1e-7)
        table = pq.read_table(tmp_path / f"{name}.parquet")
        assert table.column("text").to_pylist() == TEXTS
        np.testing.assert_array_equal(np.array(table.column("embedding").to_pylist(), np.float32), vectors)
        small_blocks(monkeypatch)
    assert not vectors[1].any()


@pytest.mark.full
def test_processes_change_nothing(
    model: Path, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_blocks(monkeypatch)
    one, two = tmp_path / "one.parquet", tmp_path / "two.parquet"
    embed_file(model, texts, one, SentenceModel.open)
    embed_file(model, texts, two, SentenceModel.open, workers=2)
    assert one.read_bytes() == two.read_bytes()


def test_a_line_that_is_no_text_ends_all_processes(
    model: Path, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_blocks(monkeypatch)
    texts.write_bytes(texts.read_bytes() + b"caf\xe9\n")
    with pytest.raises(InputError, match=rf"texts.txt:{len(TEXTS) + 1}: not UTF-8"):
        embed_file(model, texts, tmp_path / "bad.npy", SentenceModel.open, workers=2)
    assert not list(tmp_path.glob("*bad*"))


def test_wrong_input(model: Path, texts: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"written as .npy or .parquet"):
        embed_file(model, texts, tmp_path / "vectors.txt", SentenceModel.open)
    with pytest.raises(InputError, match="no such file"):
        embed_file(model, tmp_path / "missing", tmp_path / "vectors.npy", SentenceModel.open)
    (tmp_path / "empty").touch()
    with pytest.raises(InputError, match="empty"):
        embed_file(model, tmp_path / "empty", tmp_path / "vectors.npy", SentenceModel.open)
    with pytest.raises(InputError, match="not a directory of a trained model"):
        embed_file(texts, texts, tmp_path / "vectors.npy", SentenceModel.open)
