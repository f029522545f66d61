"""Reads text files of word vectors (word2vec, GloVe, paragram), checking every line."""

import logging
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.base.errors import InputError
from paraforge.base.text.lines import INVALID_UTF8, OVERLONG_LINE, Reading, line_blocks

logger = logging.getLogger(__name__)

FloatArray = npt.NDArray[np.float32]

_LARGEST_DIMENSION: Final = 20_000
_BINARY: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_LOOKED_AT: Final = 20  # lines after a header
_OTHER_SPACE: Final = re.compile(rb"[\t\v\f\r]")
_LONGEST_LINE: Final = 1 << 21
_FIX_BINARY: Final = (
    "Write it as text with gensim: KeyedVectors.load_word2vec_format(PATH, binary=True)"
    ".save_word2vec_format(TEXT)."
)


@dataclass(frozen=True)
class VectorBlock:
    """Distinct words in the order of the file, and their vectors: words x dimension, float32, all finite."""

    words: list[str]
    vectors: FloatArray


def read_vector_file(path: Path) -> Iterator[VectorBlock]:
    """Read a file of word vectors block by block, in bounded memory except for the set of words seen.

    A first line of two whole numbers is word2vec's header (words, dimension); without one, the numbers at the
    end of the first line give the dimension. A word can contain spaces (as in GloVe 840B) if none of its
    later parts looks like a number.

    Published files have words that are not UTF-8, which no text can contain, and repeated words. These are
    left out (of repeated words, all but the first), with a warning that counts them.

    Raises InputError if the file is in word2vec's binary format, has no vectors, or is damaged or truncated,
    if a line is not a word and `dimension` finite numbers, or if the header does not match the file.
    """
    seen: set[str] = set()
    left_out: Counter[str] = Counter()
    first: dict[str, str] = {}
    header = dimension = None
    for block in line_blocks(path, Reading(strict=False, max_line_bytes=_LONGEST_LINE)):
        if len(overlong := np.flatnonzero(block.faults == OVERLONG_LINE)):
            problem = f"a line longer than {_LONGEST_LINE:,} bytes: not a file of word vectors"
            raise InputError(problem, path, block.first + int(overlong[0]))
        if block.first == 1 and (header := _header(block.lines[0].as_py())) is not None:
            dimension = header[1]
            block = block.slice(1, len(block) - 1)
        if header and block.first == 2 and _BINARY.search(" ".join(block.lines[:_LOOKED_AT].to_pylist())):
            raise InputError(
                "this is word2vec's binary format; only its text format can be read", path, remedy=_FIX_BINARY
            )
        texts = block.lines.cast(pa.binary()).to_pylist()
        if dimension is None and texts:
            dimension = _dimension_of(texts[0])
        if dimension is not None:
            _check_dimension(dimension, path)
        if not texts or dimension is None:
            continue
        names, vectors = _parse_lines(texts, dimension, path, block.first)
        words: list[str] = []
        places: list[int] = []
        for position, name in enumerate(names):
            word = name.decode("utf-8")
            if block.faults[position] == INVALID_UTF8 and "\ufffd" in word:
                reason = "words that are not UTF-8"
            elif word in seen:
                reason = "words that were in the file before"
            else:
                seen.add(word)
                words.append(word)
                places.append(position)
                continue
            left_out[reason] += 1
            first.setdefault(reason, f"{word[:40]!r} in line {block.first + position:,}")
        yield VectorBlock(words, vectors if len(words) == len(names) else vectors[places])
    for reason, count in left_out.items():
        logger.warning("%s: %s %s are left out, the first %s", path, f"{count:,}", reason, first[reason])
    if not seen:
        raise InputError(
            "no word vectors in the file", path, remedy="Use a file with a word and its vector on each line."
        )
    words_read = len(seen) + left_out.total()
    if header is not None and header[0] != words_read:
        raise InputError(
            f"the header says {header[0]} words, the file has {words_read}",
            path,
            1,
            "If the file is complete, correct its first line. Otherwise download it again.",
        )


def _header(line: str) -> tuple[int, int] | None:
    fields = line.split()
    if len(fields) != 2 or not all(field.isdecimal() and len(field) < 12 for field in fields):
        return None
    return int(fields[0]), int(fields[1])


def _check_dimension(dimension: int, path: Path) -> None:
    if not 1 <= dimension <= _LARGEST_DIMENSION:
        raise InputError(
            f"vectors of {dimension} numbers; 1 to {_LARGEST_DIMENSION:,} are supported",
            path,
            1,
            "Use a file with a word and its vector on each line.",
        )


def _dimension_of(line: bytes) -> int:
    """Return how many numbers a line ends with, without its first field, the word."""
    dimension = 0
    for field in reversed(line.split()[1:]):
        if not _is_number(field):
            break
        dimension += 1
    return dimension


def _parse_lines(
    texts: Sequence[bytes], dimension: int, path: Path, first: int
) -> tuple[list[bytes], FloatArray]:
    """Return the words of unchanged lines, and their vectors, words x dimension, float32, all finite.

    first: number of the first line.
    """
    words = []
    numbers = []
    for line in texts:
        line = line.rstrip(b" \r")
        word, _, rest = line.partition(b" ")
        # Tabs and the like, or several spaces, between fields; or spaces in the word.
        if line.count(b" ") != dimension or _OTHER_SPACE.search(rest):
            fields = line.split()
            begin = len(fields) - dimension
            word, rest = b" ".join(fields[:begin]), b" ".join(fields[begin:])
            if any(_is_number(field) for field in fields[1:begin]):
                word = b""
        words.append(word)
        numbers.append(rest)
    values = _floats(b" ".join(numbers))
    if values is not None and all(words) and _is_good(values, len(words) * dimension):
        return words, values.reshape(len(words), dimension)
    for number, (line, word, rest) in enumerate(zip(texts, words, numbers, strict=True), first):
        values = _floats(rest)
        if not word or values is None or not _is_good(values, dimension):
            shown = line[:60].decode("utf-8", "replace")
            problem = f"not a word and {dimension} finite numbers: {shown!r}"
            raise InputError(problem, path, number, "Correct or remove the line.")
    raise AssertionError("a block is wrong, and none of its lines")


def _is_good(values: FloatArray, count: int) -> bool:
    return values.size == count and bool(np.isfinite(values).all())


def _floats(text: bytes) -> FloatArray | None:
    """Return the numbers of a text separated by spaces, float32; None if something in it is not a number."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        try:
            # A number beyond float32's range becomes infinite, which the caller rejects.
            with np.errstate(over="ignore"):
                return np.fromstring(text, dtype=np.float64, sep=" ").astype(np.float32)
        except (DeprecationWarning, ValueError):
            return None


def _is_number(field: bytes) -> bool:
    """Return whether a field of a text file is a number, even if not finite."""
    try:
        float(field)
    except ValueError:
        return False
    return True
