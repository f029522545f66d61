"""A table of word vectors, converted once from a vector file, cached per user, and memory-mapped
afterwards."""

from __future__ import annotations

import hashlib
import logging
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.base.errors import InputError, check_format, describing
from paraforge.base.files import (
    atomic_path,
    cache_directory,
    read_json,
    scratch_directory,
    sha256_file,
    text_output,
    write_json,
)
from paraforge.base.word_vectors.files import read_vector_file

logger = logging.getLogger(__name__)


FloatArray = npt.NDArray[np.float32]

UNKNOWN_WORD: Final = "UUUNKKK"
"""In Wieting's files, the word whose vector is used for words without one."""

TABLE_NAME: Final = "table.json"
VECTORS_NAME: Final = "vectors.npy"
VOCABULARY_NAME: Final = "vocabulary.txt"
TABLE_FORMAT: Final = 1
_BLOCK_ROWS: Final = 1 << 14


class WordVectors:
    """Words and their vectors.

    On disk a table is a directory of `vectors.npy` (words x dimension, float32, opened memory-mapped),
    `vocabulary.txt` (a word a line, UTF-8, in the order of the rows) and `table.json` (`format`, `words`,
    `dimension`, `unknown`, `fingerprint`).
    """

    def __init__(self, words: Sequence[str] | Any, vectors: FloatArray) -> None:
        """Make a table in memory.

        words: distinct, none with a line break; strings or a pyarrow string array.
        vectors: words x dimension, float32, finite.

        Raises ValueError if the lengths differ, or a word is repeated or has a line break.
        """
        strings = words if isinstance(words, pa.Array) else pa.array(list(words), pa.large_string())
        self._words = strings.cast(pa.large_string())
        self.vectors: FloatArray = vectors
        if vectors.ndim != 2 or len(vectors) != len(self._words):
            raise ValueError(f"{len(self._words)} words and vectors of shape {vectors.shape}")
        if pc.count_distinct(self._words).as_py() != len(self._words):
            raise ValueError("a word is repeated")
        if pc.any(pc.match_substring(self._words, "\n")).as_py():
            raise ValueError("a word has a line break")
        unknown = pc.index(self._words, UNKNOWN_WORD).as_py()
        self.unknown_row: int | None = unknown if unknown >= 0 else None
        self._fingerprint: str | None = None

    def __len__(self) -> int:
        return len(self._words)

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""
        return int(self.vectors.shape[1])

    @property
    def words(self) -> list[str]:
        """The words in the order of the rows."""
        return self._words.to_pylist()

    @property
    def unknown(self) -> str | None:
        """The word whose vector is used for words without one, if the table has it."""
        return UNKNOWN_WORD if self.unknown_row is not None else None

    @property
    def fingerprint(self) -> str:
        """SHA-256 over the words and the vectors, 64 hexadecimal digits."""
        if self._fingerprint is None:
            vectors = hashlib.sha256()
            for block in _blocks(self.vectors):
                vectors.update(block.data)
            self._fingerprint = _fingerprint(self._words, vectors, self.vectors.shape)
        return self._fingerprint

    def rows(self, words: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return the row of each word, or the unknown word's row, or -1 if the table has neither."""
        rows = self.known_rows(words)
        if self.unknown_row is not None:
            rows[rows < 0] = self.unknown_row
        return rows

    def known_rows(self, words: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return the row of each word, -1 for words that the table lacks."""
        encoded = pa.array(words, pa.large_string()).dictionary_encode()
        # The table's words are looked up among the wanted ones, so that no index of a large table is needed
        # in memory.
        places = pc.index_in(self._words, value_set=encoded.dictionary)
        known = np.flatnonzero(places.is_valid().to_numpy(zero_copy_only=False))
        rows = np.full(len(encoded.dictionary), -1, dtype=np.int64)
        rows[places.drop_null().to_numpy()] = known
        return rows[encoded.indices.to_numpy()]

    def of_words(self, words: Sequence[str]) -> FloatArray:
        """Return the vectors of the words, (words, dimension) float32; for a word without one, the unknown
        word's or zeros. Raises InputError if one has NaN or infinity."""
        rows = self.rows(words)
        vectors = np.array(self.vectors[np.maximum(rows, 0)])
        if not np.isfinite(vectors).all():
            path = getattr(self.vectors, "filename", None)
            raise InputError("damaged: a vector has values that are not numbers", path)
        vectors[rows < 0] = 0
        return vectors

    @classmethod
    def from_text(cls, path: str | Path) -> WordVectors:
        """Read a vector file (text of word2vec, GloVe, paragram; plain or compressed) into memory.
        Raises InputError as :func:`~paraforge.base.word_vectors.files.read_vector_file`."""
        blocks = list(read_vector_file(Path(path)))
        words = [word for block in blocks for word in block.words]
        return cls(words, np.concatenate([block.vectors for block in blocks]))

    @classmethod
    def convert(cls, path: str | Path, directory: str | Path) -> WordVectors:
        """Convert a vector file to a table on disk, without its vectors in memory, and open it.

        Raises:
            InputError: see :func:`~paraforge.base.word_vectors.files.read_vector_file`; nothing is left
            behind.
        """
        words: list[str] = []

        def vectors() -> Iterator[FloatArray]:
            for block in read_vector_file(Path(path)):
                words.extend(block.words)
                yield block.vectors

        _write_table(Path(directory), words, vectors())
        return cls.open(directory)

    def save(self, directory: str | Path, trained_on: str | None = None) -> None:
        """Write the table's directory, replacing an earlier table.

        trained_on: digest of the shards that the vectors were trained on, see :func:`shards_trained_on`.
        """
        _write_table(Path(directory), self._words, _blocks(self.vectors), trained_on=trained_on)

    def write_text(self, path: str | Path, header: bool = False) -> None:
        """Write one word and its numbers per line; reading them back gives the same float32 numbers.

        path: file to write.
        header: begin with word2vec's line of words and dimension; GloVe and paragram files have none.
        """
        with text_output(Path(path)) as file:
            if header:
                file.write(f"{len(self)} {self.dimension}\n")
            for first in range(0, len(self), _BLOCK_ROWS):
                words = self._words.slice(first, _BLOCK_ROWS).to_pylist()
                block = self.vectors[first : first + _BLOCK_ROWS]
                for word, vector in zip(words, block, strict=True):
                    file.write(f"{word} {' '.join(map(str, vector))}\n")

    @classmethod
    def open(cls, directory: str | Path, verify: bool = False) -> WordVectors:
        """Open a table's directory, its vectors memory-mapped.

        directory: written by :meth:`save` or :meth:`convert`.
        verify: read it all and compare with its fingerprint.

        Raises InputError if a file is missing, damaged, or does not fit the others.
        """
        directory = Path(directory)
        if not directory.is_dir():
            raise InputError("no such directory of word vectors", directory)
        table = read_json(directory / TABLE_NAME)
        with describing(directory / TABLE_NAME):
            check_format(int(table["format"]), TABLE_FORMAT, directory)
            shape, fingerprint = (int(table["words"]), int(table["dimension"])), str(table["fingerprint"])
        vectors = _open_vectors(directory / VECTORS_NAME, shape)
        opened = cls(_open_vocabulary(directory / VOCABULARY_NAME, shape[0]), vectors)
        if verify and opened.fingerprint != fingerprint:
            raise InputError(
                "the words and vectors differ from table.json",
                directory,
                remedy="The directory is damaged: make it again.",
            )
        opened._fingerprint = fingerprint
        return opened


def _blocks(vectors: FloatArray) -> Iterator[FloatArray]:
    for first in range(0, len(vectors), _BLOCK_ROWS):
        yield np.ascontiguousarray(vectors[first : first + _BLOCK_ROWS], dtype="<f4")


def _lines(words: Any) -> Iterator[bytes]:
    for first in range(0, len(words), _BLOCK_ROWS):
        yield "".join(f"{word}\n" for word in words.slice(first, _BLOCK_ROWS).to_pylist()).encode()


def _fingerprint(words: Any, vectors: hashlib._Hash, shape: tuple[int, ...]) -> str:
    vocabulary = hashlib.sha256()
    for lines in _lines(words):
        vocabulary.update(lines)
    text = f"word vectors {shape[0]} {shape[1]} {vocabulary.hexdigest()} {vectors.hexdigest()}"
    return hashlib.sha256(text.encode()).hexdigest()


def _write_table(
    directory: Path, words: Any, blocks: Iterator[FloatArray], trained_on: str | None = None
) -> None:
    """Write a table; `words` may be a list that grows while `blocks` is consumed."""
    directory.mkdir(parents=True, exist_ok=True)
    count = dimension = 0
    digest = hashlib.sha256()
    with atomic_path(directory / VECTORS_NAME) as temporary:
        with temporary.open("wb") as file:
            # The header's length is the same for any shape, so it is rewritten when the shape is known.
            file.write(npy_header((0, 0)))
            for block in blocks:
                count, dimension = count + len(block), block.shape[1]
                little = np.ascontiguousarray(block, dtype="<f4")
                digest.update(little.data)
                little.tofile(file)
            file.seek(0)
            file.write(npy_header((count, dimension)))
        # Without table.json the directory is not a table, so a kill from here on leaves nothing that can be
        # opened.
        (directory / TABLE_NAME).unlink(missing_ok=True)
    strings = words if isinstance(words, pa.Array) else pa.array(words, pa.large_string())
    with atomic_path(directory / VOCABULARY_NAME) as temporary, temporary.open("wb") as file:
        file.writelines(_lines(strings))
    write_json(
        directory / TABLE_NAME,
        {
            "format": TABLE_FORMAT,
            "words": count,
            "dimension": dimension,
            "unknown": UNKNOWN_WORD if pc.index(strings, UNKNOWN_WORD).as_py() >= 0 else None,
            "fingerprint": _fingerprint(strings, digest, (count, dimension)),
            **({"trained_on": trained_on} if trained_on else {}),
        },
    )
    logger.info("%d word vectors of %d numbers in %s", count, dimension, directory)


def shards_trained_on(directory: Path) -> str | None:
    """Return the digest of the shards that a table was trained on.

    None: it was trained on something else, or the directory has no table.
    Raises InputError if `table.json` is damaged.
    """
    path = directory / TABLE_NAME
    if not path.is_file():
        return None
    with describing(path):
        trained_on = read_json(path).get("trained_on")
    return None if trained_on is None else str(trained_on)


def npy_header(shape: tuple[int, int]) -> bytes:
    """Return a header of NumPy's format 1.0, 128 bytes for any shape, so that it can be written last."""
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    return b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + text.ljust(117).encode() + b"\n"


def _open_vectors(path: Path, shape: tuple[int, int]) -> FloatArray:
    try:
        if not math.prod(shape):
            raise ValueError("the table is empty")
        vectors = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"cannot be read: {error}", path) from error
    if not isinstance(vectors, np.ndarray) or vectors.dtype != np.dtype("<f4") or vectors.shape != shape:
        raise InputError(f"not the {shape[0]} x {shape[1]} float32 numbers that table.json names", path)
    return vectors


def _open_vocabulary(path: Path, words: int) -> Any:
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path) from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise InputError("invalid UTF-8", path, line) from error
    lines = text.removesuffix("\n").split("\n")
    if len(lines) != words or len(set(lines)) != words:
        raise InputError(f"{len(set(lines))} distinct words, table.json says {words}", path)
    return pa.array(lines, pa.large_string())


def table_directory(path: Path) -> Path:
    """Return the directory of the word-vector table for `path`. A file is converted once; its table is in
    :func:`~paraforge.base.files.cache_directory`, under the SHA-256 of the file's bytes.

    path: a table's directory, or a vector file (word2vec, GloVe, paragram; plain or compressed).

    Raises InputError if the path does not exist, and as
        :func:`~paraforge.base.word_vectors.files.read_vector_file`.
    """
    if path.is_dir():
        return path
    if not path.is_file():
        raise InputError("no such file or directory of word vectors", path)
    directory = cache_directory("vectors") / sha256_file(path)
    if directory.is_dir():
        return directory
    logger.info("converting %s once; its table is kept in %s", path, directory)
    with scratch_directory(directory) as temporary:
        WordVectors.convert(path, temporary / "table")
        try:
            (temporary / "table").rename(directory)
        except OSError:
            if not directory.is_dir():  # otherwise another process has just written the same table
                raise
    return directory
