"""Every way a file of word vectors can be wrong is an error with file and line; every right one is read."""

from __future__ import annotations

import bz2
import gzip
import lzma
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from paraforge.base.errors import InputError
from paraforge.base.word_vectors.vectors import WordVectors

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


@pytest.mark.parametrize(
    ("name", "compress"),
    [
        ("v.txt.gz", gzip.compress),
        ("v.txt.bz2", bz2.compress),
        ("v.txt.xz", lzma.compress),
        ("v.txt.zst", zstandard.compress),
    ],
)
def test_compressed(tmp_path: Path, name: str, compress: object) -> None:
    assert callable(compress)
    assert read(tmp_path, compress(GLOVE), name).words == ["the", "cat", "UUUNKKK"]


def test_words_with_spaces_and_odd_characters(tmp_path: Path) -> None:
    content = ". . . 1 2 3\nat name@domain.com 4 5 6\na\u00a0b 7 8 9\n\u2028 1 1 1\n5 2 2 2\n".encode()
    assert read(tmp_path, content).words == [". . .", "at name@domain.com", "a\u00a0b", "\u2028", "5"]


@pytest.mark.parametrize("header", [b"", b"5 3\n"], ids=["glove", "word2vec"])
def test_words_that_no_text_has_or_that_come_again_are_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, header: bytes
) -> None:
    content = b"the 1 2 3\nca\xfft 4 5 6\ndog 7 8 9\nthe 0 0 0\ncat 1 1 1\n"
    vectors = read(tmp_path, header + content)
    assert vectors.words == ["the", "dog", "cat"]
    np.testing.assert_array_equal(vectors.vectors, [[1, 2, 3], [7, 8, 9], [1, 1, 1]])
    line = 2 + bool(header)
    assert f"1 words that are not UTF-8 are left out, the first 'ca\ufffdt' in line {line}" in caplog.text
    assert (
        f"1 words that were in the file before are left out, the first 'the' in line {line + 2}"
        in caplog.text
    )


WRONG = {
    "empty": (b"", None, "empty"),
    "only a line end": (b"\n", 1, "0 numbers|vectors of"),
    "only a header": (b"3 3\n", None, "no word vectors"),
    "a number missing": (b"the 1 2 3\ncat 1 2\n", 2, "1 numbers|2 numbers behind the word, not 3"),
    "a number too many": (b"the 1 2 3\ncat 1 2 3 4\n", 2, "4 numbers behind the word, not 3"),
    "a blank line": (b"the 1 2 3\n\ncat 1 2 3\n", 2, "blank line"),
    "no word": (b"the 1 2 3\n 1 2 3\n", 2, "numbers"),
    "not a number": (b"the 1 2 3\ncat 1 two 3\n", 2, "'two' is not a number"),
    "a number and more": (b"the 1 2 3\ncat 1 2x 3\n", 2, "'2x' is not a number"),
    "a comma": (b"the 1 2 3\ncat 1 2,5 3\n", 2, "'2,5' is not a number"),
    "NaN": (b"the 1 2 3\ncat 1 nan 3\n", 2, "nan in a vector"),
    "infinity": (b"the 1 2 3\ncat 1 -inf 3\n", 2, "-inf in a vector"),
    "beyond float32": (b"the 1 2 3\ncat 1 1e39 3\n", 2, "1e39 in a vector"),
    "no word that is UTF-8": (b"ca\xfft 1 2 3\n", None, "no word vectors"),
    "NaN in a word that comes again": (b"the 1 2 3\nthe 1 nan 3\n", 2, "nan in a vector"),
    "header of another dimension": (b"2 4\nthe 1 2 3\ncat 1 2 3\n", 2, "3 numbers behind the word, not 4"),
    "header of fewer words": (b"1 3\nthe 1 2 3\ncat 1 2 3\n", 1, "header says 1 words, the file has 2"),
    "header of more words": (b"3 3\nthe 1 2 3\ncat 1 2 3\n", 1, "header says 3 words, the file has 2"),
    "no numbers at all": (b"the\ncat\n", 1, "vectors of 0 numbers"),
    "an absurd dimension": (b"2 99999999999\nthe 1\n", 1, "vectors of 99999999999 numbers"),
    "an endless line": (b"the " + b"1 " * 2_000_000, 1, "longer than|vectors of"),
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
    lines = [f"word{number} {number} 1 2".encode() for number in range(400_000)]
    lines[333_332] += b" 7"
    with pytest.raises(InputError) as caught:
        read(tmp_path, b"\n".join(lines))
    assert caught.value.line == 333_333


def test_nothing_is_left_behind_by_a_wrong_file(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_bytes(b"the 1 2\ncat 1\n")
    with pytest.raises(InputError):
        WordVectors.convert(tmp_path / "v.txt", tmp_path / "table")
    with pytest.raises(InputError):
        WordVectors.open(tmp_path / "table")


@settings(max_examples=200)
@given(st.binary(max_size=300) | st.text("the 0123.-\n\r\t é", max_size=200).map(str.encode))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    directory = tmp_path_factory.mktemp("any")
    try:
        vectors = read(directory, content)
    except InputError:
        return
    assert np.isfinite(vectors.vectors).all()
    assert len(set(vectors.words)) == len(vectors)
