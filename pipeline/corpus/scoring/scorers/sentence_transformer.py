"""Cosine of both sides under a sentence-transformers model from a local directory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.base.errors import InputError, require
from paraforge.corpus.scorer import Column, Scale, Scorer, ScorerChoice
from paraforge.corpus.scoring.cosine import encoded_cosine

if TYPE_CHECKING:
    from paraforge.corpus.scoring.pairs import Pairs

PACKAGE: Final = "sentence_transformers"
EXTRA: Final = "sentence-transformers"


class SentenceTransformerCosine(Scorer):
    """Cosine of the embeddings of the reference and of the translation."""

    columns = (
        Column(
            "cosine",
            pa.float32(),
            "cosine under a sentence-transformers model",
            scale=Scale(-1, 1, 40),
            limits=(-1, 1),
        ),
    )
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
        self._model = load_model(Path(directory), device)
        self._batch_size = batch_size

    def __call__(self, pairs: Pairs) -> dict[str, Any]:
        """float32, -1 to 1; null where an embedding is all zeros."""
        return {"cosine": encoded_cosine(self._embed, pairs)}

    def _embed(self, texts: Any) -> npt.NDArray[np.float32]:
        embeddings = self._model.encode(
            texts.to_pylist(), batch_size=self._batch_size, convert_to_numpy=True, show_progress_bar=False
        )
        return np.asarray(embeddings, dtype=np.float32)


Kind = Literal["SentenceTransformer", "CrossEncoder"]
_KINDS: Final[dict[Kind, tuple[str, str]]] = {
    "SentenceTransformer": ("sentence-transformers model", "modules.json"),
    "CrossEncoder": ("cross-encoder", "config.json"),
}


def load_model(directory: Path, device: str = "cpu", kind: Kind = "SentenceTransformer") -> Any:
    """Load a model of the library from its directory; nothing is fetched and no code from the directory is
    run.

    Raises:
        MissingPackageError: sentence-transformers is not installed.
        InputError: no such directory, or no model in it.
    """
    check_directory(directory, kind)
    load = getattr(require(PACKAGE, EXTRA), kind)
    try:
        if kind == "SentenceTransformer":
            modules = json.loads((directory / _KINDS[kind][1]).read_text(encoding="utf-8"))
            # Versions 3.4 to 5 run the code of a directory, trusted or not.
            if not all(str(module["type"]).startswith(f"{PACKAGE}.") for module in modules):
                raise ValueError("modules.json names classes of others: trust_remote_code")
        return load(str(directory), device=device, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        own_code = "trust_remote_code" in str(error)
        problem = "it has code of its own, which is never run" if own_code else str(error)
        remedy = "Of an export by 'paraforge export' give the directory in it that has encoder.json."
        raise InputError(
            f"cannot be loaded as a {_KINDS[kind][0]}: {problem}",
            directory,
            remedy=remedy if own_code else None,
        ) from error


def dimension_of(model: Any) -> int:
    """Elements of a vector of a loaded `SentenceTransformer`."""
    # Newer versions warn of the longer name.
    of = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
    return int(of())


def check_directory(directory: Path, kind: Kind) -> None:
    """Refuse a directory that cannot be a model of this kind. Raises InputError: no such directory, or not
    the file in it that every such model has."""
    what, file = _KINDS[kind]
    if not (directory / file).is_file():
        remedy = f"Give a directory written by {kind}.save()."
        raise InputError(f"no {what} here (no {file})", directory, remedy=remedy)
