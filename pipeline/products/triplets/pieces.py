"""A published corpus in pieces that are read on their own, and the files that they are kept in."""

import fnmatch
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from paraforge.base.sealed import sealed_path
from paraforge.base.shards.lineage import LINEAGE
from paraforge.base.shards.store import row_groups
from paraforge.corpus.publication.datasets import Dataset, open_file
from paraforge.corpus.selection.filters.near_duplicates import sentence_keys

SIDES = ("reference", "translation")
REASONS = ("blank", "same", "no_vector", "cluster", "margin")
"""Why a pair gives no triplet: a side is blank; both are the same but for case, punctuation and spaces; one
has no vector; the candidates are of its own cluster, or of too few others; the others are too similar."""
KEPT = 255
PIECE_ROWS = 50_000
# What joins pairs: both sides, the foreign side, and the image.
LINKS = 4
# Foreign sentences and images are no English texts: their keys are told apart by other high halves.
_SALTS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)


@dataclass(frozen=True)
class Piece:
    """Row groups of a file of the corpus. first: number of its first row in the corpus."""

    path: Path
    row_groups: tuple[int, ...]
    first: int
    rows: int
    columns: tuple[str, ...]
    """Columns of the file that triplets are made of."""

    def read(self, columns: Sequence[str]) -> pa.Table:
        """The piece's rows. Raises InputError: the file is damaged."""
        with open_file(self.path) as file:
            return file.read_row_groups(list(self.row_groups), list(columns), use_threads=False).select(
                list(columns)
            )


def cut_corpus(dataset: Dataset) -> list[Piece]:
    """The corpus in pieces of about PIECE_ROWS rows, in order. Raises InputError: a file is damaged."""
    wanted = (*SIDES, *LINEAGE, "source_text")
    columns = tuple(name for name in dataset.schema.names if name in wanted)
    pieces = []
    first = 0
    for path in dataset.files:
        with open_file(path) as file:
            for groups, rows in row_groups(file, PIECE_ROWS):
                pieces.append(Piece(path, groups, first, rows, columns))
                first += rows
    return pieces


def link_keys(rows: pa.Table, same_lines: Sequence[str]) -> NDArray[np.uint64]:
    """Keys that paraphrases share, (rows, LINKS, 2): of both sides, of the foreign side, of the image. 0, 0
    where there is none.

    rows: with both sides; perhaps ``source_text``, ``source``, ``line``.
    same_lines: patterns of sources that are read from the same rows.
    """
    keys = np.zeros((rows.num_rows, LINKS, 2), np.uint64)
    texts = [name for name in (*SIDES, "source_text") if name in rows.column_names]
    keys[:, : len(texts)] = sentence_keys([rows[name] for name in texts])
    if "source_text" in texts:
        keys[keys[:, 2].any(1), 2, 0] ^= np.uint64(_SALTS[0])
    if same_lines and {"source", "line"} <= set(rows.column_names):
        names = rows["source"].combine_chunks().dictionary_encode()
        groups = [_first_match(name, same_lines) for name in names.dictionary.to_pylist()]
        group = np.array([*groups, 0], np.uint64)[
            pc.fill_null(names.indices, len(groups)).to_numpy(zero_copy_only=False)
        ]
        line = pc.fill_null(rows["line"], -1).to_numpy().astype(np.uint64)
        keys[:, 3, 0] = np.where(group > 0, line ^ np.uint64(_SALTS[1]), 0)
        keys[:, 3, 1] = group
    return keys


def _first_match(name: str, patterns: Iterable[str]) -> int:
    """Number, from 1, of the first pattern that a name matches; 0 where none does."""
    return next((n for n, one in enumerate(patterns, 1) if fnmatch.fnmatchcase(name, one)), 0)


def same_sides(keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which rows of :func:`link_keys` have sides that are the same but for case, punctuation and spaces."""
    found: NDArray[np.bool_] = (keys[:, 0] == keys[:, 1]).all(1)
    return found


def part(directory: Path, what: str, number: int, ending: str = "bin") -> Path:
    """A file that a piece or a job is kept in."""
    return directory / f"{what}-{number:06d}.{ending}"


def write_array(values: NDArray[Any], path: Path) -> None:
    """Write an array's bytes alone, to be read in parts, and seal them."""
    with sealed_path(path) as temporary:
        np.ascontiguousarray(values).tofile(temporary)


def read_array(path: Path, kind: Any, first: int = 0, count: int = -1, width: int = 0) -> NDArray[Any]:
    """Rows of what :func:`write_array` wrote. width: of a row; 0 for plain numbers."""
    kind = np.dtype(kind)
    each = max(1, width)
    values = np.fromfile(path, kind, -1 if count < 0 else count * each, offset=first * each * kind.itemsize)
    return values.reshape(-1, width) if width else values
