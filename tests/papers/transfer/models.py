"""Small models and tasks for tests of end-to-end training."""

import numpy as np
import torch

from paraforge.base.text.vocabulary import UNKNOWN, Vocabulary
from paraforge.embeddings.encoders.encoder import build_encoder
from paraforge.embeddings.encoders.parameters import AverageParameters, EncoderParameters, units_of
from paraforge.embeddings.trainer.initial import random_table
from paraforge.embeddings.trainer.model import SentenceModel
from paraforge.papers.transfer.tasks import Examples

WORDS = [f"word{number}x" for number in range(40)]


def make_model(parameters: EncoderParameters | None = None, words: list[str] | None = None) -> SentenceModel:
    """Random vectors of these words, or of a few trigrams of them."""
    parameters = parameters or AverageParameters(dimension=2)
    units = {
        "word": [UNKNOWN, *(WORDS if words is None else words)],
        "trigram": [UNKNOWN, "wor", "ord", "d1x", "1x "],
    }
    vocabularies = {unit: Vocabulary(units[unit]) for unit in units_of(parameters)}
    encoder = build_encoder(
        parameters,
        lambda part, number: random_table(len(vocabularies[part.unit]), part.dimension, 0.5, number),
        seed=3,
    )
    return SentenceModel(encoder, parameters, vocabularies)


def snapshot(model: SentenceModel) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in model.encoder.named_parameters()}


def sentiment(count: int, seed: int) -> Examples:
    """The even words are good, the odd ones bad; of three words the majority counts."""
    drawn = np.random.default_rng(seed).integers(0, len(WORDS), (count, 3))
    labels = np.where((drawn % 2).sum(axis=1) >= 2, "bad", "good").tolist()
    return Examples([" ".join(WORDS[word] for word in row) for row in drawn.tolist()], None, labels)


def related(count: int, seed: int) -> Examples:
    """The score falls with the good words of one side that the other lacks."""
    generator = np.random.default_rng(seed)
    first, second = generator.integers(0, len(WORDS), (2, count, 3))
    good = [(side % 2 == 0).sum(axis=1) for side in (first, second)]
    scores = 5 - 4 / 3 * np.abs(good[0] - good[1])
    sides = [[" ".join(WORDS[word] for word in row) for row in side.tolist()] for side in (first, second)]
    return Examples(sides[0], sides[1], [f"{score:.2f}" for score in scores])
