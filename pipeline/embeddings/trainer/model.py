"""A trained encoder with its vocabularies, which embeds texts; stored as one directory."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
import torch
from pydantic import TypeAdapter
from torch import Tensor
from torch.nn.functional import embedding_bag, normalize

from paraforge.base.devices import check_device
from paraforge.base.errors import InputError, check_format, describing
from paraforge.base.files import read_json, write_json
from paraforge.base.shards.work import replaced_directory
from paraforge.base.text.units import Units, make_units, parts_of_words
from paraforge.base.text.vocabulary import WORD_UNITS, Vocabulary
from paraforge.base.word_vectors.subword_vectors import hashed_vectors
from paraforge.embeddings.encoders.encoder import Encoder, build_encoder
from paraforge.embeddings.encoders.parameters import EncoderParameters
from paraforge.embeddings.evaluation.comparing import Model
from paraforge.embeddings.learning.batches import Bags
from paraforge.embeddings.learning.checkpoint import load_parameters, write_tensors
from paraforge.embeddings.trainer.mega_batches import encoded_parts

logger = logging.getLogger(__name__)

FORMAT = 1
_TENSORS = "model.safetensors"
_SENTENCEPIECE = "sentencepiece.model"
UNKNOWN_LENGTH = 1.2
"""Length of the letter part of an unknown word's vector, as a multiple of the mean length of the vectors of
the `RARE` rarest words."""
RARE = 1000
BATCH_TEXTS = 1 << 14
"""Texts to tokenize at once; a distinct word among them is processed once."""


class SentenceModel(Model):
    """Sentence embeddings of texts.

    On disk, it is a directory: `encoder.json` (format, architecture, dimension, units, unknown words, and
    information about the training), `model.safetensors`, `UNIT.vocabulary.json` for each unit, and
    `sentencepiece.model` if pieces are read.
    """

    description: ClassVar[str] = "encoder.json"
    architecture: ClassVar[TypeAdapter[Any]] = TypeAdapter(EncoderParameters)

    def __init__(
        self,
        encoder: Encoder,
        parameters: EncoderParameters,
        vocabularies: Mapping[str, Vocabulary],
        sentencepiece_model: Path | None = None,
        about: Mapping[str, Any] | None = None,
        unknown_words: Literal["own", "shared"] = "shared",
    ) -> None:
        """Make a model in memory. Raises InputError if SentencePiece's model is missing.

        vocabularies: for each unit, with an entry for every row of the encoder's tables.
        about: information to store with the model: training parameters, scores, data signature.
        unknown_words: `own` gives each word outside the vocabulary a fixed vector: the sum of a letter part
            (hashed vectors of the word and its trigrams, scaled to `UNKNOWN_LENGTH`) and the vectors of known
            words between its hyphens. `shared` gives all of them the unknown word's vector.
        """
        self.encoder = encoder.eval()
        self.dimension = encoder.dimension
        self.uses_threads = bool(encoder.composition())  # unlike for look-ups
        self.parameters = parameters
        self.about = dict(about or {})
        self.unknown_words = unknown_words
        self.vocabularies = {unit: vocabularies[unit] for unit in encoder.units()}
        self.sentencepiece_model = sentencepiece_model
        self._cutters: dict[str, Units] = {
            unit: make_units(unit, sentencepiece_model) for unit in encoder.units()
        }

    @property
    def device(self) -> torch.device:
        """The encoder's device."""
        return next(self.encoder.parameters()).device

    def vectors_of(self, column: Any) -> npt.NDArray[np.float32]:
        """See `Model`; also zeros for a text so long that a recurrent encoder overflows. A vector from an
        averaging encoder does not depend on the other texts."""
        vectors = np.empty((len(column), self.dimension), dtype=np.float32)
        for first in range(0, len(column), BATCH_TEXTS):
            batch, tables = self.inputs(column.slice(first, BATCH_TEXTS))
            row = first
            for part in encoded_parts(self.encoder, batch, self.device, tables):
                vectors[row : row + len(part)] = _finite(part.float().cpu().numpy())
                row += len(part)
        return vectors

    def batch(self, column: Any) -> dict[str, Bags]:
        """Return a pyarrow string column as ids of the vocabularies; unknown words are the unknown unit."""
        return self._cut(column, "shared")[0]

    def inputs(self, column: Any) -> tuple[dict[str, Bags], dict[str, Tensor] | None]:
        """Return a pyarrow string column in the encoder's form, and the rows of its tables that the ids refer
        to; None for the whole tables."""
        return self._cut(column, self.unknown_words)

    def _cut(
        self, column: Any, unknown_words: Literal["own", "shared"]
    ) -> tuple[dict[str, Bags], dict[str, Tensor] | None]:
        batch, tables = {}, {}
        for unit, cutter in self._cutters.items():
            (cut,) = cutter.cut(column)
            rows, ids = self.vocabularies[unit].ids_of(cut.vocabulary), cut.ids.astype(np.int64)
            missing = np.empty(0, dtype=np.int64)
            if unknown_words == "own" and unit in WORD_UNITS:
                used = np.bincount(cut.ids, minlength=len(rows)) > 0
                missing = np.flatnonzero(used & (rows == self.vocabularies[unit].unknown_id))
            if len(missing):
                words = [cut.vocabulary[place] for place in missing.tolist()]
                for name, of in self.encoder.table_units().items():
                    if of == unit:
                        tables[name] = self._rows(name, torch.from_numpy(rows), missing, words)
            else:
                ids = rows[ids]
            batch[unit] = Bags(torch.from_numpy(ids), torch.from_numpy(cut.offsets.astype(np.int64)))
        return batch, {**self.encoder.tables(), **tables} if tables else None

    def _rows(self, name: str, rows: Tensor, missing: npt.NDArray[np.int64], words: list[str]) -> Tensor:
        """Return rows of a table, with computed rows for missing words."""
        table = self.encoder.get_parameter(name).detach()
        vectors = table[rows.to(table.device)]
        if table.shape[1] > 1:  # a single number is the weight of a word
            length = UNKNOWN_LENGTH * float(table[-RARE:].norm(dim=1).mean())
            own = _letter_vectors(words, table.shape[1], length)
            vocabulary = self.vocabularies[self.encoder.table_units()[name]]
            parts = [(place, part) for place, word in enumerate(words) for part in word.split("-")]
            ids = torch.from_numpy(vocabulary.ids_of(part for _, part in parts))
            known = ids != vocabulary.unknown_id
            places = torch.tensor([place for place, _ in parts])[known]
            own.index_add_(0, places, table[ids[known].to(table.device)].to(own))
            vectors[torch.from_numpy(missing).to(table.device)] = own.to(vectors)
        return vectors

    def save(self, directory: Path, about: Mapping[str, Any] | None = None) -> None:
        """Write the model with `about`, or `self.about`, replacing `directory` as a whole."""
        with replaced_directory(directory) as temporary:
            write_json(
                temporary / self.description,
                {
                    "format": FORMAT,
                    "architecture": self.parameters.model_dump(mode="json"),
                    "dimension": self.dimension,
                    "unknown_words": self.unknown_words,
                    "vocabularies": {unit: len(vocabulary) for unit, vocabulary in self.vocabularies.items()},
                    "about": self.about if about is None else dict(about),
                },
            )
            for unit, vocabulary in self.vocabularies.items():
                vocabulary.save(temporary / f"{unit}.vocabulary.json")
            if self.sentencepiece_model is not None:
                shutil.copyfile(self.sentencepiece_model, temporary / _SENTENCEPIECE)
            write_tensors(temporary / _TENSORS, dict(self.encoder.named_parameters()))

    @classmethod
    def open(cls, directory: str | Path, device: str = "cpu") -> Self:
        """Open a directory written by `save`, on a device.

        Raises:
            ConfigurationError: no such device.
            InputError: not a model's directory (pickles are never loaded), or damaged.
        """
        check_device(device)
        directory = Path(directory)
        path = directory / cls.description
        if not path.is_file():
            remedy = "Use a directory such as models/embeddings/NAME; pickles (.pt, .bin) are never loaded."
            raise InputError("not a directory of a trained model", directory, remedy=remedy)
        content = read_json(path)
        with describing(path):
            check_format(content["format"], FORMAT, path)
            sizes = {str(unit): int(size) for unit, size in content["vocabularies"].items()}
            parameters = cls.architecture.validate_python(content["architecture"])
            about = dict(content["about"])
            unknown_words = content["unknown_words"]
            if unknown_words not in ("own", "shared"):
                raise ValueError(f"unknown_words {unknown_words!r}")
        vocabularies = {}
        for unit, size in sizes.items():
            vocabularies[unit] = Vocabulary.load(directory / f"{unit}.vocabulary.json")
            if len(vocabularies[unit]) != size:
                raise InputError(
                    f"{len(vocabularies[unit])} units, {cls.description} says {size}",
                    directory / f"{unit}.vocabulary.json",
                )
        pieces = directory / _SENTENCEPIECE
        try:
            with torch.device("meta"):  # no memory is reserved for sizes that the tensors may not have
                encoder = build_encoder(
                    parameters, lambda part, number: torch.empty(sizes[part.unit], part.dimension), seed=0
                )
        except KeyError as error:
            raise InputError(f"damaged: no vocabulary of {error} units", path) from error
        except (RuntimeError, TypeError) as error:
            raise InputError("damaged: its dimensions need more memory than there can be", path) from error
        load_parameters(encoder, directory / _TENSORS)
        encoder.to(device)
        found_pieces = pieces if pieces.is_file() else None
        return cls(encoder, parameters, vocabularies, found_pieces, about, unknown_words)


def _letter_vectors(words: Sequence[str], dimension: int, length: float) -> Tensor:
    """Return vectors of a length, (words, dimension): sums of the hashed vectors of trigrams and of the
    words."""
    parts = parts_of_words(words)
    hashed = torch.from_numpy(hashed_vectors(parts.vocabulary, dimension, 1.0))
    ids, offsets = torch.from_numpy(parts.ids.astype(np.int64)), torch.from_numpy(parts.offsets)
    sums = embedding_bag(ids, hashed, offsets, mode="sum", include_last_offset=True)
    return normalize(sums) * length


def _finite(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Replace overflowed vectors by zeros; identity-RNNs grow with the length."""
    if np.isfinite(vectors.sum()):
        return vectors
    finite = np.isfinite(vectors).all(axis=1, keepdims=True)
    if not finite.all():
        logger.warning("%d texts are too long for this model: their vectors are zero", (~finite).sum())
    return np.where(finite, vectors, np.float32(0))
