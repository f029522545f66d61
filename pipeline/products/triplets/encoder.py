"""The encoder that triplets are mined with: whatever gives vectors, and the words of the built-in scorer."""

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.base.errors import InputError
from paraforge.base.files import sha256_directory, sha256_file
from paraforge.base.text.paths import expand
from paraforge.base.text.tokens import tokenize_column
from paraforge.corpus.scoring import general
from paraforge.corpus.scoring.word_scorer import DESCRIPTION, WordScorer
from paraforge.embeddings.evaluation.similarity.comparing import CosineModel, Model
from paraforge.products.loading import load_fixed

# Texts whose vectors are in memory as float32 at once.
_BLOCK = 8192
Vectors = npt.NDArray[np.float16]


class WordSums(CosineModel):
    """The vectors whose cosine is a part of a word scorer's score: the sums of those of a text's words."""

    uses_threads = False

    def __init__(self, scorer: WordScorer) -> None:
        self._vectors = scorer.vectors

    @property
    def dimension(self) -> int:
        """Elements of a vector."""
        return self._vectors.dimension

    def encode(self, texts: Any, /) -> npt.NDArray[np.float32]:
        """(texts, dimension) float32; zeros for a text without a token."""
        tokens = tokenize_column(texts)
        return np.asarray(tokens.sums(self._vectors.of_words(tokens.vocabulary)), np.float32)


@lru_cache(maxsize=1)
def open_encoder(name: str, device: str) -> Model:
    """Open an encoder by its name, once a process.

    name: ``general``, or what :func:`paraforge.load` opens. device: where it computes, if it uses torch.

    Raises InputError: nothing of the kind, or it gives no vectors.
    """
    directory = general.DIRECTORY if name == general.NAME else Path(name)
    if (directory / DESCRIPTION).is_file():
        return WordSums(WordScorer.open(directory))
    return load_fixed(name, device)


def fingerprint(name: str) -> str:
    """SHA-256 of an encoder's files. Raises InputError: there are none."""
    directory = general.DIRECTORY if name == general.NAME else Path(name)
    if (directory / DESCRIPTION).is_file():
        return sha256_file(directory / DESCRIPTION)
    path = directory if directory.exists() else Path(name.rpartition("@")[0])
    if not name or not path.exists() or path == Path():
        raise InputError(
            "no such encoder", name, remedy=f"Give a model's directory, a vector file, or {general.NAME}."
        )
    found = sha256_directory(path) if path.is_dir() else sha256_file(path)
    return found if path == directory else f"{found}@{name.rpartition('@')[2]}"


def expanded(encoder: str) -> str:
    """Fill environment variables into an encoder's name, so that it means the same in every process."""
    path = expand(encoder)
    return str(Path(path).resolve()) if encoder != general.NAME and Path(path).exists() else path


def unit_vectors(encoder: Model, texts: pa.ChunkedArray) -> Vectors:
    """Vectors of length 1, (texts, dimension) float16; zeros for a text that has none.

    texts: strings without nulls.
    """
    found = np.zeros((len(texts), encoder.dimension), np.float16)
    for first in range(0, len(texts), _BLOCK):
        block = texts.slice(first, _BLOCK).combine_chunks()
        vectors = np.asarray(encoder.encode(block), np.float32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        usable = np.isfinite(lengths) & (lengths > 0)
        found[first : first + _BLOCK] = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=usable)
    return found


def has_vector(vectors: Vectors) -> npt.NDArray[np.bool_]:
    """Which rows are not all zeros."""
    return np.asarray(vectors.any(axis=1))
