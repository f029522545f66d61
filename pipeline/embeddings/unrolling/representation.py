"""What represents a sentence: the encoder's context, or the states of the unrolled decoders (DD 3.3,
Figure 1, Appendix C)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from paraforge.corpus.scoring.cosine import check_rows, cosine_of_rows
from paraforge.embeddings.learning.batches import Bags
from paraforge.embeddings.unrolling.network import SentencePredictor
from paraforge.embeddings.unrolling.parameters import NetworkParameters, RepresentationParameters

DECODERS = 2


def unrolled(network: SentencePredictor, context: Tensor, steps: int) -> Tensor:
    """The first hidden states of both recurrent decoders, (sentences, 2, steps, context_dimension).

    The first step is fed <GO>, as in training, each other the mean of all word vectors under the
    probabilities that the step before gave (DD Figure 1). context: (sentences, context_dimension).
    """
    sides = []
    for side in range(DECODERS):
        decoder, output = network.decoder(side), network.output(side)
        state, given = context, decoder.start.expand(len(context), -1)
        states = []
        for step in range(steps):
            state = decoder.gru.step(decoder.gru.project(given), state)
            states.append(state)
            if step + 1 < steps:
                given = output.probabilities(state) @ network.words[: network.predicted]
        sides.append(torch.stack(states, 1))
    return torch.stack(sides, 1)


def represent(
    network: SentencePredictor, sentences: Bags, representation: RepresentationParameters
) -> Tensor:
    """Vectors of sentences, (sentences, dimension): see `dimension_of`."""
    context = network.encode(sentences)
    if representation.kind == "context":
        return context
    return of_states(unrolled(network, context, representation.steps), representation)


def of_states(states: Tensor, representation: RepresentationParameters) -> Tensor:
    """Vectors out of states that may be of more steps than are wanted, (sentences, dimension)."""
    first = states[:, :, : representation.steps]
    return first.mean((1, 2)) if representation.kind == "mean" else first.flatten(1)


def dimension_of(network: NetworkParameters, representation: RepresentationParameters) -> int:
    """Elements of a vector."""
    states = DECODERS * representation.steps if representation.kind == "unrolled" else 1
    return states * network.context_dimension


def compare(
    left: npt.NDArray[np.float32], right: npt.NDArray[np.float32], representation: RepresentationParameters
) -> npt.NDArray[np.float64]:
    """Similarity of the rows at the same place, (rows,) float64: their dot product, or cosine; 0 with a zero
    vector."""
    if representation.similarity == "dot":
        check_rows(left, right)
        return np.einsum("ij,ij->i", left, right, dtype=np.float64)
    return np.nan_to_num(cosine_of_rows(left, right).astype(np.float64), nan=0.0)
