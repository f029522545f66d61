"""A trained network with its vocabulary: text in, vectors or similarities out; one directory on disk; vectors
of further words by a linear map (Kiros et al. 2015)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch

from paraforge.base.devices import check_device
from paraforge.base.errors import InputError, check_format, describing
from paraforge.base.files import read_json, write_json
from paraforge.base.shards.work import replaced_directory
from paraforge.base.text.units import Words
from paraforge.base.text.vocabulary import Vocabulary
from paraforge.base.word_vectors.vectors import WordVectors
from paraforge.embeddings.learning.batches import Bags
from paraforge.embeddings.learning.checkpoint import load_parameters, write_tensors
from paraforge.papers.unrolling.network import (
    SentencePredictor,
    compare,
    dimension_of,
    represent,
    unrolled,
)
from paraforge.papers.unrolling.parameters import (
    DESCRIPTION,
    DecodersParameters,
    RepresentationParameters,
    check_representation,
    split_name,
)
from paraforge.papers.unrolling.triples import END, VOCABULARY, with_ends

FORMAT = 2
_TENSORS = "model.safetensors"
_CUT_TEXTS = 1 << 14
"""Texts that are cut into words at once."""
BATCH_SENTENCES = 256
"""Sentences that go through the network at once."""


class DecoderModel:
    """Sentence embeddings out of a network that predicts neighbouring sentences.

    On disk a directory: `decoders.json` (format, all parameters, size of the vocabulary, how many of its
    words are predicted, and what `save` was given about training), `model.safetensors` and
    `word.vocabulary.json`.
    """

    def __init__(
        self,
        network: SentencePredictor,
        parameters: DecodersParameters,
        vocabulary: Vocabulary,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        """Make a model in memory; `about` is what else is kept with it. Raises InputError where vectors and
        vocabulary differ in size, or the vocabulary has no end of a sentence."""
        if len(network.words) != len(vocabulary):
            raise InputError(f"{len(network.words)} word vectors, the vocabulary has {len(vocabulary)} words")
        if END not in vocabulary:
            raise InputError("the vocabulary has no end of a sentence")
        self.network = network.eval()
        self.parameters = parameters
        self.vocabulary = vocabulary
        self.about = dict(about or {})
        self._words = Words()

    @property
    def representation(self) -> RepresentationParameters:
        """What represents a sentence, and how two are compared."""
        return self.parameters.reading

    @property
    def dimension(self) -> int:
        """Elements of a sentence's vector."""
        return dimension_of(self.parameters.network, self.representation)

    @property
    def words(self) -> list[str]:
        """Those that its encoder knows."""
        return [word for word in self.vocabulary.units if word not in (self.vocabulary.unknown, END)]

    @property
    def uses_threads(self) -> bool:
        """Whether a second thread is worth its cost inside torch's operations."""
        return True

    def read_by(self, representation: RepresentationParameters) -> DecoderModel:
        """Return the same network, read by another representation; InputError where it has no states to
        unroll."""
        try:
            check_representation(self.parameters.network, representation)
        except ValueError as error:
            raise InputError(str(error), remedy="Use context.") from error
        parameters = self.parameters.model_copy(update={"representation": representation})
        return DecoderModel(self.network, parameters, self.vocabulary, self.about)

    def encode(self, texts: str | Sequence[str] | Any) -> npt.NDArray[np.float32]:
        """Return vectors of texts (strings, or a pyarrow string column), (texts, dimension) float32, in
        order, or of a single text, (dimension,); zeros for a text without a word. Other texts change a vector
        by rounding at most.
        """
        if isinstance(texts, str):
            return self.encode([texts])[0]
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for rows, bags in self._batches(texts):
            with torch.no_grad():
                part = represent(self.network, bags, self.representation)
            vectors[rows] = part.float().cpu().numpy()
        return vectors

    def states(self, texts: Sequence[str] | Any, steps: int) -> npt.NDArray[np.float32]:
        """Return the decoders' first states, (texts, 2, steps, state dimension) float32; zeros for a text
        without words."""
        self.read_by(RepresentationParameters(kind="unrolled", steps=steps))
        dimension = self.network.context_dimension
        result = np.zeros((len(texts), 2, steps, dimension), dtype=np.float32)
        for rows, bags in self._batches(texts):
            with torch.no_grad():
                result[rows] = unrolled(self.network, self.network.encode(bags), steps).float().cpu().numpy()
        return result

    def similarity(self, first: Sequence[str] | Any, second: Sequence[str] | Any) -> npt.NDArray[np.float32]:
        """Return each text of `first` with the one at the same place of `second`: dot products, or cosines
        where the representation says so; 0 where one has no word."""
        return self.similarity_of_vectors(self.encode(first), self.encode(second)).astype(np.float32)

    def similarity_of_vectors(
        self, left: npt.NDArray[np.float32], right: npt.NDArray[np.float32]
    ) -> npt.NDArray[np.float64]:
        """Return the same of vectors, (rows, dimension) each; float64 (rows,)."""
        return compare(left, right, self.representation)

    def _batches(self, texts: Sequence[str] | Any) -> Iterator[tuple[npt.NDArray[np.int64], Bags]]:
        """Yield the texts that have words, some at a time: their rows, and their ids with ends."""
        column = texts if isinstance(texts, pa.Array | pa.ChunkedArray) else pa.array(texts, pa.string())
        end = self.vocabulary.id_of(END)
        device = self.network.words.device
        for first in range(0, len(column), _CUT_TEXTS):
            (cut,) = self._words.cut(column.slice(first, _CUT_TEXTS))
            rows = np.flatnonzero(cut.lengths > 0)
            lookup = self.vocabulary.ids_of(cut.vocabulary).astype(np.int32)
            # Texts without words have no ids, so leaving them out is leaving out their offsets.
            offsets = np.append(cut.offsets[rows], cut.offsets[-1])
            ids, offsets = with_ends(lookup[cut.ids], offsets, end, self.parameters.maximum_length)
            for start in range(0, len(rows), BATCH_SENTENCES):
                part = offsets[start : start + BATCH_SENTENCES + 1]
                taken = ids[part[0] : part[-1]].astype(np.int64)
                bags = Bags(torch.from_numpy(taken), torch.from_numpy(part - part[0])).to(device)
                yield first + rows[start : start + BATCH_SENTENCES], bags

    def save(self, directory: Path) -> None:
        """Write the model; what `directory` had is replaced as a whole."""
        with replaced_directory(directory) as temporary:
            write_json(
                temporary / DESCRIPTION,
                {
                    "format": FORMAT,
                    "parameters": self.parameters.model_dump(mode="json"),
                    "vocabulary": len(self.vocabulary),
                    "predicted": self.network.predicted,
                    "about": self.about,
                },
            )
            self.vocabulary.save(temporary / VOCABULARY)
            write_tensors(temporary / _TENSORS, dict(self.network.named_parameters()))

    @classmethod
    def open(cls, name: str | Path, device: str = "cpu") -> DecoderModel:
        """Open what `save` wrote, on a device.

        name: its directory, and behind `@` what to read it by if that is not what it was trained for.

        Raises:
            ConfigurationError: no such device.
            InputError: not such a directory (a pickle is never opened), or damaged.
        """
        check_device(device)
        directory, representation = split_name(name)
        if not (directory / DESCRIPTION).is_file():
            remedy = (
                "Train one with 'python -m experiments.programs train-decoders'; pickles (.pt, .bin) are "
                "never loaded."
            )
            raise InputError("not a directory of trained decoders", directory, remedy=remedy)
        path = directory / DESCRIPTION
        content = read_json(path)
        with describing(path):
            check_format(content["format"], FORMAT, path)
            parameters = DecodersParameters.model_validate(content["parameters"])
            size, about = int(content["vocabulary"]), dict(content["about"])
            predicted = int(content["predicted"])
            if not 0 < predicted <= size:
                raise ValueError(f"{predicted} of {size} words predicted")
        vocabulary = Vocabulary.load(directory / VOCABULARY)
        if len(vocabulary) != size:
            raise InputError(f"{len(vocabulary)} words, {DESCRIPTION} says {size}", directory / VOCABULARY)
        try:
            network = SentencePredictor(parameters.network, size, 0, predicted)
        except (RuntimeError, MemoryError) as error:
            raise InputError("damaged: its dimensions need more memory than there is", path) from error
        load_parameters(network, directory / _TENSORS)
        model = cls(network.to(device), parameters, vocabulary, about)
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
    return DecoderModel(larger, model.parameters, words, about)
