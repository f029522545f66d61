"""Tables of word vectors in memory, on disk and as text; errors name file and line."""

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paraforge.base.errors import InputError, Interrupted
from paraforge.base.word_vectors.vectors import UNKNOWN_WORD, WordVectors, table_directory
from tests.intake.bitext.helpers import COMPRESSORS


def some_vectors(words: int = 50, dimension: int = 7, unknown: bool = False) -> WordVectors:
    names = [*(f"word{number}" for number in range(words - 2)), "kočka"]
    names.append(UNKNOWN_WORD if unknown else "\u2028 x")
    numbers = np.random.default_rng(1).normal(size=(words, dimension)).astype(np.float32)
    return WordVectors(names, numbers)


def same(left: WordVectors, right: WordVectors) -> bool:
    return (
        left.words == right.words
        and np.array_equal(left.vectors, right.vectors)
        and left.fingerprint == right.fingerprint
        and left.unknown == right.unknown
    )


@pytest.mark.parametrize(
    ("header", "unknown", "block_rows"), [(False, False, 7), (True, False, 50), (False, True, 100)]
)
def test_round_trips(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, header: bool, unknown: bool, block_rows: int
) -> None:
    vectors = some_vectors(unknown=unknown)
    fingerprint = some_vectors(unknown=unknown).fingerprint
    monkeypatch.setattr("paraforge.base.word_vectors.vectors._BLOCK_ROWS", block_rows)
    assert vectors.fingerprint == fingerprint
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
    for table, other in ((vectors, np.zeros(7)), (with_unknown, with_unknown.vectors[49])):
        assert np.array_equal(table.of_words(["dog", "word3"]), [other, table.vectors[3]])


def test_fingerprint_covers_words_order_and_numbers() -> None:
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


def in_json(**changes: object) -> Callable[[bytes], bytes]:
    return lambda content: json.dumps({**json.loads(content), **changes}).encode()


# What is wrong with a file of a table.
DAMAGE: list[tuple[str, Callable[[bytes], bytes], str]] = [
    ("table.json", lambda content: b"{", ":1: not JSON"),
    ("table.json", in_json(dimension=None), ": damaged"),
    ("table.json", in_json(format=2), ".*format 2"),
    ("vocabulary.txt", lambda content: content.partition(b"\n")[2], ": 49 distinct words, table.json"),
    ("vocabulary.txt", lambda content: content.replace(b"word1\n", b"word2\n"), ": 49 distinct words"),
    ("vocabulary.txt", lambda content: content.replace(b"word1\n", b"w\xffrd1\n"), ":2: invalid UTF-8"),
    ("vectors.npy", lambda content: content[:-4], ": cannot be read"),
    ("vectors.npy", lambda content: content[:-1] + bytes([content[-1] ^ 1]), ".*differ from table.json"),
    ("vectors.npy", lambda content: pickled(np.array([{"a": 1}], dtype=object)), ": cannot be read"),
    ("vectors.npy", lambda content: pickled(np.ones((7, 50), np.float32)), ": not the 50 x 7 float32"),
    ("vectors.npy", lambda content: pickled(np.ones((50, 7))), ": not the 50 x 7 float32 numbers"),
]


def pickled(array: npt.NDArray[Any]) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.mark.parametrize(("name", "damage", "message"), DAMAGE)
def test_damaged_tables_are_refused(
    tmp_path: Path, name: str, damage: Callable[[bytes], bytes], message: str
) -> None:
    some_vectors().save(tmp_path / "table")
    path = tmp_path / "table" / name
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match=f"{'table' if '.*' in message else name}{message}"):
        WordVectors.open(tmp_path / "table", verify=True)
    path.unlink()
    with pytest.raises(InputError):
        WordVectors.open(tmp_path / "table", verify=True)


