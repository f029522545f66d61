"""Small texts for the tests of unrolling."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from paraforge.embeddings.learning.batches import Bags
from paraforge.embeddings.trainer.parameters import VocabularyParameters
from paraforge.papers.unrolling.model import DecoderModel
from paraforge.papers.unrolling.network import SentencePredictor
from paraforge.papers.unrolling.parameters import NetworkParameters
from paraforge.papers.unrolling.triples import SentenceBlock, TripleStore, build_triple_store

KINDS = [("bow", "bow"), ("bow", "gru"), ("gru", "bow"), ("gru", "gru")]
SIZES = {"word_dimension": 5, "state_dimension": 4}


def block(*documents: list[str], first: int = 0) -> SentenceBlock:
    """Documents as one block."""
    numbers = [first + number for number, document in enumerate(documents) for _ in document]
    texts = [sentence for document in documents for sentence in document]
    return SentenceBlock(pa.array(texts, pa.string()), np.array(numbers, dtype=np.int64))


def random_documents(documents: int = 6, seed: int = 1, words: int = 12) -> list[list[str]]:
    """Documents of three to nine sentences of one to seven words."""
    generator = np.random.default_rng(seed)
    names = [f"w{number}" for number in range(words)]
    return [
        [
            " ".join(generator.choice(names, generator.integers(1, 8)))
            for _ in range(generator.integers(3, 10))
        ]
        for _ in range(documents)
    ]


def make_store(directory: Path, documents: list[list[str]] | None = None, **values: Any) -> TripleStore:
    """The triples of random documents, or of these."""
    limits = VocabularyParameters(minimum_count=1, maximum_size=values.pop("maximum_size", 1000))
    given = random_documents() if documents is None else documents
    return build_triple_store(directory, [block(*given)], limits)


def make_network(encoder: str, decoder: str, words: int = 9, **values: Any) -> SentencePredictor:
    """A small network in float64, with gains and biases that are not 1 and 0."""
    settings = {**SIZES, **values, "encoder": encoder, "decoder": decoder}
    network = SentencePredictor(NetworkParameters.model_validate(settings), words, seed=3).double()
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for name, value in sorted(network.named_parameters()):
            if name.endswith(("gain", "bias")):
                value += 0.3 * torch.randn(value.shape, dtype=value.dtype, generator=generator)
            else:
                value *= 8  # so that no state is nearly linear
    return network


def bags(*sentences: list[int]) -> Bags:
    """Sentences of ids."""
    offsets = np.cumsum([0, *map(len, sentences)])
    ids = [number for sentence in sentences for number in sentence]
    return Bags(torch.tensor(ids, dtype=torch.int64), torch.from_numpy(offsets))


def make_model(encoder: str, decoder: str, directory: Path) -> DecoderModel:
    """An untrained model over the words of random documents."""
    store = make_store(directory)
    parameters = NetworkParameters.model_validate({"encoder": encoder, "decoder": decoder, **SIZES})
    network = SentencePredictor(parameters, len(store.vocabulary), seed=2)
    with torch.no_grad():
        for name, value in network.named_parameters():
            if not name.endswith(("gain", "bias")):
                value *= 8
    return DecoderModel.of_network(network, store.vocabulary)
