"""Reads text files of word vectors (word2vec, GloVe, paragram), checking every line."""

import logging
import math
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

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
_LONGEST_LINE: Final = 1 << 21
_FIX_LINE: Final = "Correct or remove the line; each has a word and then {} numbers, separated by spaces."
_FIX_BINARY: Final = (
    "Write it as text with gensim: KeyedVectors.load_word2vec_format(PATH, binary=True)"
    ".save_word2vec_format(TEXT)."
)


@dataclass(frozen=True)
class VectorBlock:
    """Distinct words in the order of the file, and their vectors: words x dimension, float32, all finite."""

    words: list[str]
    vectors: FloatArray


def read_vector_file(path: Path, notes: list[str] | None = None) -> Iterator[VectorBlock]:
    """Read a file of word vectors block by block, in bounded memory except for the set of words seen.

    A first line of two whole numbers is word2vec's header (words, dimension); without one, the numbers at the
    end of the first line give the dimension. A word can contain spaces (as in GloVe 840B) if none of its
    later parts looks like a number.

    Published files have words that are not UTF-8, which no text can contain, and repeated words. The former,
    and all but the first of the latter, are left out with a warning that counts them; the warning is also
    added to ``notes``.

    Raises InputError: word2vec's binary format; no vectors; a line with too few or too many numbers; NaN or
    infinity; a header that does not match the file; damaged or truncated compressed data.
    """
    seen: set[str] = set()
    undecodable = _LeftOut("words that are not UTF-8")
    repeated = _LeftOut("words that were in the file before")
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
        lines = _Lines(path, block.first, block.lines.cast(pa.binary()).to_pylist())
        if dimension is None and lines.texts:
            dimension = _dimension_of(lines.texts[0])
        if dimension is not None:
            _check_dimension(dimension, path)
        if not lines.texts or dimension is None:
            continue
        names, vectors = _parse_lines(lines, dimension)
        words: list[str] = []
        places: list[int] = []
        for position, name in enumerate(names):
            word = name.decode("utf-8")
            if block.faults[position] == INVALID_UTF8 and "\ufffd" in word:
                undecodable.add(word, block.first + position)
            elif word in seen:
                repeated.add(word, block.first + position)
            else:
                seen.add(word)
                words.append(word)
                places.append(position)
        yield VectorBlock(words, vectors if len(words) == len(names) else vectors[places])
    for left_out in (undecodable, repeated):
        if left_out.count:
            logger.warning("%s: %s", path, left_out)
            if notes is not None:
                notes.append(str(left_out))
    if not seen:
        raise InputError(
            "no word vectors in the file", path, remedy="Use a file with a word and its vector on each line."
        )
    found = len(seen) + undecodable.count + repeated.count
    if header is not None and header[0] != found:
        raise InputError(
            f"the header says {header[0]} words, the file has {found}",
            path,
            1,
            "If the file is complete, correct its first line. Otherwise download it again.",
        )


class _LeftOut:
    """Counts words that are left out, and remembers the first."""

    def __init__(self, what: str) -> None:
        self.count = 0
        self._what = what
        self._first = ""

    def add(self, word: str, line: int) -> None:
        """Count one more."""
        self.count += 1
        if self.count == 1:
            self._first = f"{word[:40]!r} in line {line:,}"

    def __str__(self) -> str:
        return f"{self.count:,} {self._what} are left out, the first {self._first}"


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
        if not is_number(field):
            break
        dimension += 1
    return dimension


class _Lines(NamedTuple):
    """Unchanged lines of a file, and the number of the first."""

    path: Path
    first: int
    texts: list[bytes]

    def error(self, position: int, problem: str, remedy: str) -> InputError:
        """Return the error with the file and the line."""
        return InputError(problem, self.path, self.first + position, remedy)


def _parse_lines(lines: _Lines, dimension: int) -> tuple[list[bytes], FloatArray]:
    """Return the words, and their vectors, words x dimension, float32, all finite."""
    words = []
    numbers = []
    for position, line in enumerate(lines.texts):
        line = line.rstrip(b" \r")
        if line.count(b" ") == dimension:
            word, _, rest = line.partition(b" ")
        else:
            word, rest = _split_unusual(line, dimension, lines, position)
        if not word:
            raise _ragged(line, dimension, lines, position)
        words.append(word)
        numbers.append(rest)
    values = _floats(b" ".join(numbers))
    if values is None or values.size != len(words) * dimension or not np.isfinite(values).all():
        _complain(numbers, dimension, lines)
        raise AssertionError("a block is wrong, and none of its lines")
    return words, values.reshape(len(words), dimension)


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


def _split_unusual(line: bytes, dimension: int, lines: _Lines, position: int) -> tuple[bytes, bytes]:
    """Return the word and numbers of a line with several spaces between fields, or with spaces in the
    word."""
    fields = line.split()
    extra = len(fields) - dimension - 1
    if extra < 0 or any(is_number(field) for field in fields[1 : extra + 1]):
        raise _ragged(line, dimension, lines, position)
    return b" ".join(fields[: extra + 1]), b" ".join(fields[extra + 1 :])


def is_number(field: bytes) -> bool:
    """Return whether a field of a text file is a number, even if not finite."""
    try:
        float(field)
    except ValueError:
        return False
    return True


def _ragged(line: bytes, dimension: int, lines: _Lines, position: int) -> InputError:
    found = max(len(line.split()) - 1, 0)
    problem = f"{found} numbers behind the word, not {dimension}" if line.strip() else "a blank line"
    return lines.error(position, problem, _FIX_LINE.format(dimension))


def _complain(numbers: list[bytes], dimension: int, lines: _Lines) -> None:
    """Raise the InputError of the first wrong line."""
    fix = _FIX_LINE.format(dimension)
    for position, text in enumerate(numbers):
        for field in text.split():
            if not is_number(field) or (values := _floats(field)) is None or values.size != 1:
                raise lines.error(position, f"{field[:40]!r} is not a number", fix)
            if not math.isfinite(float(values[0])):
                remedy = "Remove the line: a vector has finite numbers."
                raise lines.error(position, f"{field[:40].decode()} in a vector", remedy)
        if len(text.split()) != dimension:
            raise _ragged(lines.texts[position], dimension, lines, position)
