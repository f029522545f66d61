"""Trained decoders as a sentence model: text in, vectors or similarities out; one directory on disk; vectors
of further words by a linear map (Kiros et al. 2015)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from pydantic import TypeAdapter

from paraforge.base.errors import InputError
from paraforge.base.text.vocabulary import WORD, Vocabulary
from paraforge.base.word_vectors.vectors import WordVectors
from paraforge.embeddings.trainer.model import SentenceModel
from paraforge.papers.unrolling.network import Reader, SentencePredictor, compare
from paraforge.papers.unrolling.parameters import (
    DESCRIPTION,
    NetworkParameters,
    ReaderParameters,
    RepresentationParameters,
    check_representation,
    split_name,
)
from paraforge.papers.unrolling.triples import END


class DecoderModel(SentenceModel):
    """Sentence embeddings out of a network that predicts neighbouring sentences.

    On disk the directory of a `SentenceModel` whose description is `decoders.json`.
    """

    description: ClassVar[str] = DESCRIPTION
    architecture: ClassVar[TypeAdapter[Any]] = TypeAdapter(ReaderParameters)

    encoder: Reader
    parameters: ReaderParameters

    def __init__(
        self,
        encoder: Reader,
        parameters: ReaderParameters,
        vocabularies: Mapping[str, Vocabulary],
        *others: Any,
        **options: Any,
    ) -> None:
        """Make a model in memory, see `SentenceModel`; InputError where the vocabulary has no end of a
        sentence."""
        super().__init__(encoder, parameters, vocabularies, *others, **options)
        if END not in self.vocabulary:
            raise InputError("the vocabulary has no end of a sentence")
        encoder.end = self.vocabulary.id_of(END)

    @classmethod
    def of_network(
        cls,
        network: SentencePredictor,
        vocabulary: Vocabulary,
        representation: RepresentationParameters,
        maximum_length: int,
        about: Mapping[str, Any] | None = None,
    ) -> Self:
        """Return the model that reads a network by a representation; it shares the network's parameters."""
        parameters = ReaderParameters(
            dimension=network.architecture.word_dimension,
            layers=network.architecture,
            predicted=network.predicted,
            maximum_length=maximum_length,
            representation=representation,
        )
        return cls(Reader(network, parameters), parameters, {WORD: vocabulary}, about=about)

    @property
    def network(self) -> SentencePredictor:
        """The trained network."""
        return self.encoder.network

    @property
    def layers(self) -> NetworkParameters:
        """The network's architecture."""
        return self.parameters.layers

    @property
    def vocabulary(self) -> Vocabulary:
        """The words, and the end of a sentence."""
        return self.vocabularies[WORD]

    @property
    def representation(self) -> RepresentationParameters:
        """What represents a sentence, and how two are compared."""
        return self.parameters.representation

    @property
    def words(self) -> list[str]:
        """Those that its encoder knows."""
        return [word for word in super().words if word != END]

    def read_by(self, representation: RepresentationParameters) -> Self:
        """Return the same network, read by another representation; InputError where it has no states to
        unroll."""
        try:
            check_representation(self.layers, representation)
        except ValueError as error:
            raise InputError(str(error), remedy="Use context.") from error
        return self.of_network(
            self.network, self.vocabulary, representation, self.parameters.maximum_length, self.about
        )

    def similarity(self, first: Sequence[str] | Any, second: Sequence[str] | Any) -> npt.NDArray[np.float32]:
        """Return each text of `first` with the one at the same place of `second`: dot products, or cosines
        where the representation says so; 0 where one has no word."""
        return self.similarity_of_vectors(self.encode(first), self.encode(second)).astype(np.float32)

    def similarity_of_vectors(
        self, left: npt.NDArray[np.float32], right: npt.NDArray[np.float32]
    ) -> npt.NDArray[np.float64]:
        """Return the same of vectors, (rows, dimension) each; float64 (rows,)."""
        return compare(left, right, self.representation)

    @classmethod
    def open(cls, directory: str | Path, device: str = "cpu") -> Self:
        """Open what `save` wrote, on a device, and raise as `SentenceModel.open`.

        directory: behind `@` what to read it by if that is not what it was trained for.
        """
        place, representation = split_name(directory)
        model = super().open(place, device)
        return model if representation is None else model.read_by(representation)


def expand(model: DecoderModel, vectors: WordVectors) -> DecoderModel:
    """Return the model with a vector for every word of `vectors`, too, that its vocabulary does not have.

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
            remedy="Use vectors of the same language, lower-cased, with more words.",
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
    return DecoderModel.of_network(
        larger, words, model.representation, model.parameters.maximum_length, about
    )
