"""What a cross-encoder says of a pair: similarity, or entailment both ways; from a local directory."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.base.errors import InputError
from paraforge.base.files import read_json_or_none
from paraforge.corpus.scorer import SHARES, Column, Scorer, ScorerChoice
from paraforge.corpus.scoring.scorers.sentence_transformer import load_model

if TYPE_CHECKING:
    from paraforge.corpus.scoring.pairs import Pairs

_ENTAILMENT = "entailment"


class CrossEncoderScore(Scorer):
    """The mean of both directions of a model with one output, such as one of STS; of a model of inference
    the smaller of the probabilities that either side entails the other."""

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
        """Where a model is given."""
        directory = choice.cross_encoder_directory
        return None if directory is None else cls(directory, choice.device)

    def __init__(self, directory: str | Path, device: str = "cpu", batch_size: int = 64) -> None:
        """Load a model; nothing is fetched and no code from the directory is run.

        directory: as `CrossEncoder.save` writes it. device: `cpu`, `cuda` or `cuda:N`. batch_size: pairs
            judged at once.

        Raises MissingPackageError: sentence-transformers is not installed. InputError: no such directory, no
        model in it, or one that gives neither a number nor an entailment.
        """
        directory = Path(directory)
        self._model = load_model(directory, device, "CrossEncoder")
        labels = {
            str(label).lower(): int(place) for place, label in self._model.model.config.id2label.items()
        }
        if len(labels) > 1 and _ENTAILMENT not in labels:
            raise InputError(
                f"a cross-encoder with the outputs {', '.join(labels)}",
                directory,
                remedy=f"Give one with a single output, or with one named {_ENTAILMENT}.",
            )
        self._entailment = labels.get(_ENTAILMENT) if len(labels) > 1 else None
        self._batch_size = batch_size

    def __call__(self, pairs: Pairs) -> dict[str, Any]:
        """float32, for most models 0 to 1; null where a side has no token."""
        scores = self.similarity(pairs.reference.to_pylist(), pairs.translation.to_pylist())
        empty = (pairs.reference_tokens.lengths == 0) | (pairs.translation_tokens.lengths == 0)
        return {"cross_encoder": pa.array(scores.astype(np.float32), mask=empty)}

    def similarity(self, first: Sequence[str], second: Sequence[str], /) -> npt.NDArray[np.float64]:
        """What the model says of each pair, both ways as said, (pairs,) float64."""
        there, back = self._judge(first, second), self._judge(second, first)
        scores = (there + back) / 2 if self._entailment is None else np.minimum(there, back)
        return np.asarray(scores, dtype=np.float64)

    def _judge(self, first: Sequence[str], second: Sequence[str]) -> Any:
        """The number of each pair in this order, (pairs,)."""
        if not len(first):
            return np.empty(0, dtype=np.float32)
        scores = self._model.predict(
            list(zip(first, second, strict=True)),
            batch_size=self._batch_size,
            apply_softmax=self._entailment is not None,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        scores = np.asarray(scores, dtype=np.float32)
        return scores if self._entailment is None else scores[:, self._entailment]


def is_cross_encoder(directory: Path) -> bool:
    """Whether a directory has a model that classifies texts, or gives a number for them."""
    described = read_json_or_none(directory / "config.json")
    names = described.get("architectures") if isinstance(described, dict) else None
    return any(str(name).endswith("ForSequenceClassification") for name in names or ())
