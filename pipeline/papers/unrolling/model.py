"""Embeds and compares texts with trained decoders; adds words to their vocabulary (Kiros et al. 2015)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from pydantic import TypeAdapter

from paraforge.base.errors import InputError
from paraforge.base.text.vocabulary import WORD, Vocabulary
from paraforge.base.word_vectors.vectors import WordVectors
from paraforge.corpus.scoring.cosine import check_rows
from paraforge.embeddings.trainer.model import SentenceModel
from paraforge.papers.unrolling.network import Reader, SentencePredictor
from paraforge.papers.unrolling.parameters import (
    DESCRIPTION,
    ReaderParameters,
    RepresentationParameters,
    split_name,
)
from paraforge.papers.unrolling.triples import END


class DecoderModel(SentenceModel):
    """Sentence embeddings from a network that predicts neighboring sentences.

    On disk, it is the directory of a `SentenceModel` with the description `decoders.json`.
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
        """Make a model in memory; see `SentenceModel`.

        Raises InputError if the vocabulary has no end-of-sentence symbol, or the decoders have no states to
        unroll.
        """
        kind = parameters.representation.kind
        if parameters.layers.decoder == "bow" and kind != "context":
            raise InputError(
                f"representation {kind}: a bow decoder has no states to unroll", remedy="Use context."
            )
        super().__init__(encoder, parameters, vocabularies, *others, **options)
        if END not in self.vocabulary:
            raise InputError("the vocabulary has no end-of-sentence symbol")
        encoder.end = self.vocabulary.id_of(END)

    @classmethod
    def of_network(
        cls,
        network: SentencePredictor,
        vocabulary: Vocabulary,
        representation: RepresentationParameters | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> Self:
        """Return a model for a network; it shares the network's parameters.

        representation: None for the one that the training objective compares: unrolled for gru decoders,
        context for bow decoders. Raises InputError as the constructor.
        """
        bow = network.architecture.decoder == "bow"
        chosen = representation or RepresentationParameters(kind="context" if bow else "unrolled")
        parameters = ReaderParameters(
            dimension=network.architecture.word_dimension,
            layers=network.architecture,
            predicted=network.predicted,
            representation=chosen,
        )
        return cls(Reader(network, parameters), parameters, {WORD: vocabulary}, about=about)

    @property
    def network(self) -> SentencePredictor:
        """The trained network."""
        return self.encoder.network

    @property
    def vocabulary(self) -> Vocabulary:
        """The words and the end of sentence."""
        return self.vocabularies[WORD]

    @property
    def representation(self) -> RepresentationParameters:
        """The representation and similarity of sentences."""
        return self.parameters.representation

    def read_by(self, representation: RepresentationParameters) -> Self:
        """Return the same network with another representation. Raises the errors of `of_network`."""
        return self.of_network(self.network, self.vocabulary, representation, self.about)

    def similarity_of_vectors(
        self, left: npt.NDArray[np.float32], right: npt.NDArray[np.float32]
    ) -> npt.NDArray[np.floating]:
        """Return the dot product or cosine of the rows at the same index, as the representation says,
        (rows,)."""
        if self.representation.similarity == "cosine":
            return super().similarity_of_vectors(left, right)
        check_rows(left, right)
        return np.einsum("ij,ij->i", left, right, dtype=np.float64)

    @classmethod
    def open(cls, directory: str | Path, device: str = "cpu") -> Self:
        """Open a model written by `save` on a device. Raises the errors of `SentenceModel.open`.

        directory: can end with `@` and the name of another representation.
        """
        place, representation = split_name(directory)
        model = super().open(place, device)
        return model if representation is None else model.read_by(representation)


def expand(model: DecoderModel, vectors: WordVectors) -> DecoderModel:
    """Return the model with the words of `vectors` added to its vocabulary.

    A matrix, fitted by least squares on the words in both, maps the given vectors to the model's vectors. The
    decoders still predict only the words that they were trained on.

    Raises InputError if there are fewer words in common than `vectors` has dimensions.
    """
    vocabulary, network = model.vocabulary, model.network
    given = vectors.words
    # The vectors of words that were added before come from another map, so they are not used for the fit.
    trained = {*vocabulary.units[: network.predicted]} - {vocabulary.unknown, END}
    shared = [row for row, word in enumerate(given) if word in trained]
    if len(shared) < vectors.dimension:
        raise InputError(
            f"{len(shared):,} words in common, but the {vectors.dimension} dimensions need as many words",
            remedy="Use vectors of the same language, lower-cased, with more words.",
        )
    table = network.words.detach().cpu().double().numpy()
    ids = vocabulary.ids_of([given[row] for row in shared])
    source = np.asarray(vectors.vectors[shared], dtype=np.float64)
    mapping = np.linalg.lstsq(source, table[ids], rcond=None)[0]
    added = [row for row, word in enumerate(given) if word not in vocabulary]
    new = (np.asarray(vectors.vectors[added], dtype=np.float64) @ mapping).astype(np.float32)
    words = Vocabulary([*vocabulary.units, *(given[row] for row in added)], vocabulary.unknown)
    larger = SentencePredictor(network.architecture, len(words), 0, network.predicted)
    parameters = dict(network.state_dict())
    parameters["words"] = torch.cat([parameters["words"].cpu(), torch.from_numpy(new)])
    larger.load_state_dict(parameters)
    about = {**model.about, "expanded": {"words": len(added), "shared": len(shared)}}
    return DecoderModel.of_network(larger, words, model.representation, about)
