"""Vocabulary expansion: vectors of words outside the vocabulary by a linear map (Kiros et al. 2015)."""

from __future__ import annotations

import numpy as np
import torch

from paraforge.base.errors import InputError
from paraforge.base.text.vocabulary import Vocabulary
from paraforge.base.word_vectors.vectors import WordVectors
from paraforge.embeddings.unrolling.model import DecoderModel
from paraforge.embeddings.unrolling.network import SentencePredictor
from paraforge.embeddings.unrolling.triples import END


def expand(model: DecoderModel, vectors: WordVectors) -> DecoderModel:
    """The model with a vector for every word of `vectors`, too, that its vocabulary does not have.

    The map is the matrix that takes the vectors of the words that both have to those that the model learnt,
    with the least squared error. Decoders predict the words that they were trained on, as before.

    Raises InputError: both have fewer words in common than `vectors` has dimensions.
    """
    vocabulary, network = model.vocabulary, model.network
    own = {vocabulary.unknown, END}
    given = vectors.words
    # Not the words of an earlier expansion, whose vectors are those of another map.
    trained = {*vocabulary.units[: network.predicted]} - own
    shared = [row for row, word in enumerate(given) if word in trained]
    if len(shared) < vectors.dimension:
        raise InputError(
            f"{len(shared):,} words in common, fewer than the vectors' {vectors.dimension} dimensions",
            remedy="Give vectors of the same language, lower-cased, with more words.",
        )
    table = network.words.detach().cpu().double().numpy()
    ids = vocabulary.ids_of([given[row] for row in shared])
    source = np.asarray(vectors.vectors[shared], dtype=np.float64)
    mapping = np.linalg.lstsq(source, table[ids], rcond=None)[0]
    added = [
        row
        for row, word in enumerate(given)
        if word not in vocabulary and word not in own and word != vectors.unknown
    ]
    new = (np.asarray(vectors.vectors[added], dtype=np.float64) @ mapping).astype(np.float32)
    words = Vocabulary([*vocabulary.units, *(given[row] for row in added)], vocabulary.unknown)
    larger = SentencePredictor(network.architecture, len(words), 0, network.predicted)
    parameters = dict(network.state_dict())
    parameters["words"] = torch.cat([parameters["words"].cpu(), torch.from_numpy(new)])
    larger.load_state_dict(parameters)
    about = {**model.about, "expanded": {"words": len(added), "shared": len(shared)}}
    return DecoderModel(larger, model.parameters, words, about)
