"""Opens anything that embeds or compares sentences by its name: a directory, a file, or `general`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from paraforge.base.devices import check_device, chosen_device
from paraforge.base.errors import InputError
from paraforge.base.word_vectors.vectors import TABLE_NAME, WordVectors, table_directory
from paraforge.corpus.scoring import general
from paraforge.corpus.scoring.scorers.models import CrossEncoderScore, is_cross_encoder
from paraforge.corpus.scoring.word_scorer import DESCRIPTION, WordScorer
from paraforge.embeddings.evaluation.averages import DESCRIPTION as SIF_DESCRIPTION
from paraforge.embeddings.evaluation.averages import WordAverage, describe_average, open_sif
from paraforge.embeddings.evaluation.comparing import Model, OpenedModel
from paraforge.products.paraphrasing.paraphraser import Paraphraser, is_paraphraser

_TRAINED = "encoder.json"
_SENTENCE_TRANSFORMERS = "modules.json"
_PICKLES = (".pt", ".pth", ".pkl", ".pickle", ".ckpt")
_WITH_VECTORS = (
    f"Use a trained model, a vector file, or a directory of word vectors ({TABLE_NAME}), of SIF "
    f"({SIF_DESCRIPTION}) or of sentence-transformers ({_SENTENCE_TRANSFORMERS})"
)
_KNOWN = (
    f"{_WITH_VECTORS}; to compare without vectors, use a cross-encoder or {general.NAME}, the built-in "
    "scorer."
)


class SentenceTransformerEmbedder(Model):
    """A sentence-transformers model from a local directory."""

    uses_threads = True

    def __init__(self, directory: Path, device: str = "cpu") -> None:
        """Load it; see :func:`~paraforge.corpus.scoring.scorers.models.load_model`."""
        from paraforge.corpus.scoring.scorers.models import dimension_of, load_model

        self._model: Any = load_model(directory, device)
        self.dimension = dimension_of(self._model)

    def vectors_of(self, column: Any) -> npt.NDArray[np.float32]:
        """See `Model`."""
        strings = column.to_pylist()
        vectors = self._model.encode(strings, batch_size=64, convert_to_numpy=True, show_progress_bar=False)
        return np.asarray(vectors, dtype=np.float32)


def load(name: str | Path, device: str = "cpu") -> Model:
    """Open any model that embeds sentences; see :func:`paraforge.load`."""
    model: Any = open_model(str(name), device=device).model
    if isinstance(model, WordScorer | CrossEncoderScore):
        raise InputError(f"'{name}' compares sentences and gives no vectors", remedy=f"{_WITH_VECTORS}.")
    opened: Model = model
    return opened


def load_any(name: str | Path, device: str = "cpu") -> Any:
    """Open a model like :func:`load`, or a paraphraser; see :func:`paraforge.load`."""
    return Paraphraser(Path(name), device) if is_paraphraser(Path(name)) else load(name, device)


def load_fixed(name: str | Path, device: str = "cpu") -> Model:
    """Open a model like :func:`load`, for a file that is read in blocks. A model that learns from the given
    texts would differ between blocks.

    Raises InputError for such a model, and as :func:`load`.
    """
    model = load(name, device)
    if isinstance(model, WordAverage) and model.of_each_set:
        remedy = "Make it again: python -m experiments.programs sif VECTORS OUTPUT --fit SENTENCES"
        raise InputError("this SIF model was saved without a common component", name, remedy=remedy)
    return model


def open_model(name: str, sentences: Sequence[str] = (), device: str = "cpu") -> OpenedModel:
    """Open a model by a user's name for it.

    name: a directory (a trained model, word vectors, SIF, sentence-transformers, a cross-encoder; recognized
        by its description file), a vector file, which is averaged, or `general`, the built-in scorer.
    sentences: not used; callers give other openers the sentences of their sets.

    Raises:
        ConfigurationError: no such device. `auto` is resolved only if the model uses torch, which takes
            seconds to import.
        InputError: not a model, or damaged; pickles are never loaded.
        MissingPackageError: a package that it needs is not installed.
    """
    if device != "auto":
        check_device(device)
    path = general.DIRECTORY if name == general.NAME else Path(name)
    if (path / DESCRIPTION).is_file():
        return OpenedModel(name, "scorer of words", WordScorer.open(path))
    if (path / _TRAINED).is_file():
        return _open_trained(path, device)
    if (path / SIF_DESCRIPTION).is_file():
        sif = open_sif(path)
        return OpenedModel(name, describe_average(sif), sif, sif.vectors)
    if is_cross_encoder(path):
        return OpenedModel(name, "cross-encoder", CrossEncoderScore(path, chosen_device(device)))
    if (path / _SENTENCE_TRANSFORMERS).is_file():
        return OpenedModel(
            name, "sentence-transformers", SentenceTransformerEmbedder(path, chosen_device(device))
        )
    _refuse_pickle(path)
    if (path / TABLE_NAME).is_file() or path.is_file():
        vectors = WordVectors.open(table_directory(path))
        return OpenedModel(name, "plain average of word vectors", WordAverage(vectors), vectors)
    raise InputError("not a model" if path.exists() else "no such model", path, remedy=_KNOWN)


def _refuse_pickle(path: Path) -> None:
    """Raise a clear error for a PyTorch checkpoint, instead of reading it as text."""
    if path.suffix.lower() in _PICKLES and path.is_file():
        raise InputError("pickles are never loaded", path, remedy=_KNOWN)


def _open_trained(path: Path, device: str) -> OpenedModel:
    from paraforge.embeddings.inference.export import averaged_words, word_vectors
    from paraforge.embeddings.trainer.model import SentenceModel

    model = SentenceModel.open(path, chosen_device(device))
    words = None if averaged_words(model.parameters) is None else word_vectors(model)
    kind = f"trained {model.parameters.kind}, {model.dimension} dimensions"
    return OpenedModel(str(path), kind, model, words)
