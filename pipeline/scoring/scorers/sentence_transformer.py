"""Cosine of both sides under a sentence-transformers model from a local directory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.errors import InputError, require
from paraforge.scoring.encoded import encoded_cosine
from paraforge.scoring.scorer import Scorer, ScorerChoice
from paraforge.shards.column import column

if TYPE_CHECKING:
    from paraforge.scoring.pairs import Pairs

PACKAGE: Final = "sentence_transformers"
EXTRA: Final = "sentence-transformers"


class SentenceTransformerCosine(Scorer):
    """Cosine of the embeddings of the reference and of the translation."""

    fields = (column("cosine", pa.float32(), "cosine under a sentence-transformers model"),)
    place = 70

    @classmethod
    def build(cls, choice: ScorerChoice) -> SentenceTransformerCosine | None:
        """Where a model is given."""
        directory = choice.sentence_transformer_directory
        return None if directory is None else cls(directory, choice.device)

    def __init__(self, directory: str | Path, device: str = "cpu", batch_size: int = 64) -> None:
        """Load a model; nothing is fetched and no code from the directory is run.

        directory: as `SentenceTransformer.save` writes it. device: `cpu`, `cuda` or `cuda:N`.
        batch_size: sentences embedded at once.

        Raises:
            MissingPackageError: sentence-transformers is not installed.
            InputError: no such directory, or no model in it.
        """
        self._model = load_sentence_transformer(Path(directory), device)
        self._batch_size = batch_size

    def __call__(self, pairs: Pairs) -> dict[str, Any]:
        """float32, -1 to 1; null where an embedding is all zeros."""
        return {"cosine": encoded_cosine(self._embed, pairs)}

    def _embed(self, texts: Any) -> npt.NDArray[np.float32]:
        embeddings = self._model.encode(
            texts.to_pylist(), batch_size=self._batch_size, convert_to_numpy=True, show_progress_bar=False
        )
        return np.asarray(embeddings, dtype=np.float32)


def load_sentence_transformer(directory: Path, device: str = "cpu") -> Any:
    """Load a model from its directory; nothing is fetched and no code from the directory is run.

    Raises:
        MissingPackageError: sentence-transformers is not installed.
        InputError: no such directory, or no model in it.
    """
    check_directory(directory)
    package = require(PACKAGE, EXTRA)
    try:
        return package.SentenceTransformer(
            str(directory), device=device, local_files_only=True, trust_remote_code=False
        )
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise InputError(f"cannot be loaded as a sentence-transformers model: {error}", directory) from error


def check_directory(directory: Path) -> None:
    """Refuse a directory that cannot be a sentence-transformers model. Raises InputError: no such directory,
    or no `modules.json` in it."""
    if not (directory / "modules.json").is_file():
        raise InputError(
            "no sentence-transformers model here (no modules.json)",
            directory,
            remedy="Give a directory written by SentenceTransformer.save().",
        )
