"""A table is the same in memory, on disk and as text, and a damaged one is not opened."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from paraforge.base.errors import InputError
from paraforge.base.word_vectors.vectors import UNKNOWN_WORD, WordVectors, table_directory


def some_vectors(words: int = 50, dimension: int = 7, unknown: bool = False) -> WordVectors:
    names = [f"word{number}" for number in range(words - 2)] + [
        "kočka",
        UNKNOWN_WORD if unknown else "\u2028 x",
    ]
    numbers = np.random.default_rng(1).normal(size=(words, dimension)).astype(np.float32)
    return WordVectors(names, numbers)


def same(left: WordVectors, right: WordVectors) -> bool:
    return (
        left.words == right.words
        and np.array_equal(left.vectors, right.vectors)
        and left.fingerprint == right.fingerprint
        and left.unknown == right.unknown
    )


@pytest.mark.parametrize("header", [False, True])
@pytest.mark.parametrize("unknown", [False, True])
def test_round_trips(tmp_path: Path, header: bool, unknown: bool) -> None:
    vectors = some_vectors(unknown=unknown)
    vectors.write_text(tmp_path / "v.txt", header=header)
    assert same(WordVectors.from_text(tmp_path / "v.txt"), vectors)
    vectors.save(tmp_path / "saved")
    opened = WordVectors.open(tmp_path / "saved", verify=True)
    assert isinstance(opened.vectors, np.memmap)
    assert same(opened, vectors)
    assert same(WordVectors.convert(tmp_path / "v.txt", tmp_path / "converted"), vectors)
    for name in ("vectors.npy", "vocabulary.txt", "table.json"):
        assert (tmp_path / "saved" / name).read_bytes() == (tmp_path / "converted" / name).read_bytes()
    assert np.array_equal(np.load(tmp_path / "saved" / "vectors.npy"), vectors.vectors)


def test_extreme_numbers_survive_as_text(tmp_path: Path) -> None:
    numbers = np.array([[1e-45, 3.4028235e38, -0.1], [1 / 3, 1e-38, 123456789]], dtype=np.float32)
    WordVectors(["a", "b"], numbers).write_text(tmp_path / "v.txt")
    np.testing.assert_array_equal(WordVectors.from_text(tmp_path / "v.txt").vectors, numbers)


def test_rows() -> None:
    vectors = some_vectors()
    assert vectors.rows(["kočka", "dog", "word3", "kočka"]).tolist() == [48, -1, 3, 48]
    assert vectors.rows([]).tolist() == []
    with_unknown = some_vectors(unknown=True)
    assert with_unknown.rows(["kočka", "dog"]).tolist() == [48, 49]
    assert with_unknown.known_rows(["kočka", "dog"]).tolist() == [48, -1]


def test_fingerprint_depends_on_words_order_and_numbers() -> None:
    numbers = np.eye(3, dtype=np.float32)
    prints = {
        WordVectors(words, matrix).fingerprint
        for words, matrix in [
            (["a", "b", "c"], numbers),
            (["b", "a", "c"], numbers),
            (["a", "b", "d"], numbers),
            (["a", "b", "c"], numbers * 2),
        ]
    }
    assert len(prints) == 4


@pytest.mark.parametrize(
    ("words", "shape"), [(["a"], (2, 3)), (["a", "a"], (2, 3)), (["a", "b\nc"], (2, 3)), (["a"], (3,))]
)
def test_impossible_tables_are_refused(words: list[str], shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"words and vectors|repeated|line break"):
        WordVectors(words, np.ones(shape, dtype=np.float32))


def damage_json(directory: Path) -> None:
    (directory / "table.json").write_text("{")


def forget_dimension(directory: Path) -> None:
    table = json.loads((directory / "table.json").read_text())
    del table["dimension"]
    (directory / "table.json").write_text(json.dumps(table))


def newer_format(directory: Path) -> None:
    table = json.loads((directory / "table.json").read_text())
    (directory / "table.json").write_text(json.dumps({**table, "format": 2}))


def lose_a_word(directory: Path) -> None:
    path = directory / "vocabulary.txt"
    path.write_text(path.read_text(encoding="utf-8").partition("\n")[2], encoding="utf-8")


def repeat_a_word(directory: Path) -> None:
    path = directory / "vocabulary.txt"
    path.write_text(path.read_text(encoding="utf-8").replace("word1\n", "word2\n"), encoding="utf-8")


def break_utf8(directory: Path) -> None:
    path = directory / "vocabulary.txt"
    path.write_bytes(path.read_bytes().replace(b"word1\n", b"w\xffrd1\n"))


def cut_vectors(directory: Path) -> None:
    path = directory / "vectors.npy"
    path.write_bytes(path.read_bytes()[:-4])


def pickle_vectors(directory: Path) -> None:
    np.save(directory / "vectors.npy", np.array([{"a": 1}], dtype=object))


def lose_vectors(directory: Path) -> None:
    (directory / "vectors.npy").unlink()


def turn_a_bit(directory: Path) -> None:
    path = directory / "vectors.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    "damage",
    [
        damage_json,
        forget_dimension,
        newer_format,
        lose_a_word,
        repeat_a_word,
        break_utf8,
        cut_vectors,
        pickle_vectors,
        lose_vectors,
        turn_a_bit,
    ],
)
def test_damaged_tables_are_refused(tmp_path: Path, damage: object) -> None:
    some_vectors().save(tmp_path / "table")
    assert callable(damage)
    damage(tmp_path / "table")
    with pytest.raises(InputError):
        WordVectors.open(tmp_path / "table", verify=True)


def test_no_such_table(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such"):
        WordVectors.open(tmp_path / "nothing")
    with pytest.raises(InputError, match="no such"):
        table_directory(tmp_path / "nothing")


def test_a_file_is_converted_once(tmp_path: Path) -> None:
    vectors = some_vectors()
    vectors.write_text(tmp_path / "v.txt")
    directory = table_directory(tmp_path / "v.txt", cache=tmp_path / "cache")
    written = (directory / "vectors.npy").stat().st_mtime_ns
    assert same(WordVectors.open(directory, verify=True), vectors)
    assert table_directory(tmp_path / "v.txt", cache=tmp_path / "cache") == directory
    assert (directory / "vectors.npy").stat().st_mtime_ns == written
    assert table_directory(directory) == directory
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [directory.name]


def test_what_a_file_repeats_is_said_at_every_use(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "v.txt").write_text("the 1 2\ncat 3 4\nthe 5 6\n", encoding="utf-8")
    for _ in range(3):
        caplog.clear()
        table_directory(tmp_path / "v.txt", cache=tmp_path / "cache")
        assert "1 words that were in the file before are left out, the first 'the' in line 3" in caplog.text
