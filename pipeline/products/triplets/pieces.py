"""Divides a published corpus into pieces, finds the keys that connect its pairs, and embeds texts with a
model or the words of the built-in scorer."""

import fnmatch
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paraforge.base.errors import InputError, reading
from paraforge.base.files import atomic_path, sha256_directory, sha256_file
from paraforge.base.shards.schema import TEXT_COLUMNS
from paraforge.base.shards.store import row_groups
from paraforge.base.text.paths import expand
from paraforge.corpus.publication.datasets import Dataset, open_file
from paraforge.corpus.scoring import general
from paraforge.corpus.scoring.word_scorer import DESCRIPTION, WordScorer
from paraforge.corpus.selection.filters.whole_corpus import sentence_keys
from paraforge.products.loading import load_fixed

PIECE_ROWS = 50_000
# Keys that connect pairs: both sides, the foreign side, and the image.
LINKS = 4
# The high halves of the keys of foreign sentences and images are changed, to differ from English texts.
_SALTS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)
# Most texts whose float32 vectors are in memory at once.
_BLOCK = 8192


@dataclass(frozen=True)
class Piece:
    """Row groups of a file of the corpus.

    number: number of the piece. first: number of its first row in the corpus.
    """

    number: int
    path: Path
    row_groups: tuple[int, ...]
    first: int
    rows: int

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Read the piece's rows; columns that the file lacks are left out. Raises InputError if it is
        damaged."""
        with open_file(self.path) as file:
            names = [name for name in columns if name in file.schema_arrow.names]
            return file.read_row_groups(list(self.row_groups), names, use_threads=False).select(names)


def cut_corpus(dataset: Dataset) -> list[Piece]:
    """Divide the corpus into pieces of about PIECE_ROWS rows, in order. Raises InputError if a file is
    damaged."""
    pieces: list[Piece] = []
    first = 0
    for path in dataset.files:
        with open_file(path) as file:
            for groups, rows in row_groups(file, PIECE_ROWS):
                pieces.append(Piece(len(pieces), path, groups, first, rows))
                first += rows
    return pieces


def link_keys(rows: pa.Table, same_lines: Sequence[str]) -> NDArray[np.uint64]:
    """Return the keys that paraphrases share, (rows, LINKS, 2): of both sides, the foreign side and the
    image; 0, 0 for none.

    rows: both sides, and ``source_text``, ``source`` and ``line`` if the corpus has them.
    same_lines: patterns of sources in which equal line numbers describe the same image.
    """
    keys = np.zeros((rows.num_rows, LINKS, 2), np.uint64)
    texts = [name for name in (*TEXT_COLUMNS, "source_text") if name in rows.column_names]
    keys[:, : len(texts)] = sentence_keys([rows[name] for name in texts])
    if "source_text" in texts:
        keys[keys[:, 2].any(1), 2, 0] ^= np.uint64(_SALTS[0])
    if same_lines and {"source", "line"} <= set(rows.column_names):
        names = rows["source"].combine_chunks().dictionary_encode()
        groups = [_first_match(name, same_lines) for name in names.dictionary.to_pylist()]
        group = np.array(groups, np.uint64)[names.indices.to_numpy()]
        line = rows["line"].to_numpy().astype(np.uint64)
        keys[:, 3, 0] = np.where(group > 0, line ^ np.uint64(_SALTS[1]), 0)
        keys[:, 3, 1] = group
    return keys


def _first_match(name: str, patterns: Sequence[str]) -> int:
    """Return the number, from 1, of the first pattern that a name matches; 0 if none does."""
    return next((n for n, pattern in enumerate(patterns, 1) if fnmatch.fnmatchcase(name, pattern)), 0)


def part(directory: Path, what: str, number: int, ending: str = "npy") -> Path:
    """Return the path of a file of a piece or a job."""
    return directory / f"{what}-{number:06d}.{ending}"


def save(path: Path, array: NDArray[Any]) -> None:
    """Write an array to a .npy file atomically."""
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        np.save(file, array, allow_pickle=False)


def load(path: Path, mapped: bool = False) -> NDArray[Any]:
    """Read an array written by :func:`save`; ``mapped`` maps the file into memory. Raises InputError if it is
    damaged."""
    with reading(path):
        array: NDArray[Any] = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    return array


@lru_cache(maxsize=1)
def open_encoder(name: str, device: str) -> tuple[Callable[[Any], Any], bool]:
    """Open an encoder by its name, once per process. Returns the function from texts to vectors, and whether
    it uses torch's threads.

    name: ``general`` (or another scorer of words: the sums of a text's word vectors), or any name for
        :func:`paraforge.load`. device: where it computes, if it uses torch.

    Raises InputError if this is not an encoder, or if it gives no vectors.
    """
    directory = _directory(name)
    if (directory / DESCRIPTION).is_file():
        return WordScorer.open(directory).vectors.of_texts, False
    model = load_fixed(name, device)
    return model.encode, model.uses_threads


def _directory(encoder: str) -> Path:
    return general.DIRECTORY if encoder == general.NAME else Path(encoder)


def fingerprint(name: str) -> str:
    """Return the SHA-256 of an encoder's files. Raises InputError if there are none."""
    path = _directory(name)
    if (path / DESCRIPTION).is_file():
        return sha256_file(path / DESCRIPTION)
    if not name or not path.exists():
        remedy = f"Use a model's directory, a vector file, or {general.NAME}."
        raise InputError("no such encoder", name, remedy=remedy)
    return sha256_directory(path) if path.is_dir() else sha256_file(path)


def expand_encoder_name(encoder: str) -> str:
    """Expand environment variables in an encoder's name, so that it means the same in every process."""
    path = expand(encoder)
    return str(Path(path).resolve()) if encoder != general.NAME and Path(path).exists() else path


def unit_vectors(encode: Callable[[Any], Any], texts: pa.ChunkedArray) -> NDArray[np.float16]:
    """Return vectors of length 1, (texts, dimension) float16; zeros for a text without a vector.

    encode: returns (texts, dimension). texts: strings without nulls.
    """
    blocks = []
    for first in range(0, max(1, len(texts)), _BLOCK):
        vectors = np.asarray(encode(texts.slice(first, _BLOCK).combine_chunks()), np.float32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        usable = np.isfinite(lengths) & (lengths > 0)
        unit = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=usable)
        blocks.append(unit.astype(np.float16))
    return np.concatenate(blocks)
