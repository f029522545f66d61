"""Writes and reads binarized parts: tokens of sentence pairs in fairseq's memory-mapped format."""

import shutil
import struct
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from paraforge.base.text.ragged import offsets_of
from paraforge.translation.models.sentencepiece import SPECIAL_TYPES

# fairseq has the sizes and batches of one part in memory (about 100 bytes per pair).
PAIRS_PER_PART = 4_000_000
# fairseq's type for a vocabulary's size, and its type codes.
_FEW_TYPES, _CODES = 65_500, {"<u2": 8, "<u4": 9}
# How an index begins: version, the type's code, number of sentences. Their lengths and positions follow.
_MAGIC, _HEADER = b"MMIDIDX\0\0", "<QBQ"


def encode_sentences(processor: Any, sentences: list[str], threads: int = 1) -> pa.ListArray:
    """Return fairseq's tokens of each sentence, including end-of-sentence; see :func:`write_dictionary`."""
    encoded = processor.encode(sentences, num_threads=threads)
    lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
    offsets = offsets_of(lengths + 1)
    tokens = np.full(offsets[-1], SPECIAL_TYPES.index("</s>"), np.int32)
    is_end = np.zeros(len(tokens), np.bool_)
    is_end[offsets[1:] - 1] = True
    tokens[~is_end] = np.fromiter(chain.from_iterable(encoded), np.int32, int(lengths.sum()))
    tokens[~is_end] += len(SPECIAL_TYPES) - 1
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(tokens))


class _Side:
    """One side of a split: ``.bin`` has the tokens, ``.idx`` the length and the position of each sentence."""

    def __init__(self, stem: Path, kind: str) -> None:
        self._stem, self._kind = stem, kind
        self._lengths: list[NDArray[np.int32]] = []

    def write(self, sentences: pa.ChunkedArray) -> int:
        """Add lists of tokens. Returns the number of tokens."""
        tokens = pc.list_flatten(sentences).to_numpy()
        with Path(f"{self._stem}.bin").open("ab") as file:
            tokens.astype(self._kind).tofile(file)
        self._lengths.append(pc.list_value_length(sentences).to_numpy().astype("<i4"))
        return len(tokens)

    def close(self) -> None:
        lengths = np.concatenate([np.empty(0, "<i4"), *self._lengths])
        places = (np.cumsum(lengths, dtype="<i8") - lengths) * np.dtype(self._kind).itemsize
        with Path(f"{self._stem}.idx").open("wb") as file:
            file.write(_MAGIC + struct.pack(_HEADER, 1, _CODES[self._kind], len(lengths)))
            lengths.tofile(file)
            places.tofile(file)


def read_side(stem: Path) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Return the tokens of all sentences of one side, end to end, and the length of each sentence, both
    memory-mapped.

    stem: its files without `.bin` and `.idx`.
    """
    index = Path(f"{stem}.idx")
    with index.open("rb") as file:
        header = file.read(len(_MAGIC) + struct.calcsize(_HEADER))
    _, code, count = struct.unpack(_HEADER, header[len(_MAGIC) :])
    kind = next(name for name, number in _CODES.items() if number == code)
    lengths = np.memmap(index, "<i4", "r", offset=len(header), shape=(count,))
    return np.memmap(f"{stem}.bin", kind, "r"), lengths


class PartWriter:
    """Writes pairs of ``source`` and ``target`` tokens to ``parts/part-0000`` ..., with bounded sizes.

    parts: their names. pairs: number of written pairs. tokens: number of tokens on both sides.
    """

    def __init__(self, directory: Path, languages: Sequence[str]) -> None:
        """directory: directory with fairseq's dictionaries of both languages."""
        self._directory, self._languages = directory, languages
        self._dictionaries = [directory / f"dict.{language}.txt" for language in languages]
        lines = max(path.read_bytes().count(b"\n") for path in self._dictionaries)
        self._kind = "<u2" if lines + len(SPECIAL_TYPES) < _FEW_TYPES else "<u4"
        self._sides: list[_Side] = []
        self.parts: list[str] = []
        self.pairs = 0
        self.tokens = [0, 0]

    def _open(self, part: str, split: str) -> list[_Side]:
        stem = self._directory / part / f"{split}.{'-'.join(self._languages)}"
        return [_Side(Path(f"{stem}.{language}"), self._kind) for language in self._languages]

    def write(self, pairs: pa.Table) -> None:
        """Add pairs."""
        while pairs.num_rows:
            room = len(self.parts) * PAIRS_PER_PART - self.pairs
            if not room:
                self.close()
                self.parts.append(f"parts/part-{len(self.parts):04d}")
                (self._directory / self.parts[-1]).mkdir(parents=True)
                for path in self._dictionaries:
                    shutil.copyfile(path, self._directory / self.parts[-1] / path.name)
                self._sides = self._open(self.parts[-1], "train")
                continue
            here, pairs = pairs.slice(0, room), pairs.slice(room)
            self.pairs += here.num_rows
            for number, side in enumerate(self._sides):
                self.tokens[number] += side.write(here.column(number))

    def close(self) -> None:
        """Finish the last part."""
        for side in self._sides:
            side.close()
        self._sides = []

    def write_held_out(self, pairs: pa.Table) -> None:
        """Write the validation split to the first part, where fairseq expects it."""
        for side, column in zip(self._open(self.parts[0], "valid"), pairs.columns, strict=True):
            side.write(column)
            side.close()
