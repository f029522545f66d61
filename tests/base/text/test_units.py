"""Units of text: character trigrams, SentencePiece pieces, and their vocabularies."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraforge.base.errors import InputError
from paraforge.base.text.tokens import tokenize
from paraforge.base.text.units import Pieces, Units, make_units
from paraforge.base.text.vocabulary import UNKNOWN, Vocabulary, most_frequent


def slices(tokens: list[str]) -> list[str]:
    padded = f" {' '.join(tokens)} " if tokens else ""
    return [padded[start : start + 3] for start in range(len(padded) - 2)]


def test_trigrams_by_hand() -> None:
    (column,) = Units("trigram").cut(pa.array(["A dog", "I", "", None, "éŽ"]))
    assert column.rows() == [[" a ", "a d", " do", "dog", "og "], [" i "], [], [], [" éž", "éž "]]


@given(st.lists(st.text(st.sampled_from("ab ,.'1é😀\u2028_-"), max_size=12), max_size=6))
def test_units_of_any_text(texts: list[str]) -> None:
    """Bare units come from tokens with a letter or digit. After its trigrams, a word is listed twice."""
    half = len(texts) // 2
    parts = [pa.array(part, pa.string()) for part in (texts[:half], texts[half:])]
    rows = [tokenize(text) for text in texts]
    bare = [[token for token in row if any(map(str.isalnum, token))] for row in rows]
    expected = {
        "word": rows,
        "bare_word": bare,
        "trigram": [slices(row) for row in rows],
        "bare_trigram": [slices(row) for row in bare],
        "word_trigram": [
            [part for token in row for part in (*slices([token]), *[f"\t{token}"] * 2)] for row in rows
        ],
    }
    for name, wanted in expected.items():
        first, second = make_units(name).cut(*parts)
        assert first.rows() + second.rows() == wanted
        assert first.vocabulary is second.vocabulary


@pytest.fixture(scope="module")
def sentencepiece_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import sentencepiece

    directory = tmp_path_factory.mktemp("pieces")
    text = directory / "text.txt"
    text.write_text("\n".join(f"a small dog number {n} runs over the green hill" for n in range(200)))
    sentencepiece.SentencePieceTrainer.train(
        input=str(text), model_prefix=str(directory / "spm"), vocab_size=40, minloglevel=2
    )
    return directory / "spm.model"


def test_pieces_of_lower_cased_text(sentencepiece_model: Path) -> None:
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_file=str(sentencepiece_model))
    cutter = make_units("sentencepiece", sentencepiece_model)
    assert isinstance(cutter, Pieces)
    pieces, unknown = cutter.fixed_vocabulary
    assert unknown == "<unk>"
    assert len(pieces) == len(processor)
    left, right = cutter.cut(pa.array(["A DOG runs", None]), pa.array(["hill Ж", ""]))
    expected = [processor.encode(text, out_type=int) for text in ("a dog runs", "", "hill ж", "")]
    rows = [
        column.ids[column.offsets[k] : column.offsets[k + 1]].tolist()
        for column in (left, right)
        for k in (0, 1)
    ]
    assert rows == expected


def test_wrong_models_and_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such SentencePiece model"):
        make_units("sentencepiece", tmp_path / "none.model")
    for content in (b"not a model", b""):
        (tmp_path / "bad.model").write_bytes(content)
        with pytest.raises(InputError, match="not a SentencePiece model"):
            make_units("sentencepiece", tmp_path / "bad.model")
    with pytest.raises(InputError, match="need a SentencePiece model"):
        make_units("sentencepiece")
    with pytest.raises(InputError, match="use word, trigram, bare_word, bare_trigram"):
        make_units("letter")


def test_most_frequent_units_by_count_then_code_points() -> None:
    units = ["b", "rare", "a", "z", UNKNOWN]
    counts = np.array([5, 1, 5, 9, 100])
    vocabulary, ids = most_frequent(units, counts, minimum_count=5, maximum_size=10)
    assert vocabulary.units == [UNKNOWN, "z", "a", "b"]
    assert ids.tolist() == [3, 0, 2, 1, 0]
    vocabulary, ids = most_frequent(units, counts, minimum_count=1, maximum_size=2)
    assert vocabulary.units == [UNKNOWN, "z", "a"]
    assert ids.tolist() == [0, 0, 2, 1, 0]


def test_unknown_units_have_the_unknown_id() -> None:
    vocabulary = Vocabulary(["a", UNKNOWN, "b"])
    assert vocabulary.ids_of(["b", "c", "a", UNKNOWN]).tolist() == [2, 1, 0, 1]
    assert vocabulary.id_of("c") == 1
    assert "c" not in vocabulary


def test_save_and_load_keep_odd_units(tmp_path: Path) -> None:
    units = [UNKNOWN, " a ", "\n", "\u2028", '"', "é", "\u0085"]
    Vocabulary(units).save(tmp_path / "v.json")
    assert Vocabulary.load(tmp_path / "v.json").units == units


@pytest.mark.parametrize("units", [["a", "a", UNKNOWN], ["a"]], ids=["repeated", "without unknown"])
def test_wrong_units_are_refused(units: list[str]) -> None:
    with pytest.raises(ValueError, match="vocabulary"):
        Vocabulary(units)


@pytest.mark.parametrize(
    "text", ["[]", '{"units": [1], "unknown": "a"}', '{"units": ["a"], "unknown": "b"}', "{", "{}"]
)
def test_damaged_files_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "v.json").write_text(text)
    with pytest.raises(InputError, match="not"):
        Vocabulary.load(tmp_path / "v.json")
