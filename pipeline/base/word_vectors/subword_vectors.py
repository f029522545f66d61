"""Vectors for every word: the sum of the vectors of its character trigrams and of the word itself, with eight
bits per number. Texts without a vector get one drawn from their hash."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from paraforge.base.errors import InputError
from paraforge.base.files import write_whole
from paraforge.base.text.tokens import tokenize_column
from paraforge.base.text.units import parts_of_words
from paraforge.base.word_vectors.vectors import FloatArray

_LARGEST: Final = 127
_KINDS: Final = {"numbers": "int8", "scales": "float32", "parts": "uint8", "unknown_length": "float32"}


def quantize_rows(vectors: FloatArray) -> tuple[npt.NDArray[np.int8], FloatArray]:
    """Quantize vectors, (rows, dimension), to 8-bit integers with a scale per row; each row's largest number
    becomes 127."""
    largest = np.maximum(np.abs(vectors).max(axis=1), np.float32(1e-12))
    scales = (largest / _LARGEST).astype(np.float32)
    return np.rint(vectors / scales[:, None]).astype(np.int8), scales


class SubwordVectors:
    """Parts of words, as in the unit `word_trigram`, and their vectors.

    A part without a vector gets a random one that is always the same, so a name or a word in another alphabet
    is similar only to itself.
    """

    def __init__(
        self,
        parts: Sequence[str],
        numbers: npt.NDArray[np.int8],
        scales: FloatArray,
        unknown_length: float,
    ) -> None:
        """Make the vectors in memory.

        parts: distinct, none with a line break.
        numbers: parts x dimension; row k times scales[k] is the vector of part k. scales: float32 (parts,).
        unknown_length: length of the vector of a part that is not among `parts`.

        Raises ValueError if the sizes differ, or a part comes twice or has a line break.
        """
        self.parts = list(parts)
        self.numbers = numbers
        self.scales = scales
        self.unknown_length = unknown_length
        self._rows = {part: row for row, part in enumerate(self.parts)}
        if numbers.ndim != 2 or len({len(self.parts), len(self._rows), len(numbers), len(scales)}) > 1:
            raise ValueError(f"{len(self._rows)} parts, numbers {numbers.shape}, {len(scales)} scales")
        if any("\n" in part for part in self.parts):
            raise ValueError("a part has a line break")

    @classmethod
    def quantized(cls, parts: Sequence[str], vectors: FloatArray, unknown_length: float) -> SubwordVectors:
        """Quantize float32 vectors, (parts, dimension): each row's largest number becomes 127."""
        return cls(parts, *quantize_rows(vectors), unknown_length)

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""
        return int(self.numbers.shape[1])

    def of_words(self, words: Sequence[str]) -> FloatArray:
        """Return the vectors of lower-cased tokens, (words, dimension) float32."""
        rows = parts_of_words(words)
        return np.asarray(rows.sums(self._vectors_of_parts(rows.vocabulary)), np.float32)

    def of_texts(self, texts: Any) -> FloatArray:
        """Return the sums of the vectors of texts' words, (texts, dimension) float32; zeros for no word."""
        tokens = tokenize_column(texts)
        return np.asarray(tokens.sums(self.of_words(tokens.vocabulary)), np.float32)

    def knows(self, words: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Return which words are themselves parts, (words,)."""
        return np.array([f"\t{word}" in self._rows for word in words], dtype=bool)

    def _vectors_of_parts(self, parts: Sequence[str]) -> FloatArray:
        rows = np.array([self._rows.get(part, -1) for part in parts], dtype=np.int64)
        vectors = self.numbers[rows] * self.scales[rows, None]
        unknown = np.flatnonzero(rows < 0)
        missing = [parts[place] for place in unknown.tolist()]
        vectors[unknown] = hashed_vectors(missing, self.dimension, self.unknown_length)
        return vectors.astype(np.float32, copy=False)

    def save(self, path: Path) -> None:
        """Write a safetensors file; its bytes depend only on the content."""
        from safetensors.numpy import save

        tensors: dict[str, npt.NDArray[Any]] = {
            "numbers": self.numbers,
            "scales": self.scales,
            "parts": np.frombuffer("\n".join(self.parts).encode(), dtype=np.uint8),
            "unknown_length": np.array([self.unknown_length], dtype=np.float32),
        }
        write_whole(path, save(tensors))

    @classmethod
    def open(cls, path: Path) -> SubwordVectors:
        """Open a file written by `save`. Raises InputError if it is missing, damaged, or another file."""
        from safetensors import SafetensorError
        from safetensors.numpy import load

        try:
            tensors: dict[str, Any] = load(path.read_bytes())
            kinds = {name: str(tensor.dtype) for name, tensor in tensors.items()}
            if kinds != _KINDS:
                raise ValueError(f"it holds {kinds}")
            if not all(np.isfinite(tensors[name]).all() for name in ("scales", "unknown_length")):
                raise ValueError("a scale is not finite")
            return cls(
                tensors["parts"].tobytes().decode().split("\n"),
                tensors["numbers"],
                tensors["scales"],
                float(tensors["unknown_length"].item()),
            )
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", path) from error
        except (SafetensorError, ValueError) as error:
            raise InputError(f"not a file of subword vectors: {error}", path) from error


def hashed_vectors(texts: Sequence[str], dimension: int, length: float) -> FloatArray:
    """Return a vector of this length for each text, (texts, dimension) float32: the signs are the first bits
    of SHAKE128 of its UTF-8 bytes. So a name is similar only to itself."""
    size = (dimension + 7) // 8
    drawn = [hashlib.shake_128(text.encode("utf-8", "surrogatepass")).digest(size) for text in texts]
    bits = np.unpackbits(np.frombuffer(b"".join(drawn), dtype=np.uint8).reshape(-1, size), axis=1)
    signs = 2 * bits[:, :dimension].astype(np.float32) - 1
    return signs * np.float32(length / dimension**0.5)
