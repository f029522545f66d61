"""Stores sentences as ids of units on disk, memory-mapped; 5 million pairs take a few hundred megabytes."""

import hashlib
import mmap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from paraforge.base.errors import InputError
from paraforge.base.text.ragged import offsets_of, ranges
from paraforge.base.text.tokens import TokenColumn
from paraforge.base.text.vocabulary import Vocabulary
from paraforge.embeddings.learning.batches import Bags

_CHUNK_IDS = 1 << 22


class IdSequences:
    """Sequences of ids in a directory, by number: `UNIT.ids`, `UNIT.starts` and `UNIT.vocabulary.json`.

    vocabulary: the units. tokens: ids of all sequences.
    """

    def __init__(self, directory: Path, unit: str, sequences: int, described: Mapping[str, Any]) -> None:
        """Open the files of an `IdSequencesWriter`.

        sequences: number of sequences. described: result of its `finish`.

        Raises InputError if a file is missing or incomplete.
        """
        self.vocabulary = Vocabulary.load(directory / f"{unit}.vocabulary.json")
        self.tokens, dtype = described["tokens"], described["dtype"]
        self._path = directory / f"{unit}.ids"
        self._ids = map_array(self._path, dtype, (self.tokens,))
        self._starts = map_array(directory / f"{unit}.starts", "int64", (sequences + 1,))

    def select(self, sequences: npt.NDArray[np.int64]) -> Bags:
        """Return the sequences of these numbers, in this order."""
        starts = np.asarray(self._starts[sequences])
        lengths = self._starts[sequences + 1] - starts
        ids = self._ids[ranges(starts, lengths)].astype(np.int64)
        return Bags(torch.from_numpy(ids), torch.from_numpy(offsets_of(lengths)))

    def counts(self) -> npt.NDArray[np.int64]:
        """Return how often each unit occurs, int64 (vocabulary,)."""
        total = np.zeros(len(self.vocabulary), dtype=np.int64)
        with self._path.open("rb") as file:  # not mapped, so that it does not stay in memory
            while len(part := np.fromfile(file, self._ids.dtype, _CHUNK_IDS)):
                total += np.bincount(part, minlength=len(total))
        return total

    def release(self) -> None:
        """Release the memory of the mapped files."""
        release(self._ids)
        release(self._starts)


class IdSequencesWriter:
    """Writes sequences whose vocabulary is decided at the end. Until then, units are numbered by first
    appearance, and `counts` has their occurrences."""

    def __init__(self, directory: Path, unit: str, known: Iterable[str] = ()) -> None:
        """known: units with the first numbers."""
        self._stem = directory / unit
        self._numbers = {text: number for number, text in enumerate(known)}
        self.counts = np.zeros(len(self._numbers), dtype=np.int64)
        self._tokens = 0
        self._provisional = self._file("provisional").open("wb")
        self._starts = self._file("starts").open("wb")
        self._starts.write(np.zeros(1, dtype=np.int64).tobytes())

    def _file(self, suffix: str) -> Path:
        return self._stem.with_name(f"{self._stem.name}.{suffix}")

    @property
    def units(self) -> list[str]:
        """All units so far, in the order of their numbers."""
        return list(self._numbers)

    def append(self, column: TokenColumn) -> None:
        """Append sequences."""
        known = self._numbers
        numbers = [known.setdefault(unit, len(known)) for unit in column.vocabulary]
        ids = np.array(numbers, dtype=np.int32)[column.ids]
        self.counts = np.pad(self.counts, (0, len(known) - len(self.counts)))
        self.counts += np.bincount(ids, minlength=len(known))
        self._provisional.write(ids.tobytes())
        self._starts.write((column.offsets[1:] + self._tokens).tobytes())
        self._tokens += len(ids)

    def close(self) -> None:
        """Close the files; it can be called repeatedly."""
        self._provisional.close()
        self._starts.close()

    def finish(self, vocabulary: Vocabulary, ids: npt.NDArray[Any]) -> dict[str, Any]:
        """Write the final ids and the vocabulary. Returns their description as JSON values.

        ids: the vocabulary id for each unit's number.
        """
        self.close()
        dtype = np.uint16 if len(vocabulary) <= 1 << 16 else np.int32
        final = ids.astype(dtype)
        digest = hashlib.sha256()
        with self._file("provisional").open("rb") as source, self._file("ids").open("wb") as target:
            while data := source.read(4 * _CHUNK_IDS):
                part = final[np.frombuffer(data, dtype=np.int32)]
                target.write(part.tobytes())
                digest.update(part.tobytes())
        self._file("provisional").unlink()
        vocabulary.save(self._file("vocabulary.json"))
        return {
            "vocabulary": len(vocabulary),
            "tokens": self._tokens,
            "dtype": np.dtype(dtype).name,
            "sha256": digest.hexdigest(),
        }


def map_array(path: Path, dtype: npt.DTypeLike, shape: tuple[int]) -> npt.NDArray[Any]:
    """Map the numbers in a file. Raises InputError if it is missing or has another size."""
    size = np.dtype(dtype).itemsize * shape[0]
    actual = path.stat().st_size if path.is_file() else 0
    if actual != size:
        raise InputError(f"{actual} bytes, its index says {size}", path, remedy="Build it again.")
    return np.memmap(path, dtype=dtype, mode="r", shape=shape)


def release(mapped: npt.NDArray[Any] | None) -> None:
    """Release the memory of a mapped array; it is read again when needed."""
    pages: Any = mapped
    while isinstance(pages, np.ndarray):
        pages = pages.base
    if isinstance(pages, mmap.mmap) and hasattr(pages, "madvise"):
        pages.madvise(mmap.MADV_DONTNEED)
