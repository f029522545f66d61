"""What classifiers see of a text or a pair of texts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from paraforge.base.errors import InputError
from paraforge.base.word_vectors.vectors import FloatArray
from paraforge.embeddings.evaluation.similarity.comparing import Adaptive, Comparable, SentenceEmbedder
from paraforge.embeddings.evaluation.transfer.files import Examples


def fixed_embedder(model: Comparable, texts: Sequence[str]) -> SentenceEmbedder:
    """The embedder that a task is done with; one that adapts sees the task's training texts. Raises
    InputError where the model gives no vectors."""
    if isinstance(model, Adaptive):
        model = model.adapted_to(texts)
    if not isinstance(model, SentenceEmbedder):
        raise InputError(
            "transfer tasks need vectors of sentences, and this only compares pairs",
            remedy="Give a model that embeds; the baselines are for --sts.",
        )
    return model


def features(embedder: SentenceEmbedder, examples: Examples) -> FloatArray:
    """The vector u of each text, (examples, dimension) float32; of pairs |u - v| and u * v side by side (W16
    Eq. 12), (examples, 2 x dimension)."""
    first = np.asarray(embedder.encode(examples.first), dtype=np.float32)
    if examples.second is None:
        return first
    second = np.asarray(embedder.encode(examples.second), dtype=np.float32)
    return pair_features(torch.from_numpy(first), torch.from_numpy(second)).numpy()


def pair_features(first: Tensor, second: Tensor) -> Tensor:
    """|u - v| and u * v side by side, (pairs, 2 x dimension)."""
    return torch.cat([(first - second).abs(), first * second], dim=1)


def standardiser(train: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of each column of the training examples, 1 in place of 0."""
    deviation = train.std(axis=0)
    return train.mean(axis=0), np.where(deviation > 0, deviation, 1).astype(np.float32)


def standardised(values: FloatArray, by: tuple[FloatArray, FloatArray]) -> npt.NDArray[np.float32]:
    """Columns with the mean 0 and the standard deviation 1 on the training examples."""
    return ((values - by[0]) / by[1]).astype(np.float32)