def test_nan_vectors_are_error_when_used(tmp_path: Path) -> None:
    """Opening a large table does not read all of it."""
    vectors = some_vectors()
    vectors.vectors[1, 2] = np.nan
    vectors.save(tmp_path)
    opened = WordVectors.open(tmp_path)
    assert np.isfinite(opened.of_words(opened.words[2:])).all()
    with pytest.raises(InputError, match=r"vectors\.npy: damaged: .* not numbers"):
        opened.of_words(opened.words[:2])


def test_no_such_table(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_bytes(b"the 1 2\ncat 1\n")
    with pytest.raises(InputError, match="not a word and 2 finite numbers"):
        WordVectors.convert(tmp_path / "v.txt", tmp_path / "table")  # and leaves none
    for name in ("nothing", "table"):
        with pytest.raises(InputError, match=f"no such directory|{name}/table.json: no such file"):
            WordVectors.open(tmp_path / name)
    with pytest.raises(InputError, match="no such file or directory"):
        table_directory(tmp_path / "nothing")


def test_half_replaced_table_is_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words of the old table must not get vectors of the new one."""
    some_vectors().save(tmp_path / "table")
    with monkeypatch.context() as patched, pytest.raises(Interrupted):
        patched.setattr("paraforge.base.word_vectors.vectors._lines", Mock(side_effect=Interrupted("killed")))
        some_vectors(unknown=True).save(tmp_path / "table")
    with pytest.raises(InputError, match=r"table\.json"):
        WordVectors.open(tmp_path / "table")


def test_vector_file_is_converted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    vectors = some_vectors()
    vectors.write_text(tmp_path / "v.txt")
    directory = table_directory(tmp_path / "v.txt")
    written = (directory / "vectors.npy").stat().st_mtime_ns
    assert same(WordVectors.open(directory, verify=True), vectors)
    assert table_directory(tmp_path / "v.txt") == directory
    assert (directory / "vectors.npy").stat().st_mtime_ns == written
    assert table_directory(directory) == directory
    assert [path.name for path in directory.parent.iterdir()] == [directory.name]


GLOVE = b"the 0.5 -1 2e-3\ncat 1 2 3\nUUUNKKK 0 0 1\n"
NUMBERS = [[0.5, -1, 0.002], [1, 2, 3], [0, 0, 1]]


def read(directory: Path, content: bytes, name: str = "vectors.txt") -> WordVectors:
    path = directory / name
    path.write_bytes(content)
    return WordVectors.from_text(path)


@pytest.mark.parametrize(
    "content",
    [
        GLOVE,
        b"3 3\n" + GLOVE,
        GLOVE.removesuffix(b"\n"),
        GLOVE.replace(b"\n", b"\r\n"),
        GLOVE.replace(b"\n", b" \n"),
        GLOVE.replace(b" ", b"\t"),
        GLOVE.replace(b" ", b"  "),
    ],
    ids=["glove", "word2vec", "no last line end", "crlf", "space at the end", "tabs", "two spaces"],
)
def test_formats(tmp_path: Path, content: bytes) -> None:
    vectors = read(tmp_path, content)
    assert vectors.words == ["the", "cat", "UUUNKKK"]
    np.testing.assert_array_equal(vectors.vectors, np.array(NUMBERS, dtype=np.float32))
    assert vectors.vectors.dtype == np.float32
    assert vectors.unknown == "UUUNKKK"
    assert vectors.unknown_row == 2


@pytest.mark.parametrize("suffix", COMPRESSORS)
def test_compressed(tmp_path: Path, suffix: str) -> None:
    assert read(tmp_path, COMPRESSORS[suffix](GLOVE), f"v.txt{suffix}").words == ["the", "cat", "UUUNKKK"]


def test_words_with_spaces_and_odd_characters(tmp_path: Path) -> None:
    words = [". . .", "at name@domain.com", "a\u00a0b", "\u2028", "5", "x\ty"]
    lines = [f"{word} {number} 2 3" for number, word in enumerate(words)]
    assert read(tmp_path, "\n".join(lines).encode()).words == words


@pytest.mark.parametrize("header", [b"", b"6 3\n"], ids=["glove", "word2vec"])
def test_unusable_and_repeated_words_are_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, header: bytes
) -> None:
    content = b"the 1 2 3\nca\xfft 4 5 6\ndog 7 8 9\nthe 0 0 0\ndog 0 0 0\ncat 1 1 1\n"
    vectors = read(tmp_path, header + content)
    assert vectors.words == ["the", "dog", "cat"]
    np.testing.assert_array_equal(vectors.vectors, [[1, 2, 3], [7, 8, 9], [1, 1, 1]])
    line = 2 + bool(header)
    assert f"1 words that are not UTF-8 are left out, the first 'ca\ufffdt' in line {line}" in caplog.text
    assert (
        f"2 words that were in the file before are left out, the first 'the' in line {line + 2}"
        in caplog.text
    )


WRONG = {
    "empty": (b"", None, "empty"),
    "only a line end": (b"\n", 1, "vectors of 0"),
    "only a header": (b"3 3\n", None, "no word vectors"),
    **{
        f"second line {line!r}": (b"the 1 2 3\n" + line + b"\n", 2, "not a word and 3 finite numbers")
        for line in b"cat 1 2|cat 1 2 3 4|| 1 2 3|cat 1 two 3|cat 1 2x 3|cat 1 2,5 3|cat 1 nan 3|"
        b"cat 1 -inf 3|cat 1 1e39 3".split(b"|")
    },
    "no word that is UTF-8": (b"ca\xfft 1 2 3\n", None, "no word vectors"),
    **{
        f"a number too many after {space!r} and one too few": (
            b"the 1 2 3\ncat 1 2 3" + space + b"4\ndog 1 2\n",
            2,
            "not a word and 3",
        )
        for space in (b"\t", b"\v", b"\f", b"\r")
    },
    "NaN in a word that comes again": (b"the 1 2 3\nthe 1 nan 3\n", 2, "not a word and 3"),
    "header of another dimension": (b"2 4\nthe 1 2 3\ncat 1 2 3\n", 2, "not a word and 4 .*: 'the 1 2 3'"),
    "header of fewer words": (b"1 3\nthe 1 2 3\ncat 1 2 3\n", 1, "header says 1 words, the file has 2"),
    "header of more words": (b"3 3\nthe 1 2 3\ncat 1 2 3\n", 1, "header says 3 words, the file has 2"),
    "no numbers at all": (b"the\ncat\n", 1, "vectors of 0 numbers"),
    "an absurd dimension": (b"2 99999999999\nthe 1\n", 1, "vectors of 99999999999 numbers"),
    "an endless line": (b"the 1\ncat " + b"1 " * 1_100_000 + b"\n", 2, "longer than"),
    "truncated gz": (gzip.compress(GLOVE * 1)[:-10], None, "damaged or truncated"),
    "word2vec's binary format": (b"1 1\na " + b"\x00\x00\x80\x3f", None, "gensim"),
}


@pytest.mark.parametrize("case", WRONG)
def test_errors_name_file_and_line(tmp_path: Path, case: str) -> None:
    content, line, message = WRONG[case]
    with pytest.raises(InputError, match=message) as caught:
        read(tmp_path, content)
    assert caught.value.path == str(tmp_path / "vectors.txt")
    assert caught.value.line == line
    assert caught.value.exit_code == 2


def test_error_in_a_later_block(tmp_path: Path) -> None:
    lines = [f"word{number} {number} {0.5:.80f} {2:.80f}".encode() for number in range(40_000)]
    lines[33_332] += b" 7"
    with pytest.raises(InputError) as caught:
        read(tmp_path, b"\n".join(lines))
    assert caught.value.line == 33_333


@settings(max_examples=200)
@given(st.binary(max_size=300) | st.text("the 0123.-\n\r\t é", max_size=200).map(str.encode))
def test_any_bytes_read_or_raise_input_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    directory = tmp_path_factory.mktemp("any")
    try:
        vectors = read(directory, content)
    except InputError:
        return
    assert np.isfinite(vectors.vectors).all()
    assert len(set(vectors.words)) == len(vectors)
