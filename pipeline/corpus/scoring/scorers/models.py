"""Scores from models: the paraphrase score, and those of sentence-transformers models in a directory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.base.errors import InputError, require
from paraforge.base.files import read_json_or_none
from paraforge.base.word_vectors.vectors import WordVectors
from paraforge.corpus.scorer import SHARES, Column, Scale, Scorer, ScorerChoice, SentenceEncoder
from paraforge.corpus.scoring.cosine import averaged_cosine, encoded_cosine
from paraforge.corpus.scoring.word_scorer import WordScorer

if TYPE_CHECKING:
    from paraforge.corpus.scoring.pairs import Pairs


class ParaphraseScore(Scorer):
    """The score of a word scorer (see :mod:`~paraforge.corpus.scoring.word_scorer`), or a cosine.

    With word vectors it is the cosine of the mean vectors of both sides' tokens. A token without a vector
    takes the unknown word's, if the table has one, otherwise it is left out; a side without any vector, or
    whose vectors sum to zero, has no score. With a trained model it is the cosine of both texts' vectors.
    """

    columns = (
        Column(
            "paraphrase_score",
            pa.float32(),
            "how well the translation says what the reference says. Built-in scorer: 0.35 cosine of "
            "averaged word vectors + 0.65 F-score of aligned words, lowered for repetitions and unequal "
            "lengths; otherwise the cosine of averaged word vectors, or of a model's sentence vectors",
            scale=Scale(-1, 1, 40),
            limits=(-1, 1),
        ),
    )
    place = 20

    def __init__(self, vectors: WordVectors | WordScorer | SentenceEncoder) -> None:
        self._vectors = vectors

    @classmethod
    def build(cls, choice: ScorerChoice) -> ParaphraseScore | None:
        """Build it with the chosen table or model."""
        return None if choice.vectors is None else cls(choice.vectors)

    def __call__(self, pairs: Pairs) -> dict[str, Any]:
        """Return float32, -1 to 1; null if a side has no vector."""
        tokens = (pairs.reference_tokens, pairs.translation_tokens)
        if isinstance(self._vectors, WordScorer):
            score = self._vectors.scores(*tokens)
            return {"paraphrase_score": pa.array(score, mask=np.isnan(score))}
        if not isinstance(self._vectors, WordVectors):
            return {"paraphrase_score": encoded_cosine(self._vectors.encode, pairs)}
        # The part of the table that this shard needs, small and in memory.
        score = averaged_cosine(*tokens, self._vectors.of_words(pairs.reference_tokens.vocabulary))
        return {"paraphrase_score": pa.array(score, mask=np.isnan(score))}


# Sentences or pairs that a model gets at once.
_BATCH_SIZE: Final = 64
PACKAGE: Final = "sentence_transformers"
EXTRA: Final = "sentence-transformers"


class SentenceTransformerCosine(Scorer):
    """The cosine of the embeddings of the reference and the translation."""

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
        """Build it if a model is given."""
        directory = choice.sentence_transformer_directory
        return None if directory is None else cls(directory, choice.device)

    def __init__(self, directory: str | Path, device: str = "cpu") -> None:
        """Load a model, see :func:`load_model`. device: `cpu`, `cuda` or `cuda:N`."""
        self._model = load_model(Path(directory), device)

    def __call__(self, pairs: Pairs) -> dict[str, Any]:
        """Return float32, -1 to 1; null if an embedding is all zeros."""
        return {"cosine": encoded_cosine(self._embed, pairs)}

    def _embed(self, texts: Any) -> npt.NDArray[np.float32]:
        embeddings = self._model.encode(
            texts.to_pylist(), batch_size=_BATCH_SIZE, convert_to_numpy=True, show_progress_bar=False
        )
        return np.asarray(embeddings, dtype=np.float32)


Kind = Literal["SentenceTransformer", "CrossEncoder"]
_KINDS: Final[dict[Kind, tuple[str, str]]] = {
    "SentenceTransformer": ("sentence-transformers model", "modules.json"),
    "CrossEncoder": ("cross-encoder", "config.json"),
}


def load_model(directory: Path, device: str = "cpu", kind: Kind = "SentenceTransformer") -> Any:
    """Load a sentence-transformers model from the directory that its `save` wrote, without network access and
    without running code from the directory.

    Raises:
        MissingPackageError: sentence-transformers is not installed.
        InputError: no such directory, or no model in it.
    """
    check_directory(directory, kind)
    load = getattr(require(PACKAGE, EXTRA), kind)
    try:
        if kind == "SentenceTransformer":
            modules = json.loads((directory / _KINDS[kind][1]).read_text(encoding="utf-8"))
            # Versions 3.4 to 5 run a directory's code, trusted or not.
            if not all(str(module["type"]).startswith(f"{PACKAGE}.") for module in modules):
                raise ValueError(
                    "modules.json names classes from outside sentence-transformers, which are never run "
                    "(trust_remote_code)"
                )
        return load(str(directory), device=device, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        own_code = "trust_remote_code" in str(error)
        problem = "it contains code, which is never run" if own_code else str(error)
        remedy = "For a directory from 'paraforge export', pass the subdirectory with encoder.json."
        raise InputError(
            f"cannot be loaded as a {_KINDS[kind][0]}: {problem}",
            directory,
            remedy=remedy if own_code else None,
        ) from error


def dimension_of(model: Any) -> int:
    """Return the dimension of a loaded `SentenceTransformer`."""
    # Newer versions warn about the longer name.
    of = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
    return int(of())


def check_directory(directory: Path, kind: Kind) -> None:
    """Raise InputError if a directory is missing or lacks the file that every model of this kind has."""
    what, file = _KINDS[kind]
    if not (directory / file).is_file():
        remedy = f"Use a directory written by {kind}.save()."
        raise InputError(f"not a {what}: {file} is missing", directory, remedy=remedy)


_ENTAILMENT = "entailment"


class CrossEncoderScore(Scorer):
    """The mean of both directions for a model with one output, such as STS; for an inference model, the
    smaller of the probabilities that each side entails the other."""

    columns = (
        Column(
            "cross_encoder",
            pa.float32(),
            "similarity under a cross-encoder, or the probability of entailment both ways",
            scale=SHARES,
            limits=(-inf, inf),
        ),
    )
    place = 71

    @classmethod
    def build(cls, choice: ScorerChoice) -> CrossEncoderScore | None:
        """Build it if a model is given."""
        directory = choice.cross_encoder_directory
        return None if directory is None else cls(directory, choice.device)

    def __init__(self, directory: str | Path, device: str = "cpu") -> None:
        """Load a model, see :func:`load_model`. device: `cpu`, `cuda` or `cuda:N`.

        Raises InputError also if it has neither a single output nor one for entailment.
        """
        directory = Path(directory)
        self._model = load_model(directory, device, "CrossEncoder")
        labels = {
            str(label).lower(): int(place) for place, label in self._model.model.config.id2label.items()
        }
        if len(labels) > 1 and _ENTAILMENT not in labels:
            raise InputError(
                f"this cross-encoder has the outputs {', '.join(labels)}",
                directory,
                remedy=f"Use one with a single output, or with an output {_ENTAILMENT}.",
            )
        self._entailment = labels.get(_ENTAILMENT) if len(labels) > 1 else None

    def __call__(self, pairs: Pairs) -> dict[str, Any]:
        """Return float32, for most models 0 to 1; null if a side has no token."""
        scores = self.similarity(pairs.reference.to_pylist(), pairs.translation.to_pylist())
        empty = (pairs.reference_tokens.lengths == 0) | (pairs.translation_tokens.lengths == 0)
        return {"cross_encoder": pa.array(scores.astype(np.float32), mask=empty)}

    def similarity(self, first: Sequence[str], second: Sequence[str], /) -> npt.NDArray[np.float64]:
        """Return the score of each pair in both directions, combined, (pairs,) float64."""
        forward, backward = self._judge(first, second), self._judge(second, first)
        scores = (forward + backward) / 2 if self._entailment is None else np.minimum(forward, backward)
        return np.asarray(scores, dtype=np.float64)

    def _judge(self, first: Sequence[str], second: Sequence[str]) -> Any:
        """Return the model's number for each pair in this order, (pairs,)."""
        if not len(first):
            return np.empty(0, dtype=np.float32)
        scores = self._model.predict(
            list(zip(first, second, strict=True)),
            batch_size=_BATCH_SIZE,
            apply_softmax=self._entailment is not None,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        scores = np.asarray(scores, dtype=np.float32)
        return scores if self._entailment is None else scores[:, self._entailment]


def is_cross_encoder(directory: Path) -> bool:
    """Return whether a directory has a model that classifies texts or gives a number for them."""
    described = read_json_or_none(directory / "config.json")
    names = described.get("architectures") if isinstance(described, dict) else None
    return any(str(name).endswith("ForSequenceClassification") for name in names or ())
