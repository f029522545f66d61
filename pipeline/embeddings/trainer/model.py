"""A trained encoder with its vocabularies: text in, vectors out; one directory on disk."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch
from pydantic import TypeAdapter

from paraforge.base.devices import check_device
from paraforge.base.errors import InputError, check_format, describing
from paraforge.base.files import read_json, write_json
from paraforge.base.shards.work import replaced_directory
from paraforge.base.text.unit_names import WORD_UNITS
from paraforge.base.text.units import Units, make_units
from paraforge.base.text.vocabulary import Vocabulary
from paraforge.embeddings.encoders.build import build_encoder
from paraforge.embeddings.encoders.parameters import EncoderParameters
from paraforge.embeddings.encoders.protocol import Encoder
from paraforge.embeddings.evaluation.similarity.comparing import CosineModel
from paraforge.embeddings.learning.batches import Bags
from paraforge.embeddings.learning.checkpoint import load_parameters, write_tensors
from paraforge.embeddings.trainer.mega_batches import encoded_parts

logger = logging.getLogger(__name__)

FORMAT = 1
_DESCRIPTION = "encoder.json"
_TENSORS = "model.safetensors"
_SENTENCEPIECE = "sentencepiece.model"
_PARAMETERS: TypeAdapter[EncoderParameters] = TypeAdapter(EncoderParameters)
BATCH_TEXTS = 1 << 14
"""Texts that are cut at once: a distinct word among them is looked at once."""


class SentenceModel(CosineModel):
    """Sentence embeddings of texts.

    On disk a directory: `encoder.json` (format, architecture, dimension, units, and what `save` was given
    about training), `model.safetensors`, `UNIT.vocabulary.json` for each unit, and `sentencepiece.model`
    where pieces are read.
    """

    def __init__(
        self,
        encoder: Encoder,
        parameters: EncoderParameters,
        vocabularies: Mapping[str, Vocabulary],
        sentencepiece_model: Path | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        """A model in memory; InputError where a table and its vocabulary differ in size, or SentencePiece's
        model is missing.

        about: what else is kept with it: training parameters, scores, data signature.
        """
        self.encoder = encoder.eval()
        self.parameters = parameters
        self.about = dict(about or {})
        self.vocabularies = {unit: vocabularies[unit] for unit in encoder.units()}
        self.sentencepiece_model = sentencepiece_model
        self._cutters: dict[str, Units] = {
            unit: make_units(unit, sentencepiece_model) for unit in encoder.units()
        }
        tables = encoder.tables()
        for name, unit in encoder.table_units().items():
            rows, size = len(tables[name]), len(self.vocabularies[unit])
            if rows != size:
                raise InputError(f"{name} has {rows} rows, the {unit} vocabulary {size} units")

    @property
    def dimension(self) -> int:
        """Elements of a sentence's vector."""
        return self.encoder.dimension

    @property
    def words(self) -> list[str]:
        """Those of its vocabulary, the most frequent first; none of a model that reads no words."""
        known = [self.vocabularies[unit] for unit in WORD_UNITS if unit in self.vocabularies]
        return [word for one in known[:1] for word in one.units if word != one.unknown]

    @property
    def uses_threads(self) -> bool:
        """Whether a second thread is worth its cost inside torch's operations; not for look-ups."""
        return bool(self.encoder.composition())

    @property
    def device(self) -> torch.device:
        """Where the encoder is."""
        return next(self.encoder.parameters()).device

    def encode(self, texts: str | Sequence[str] | Any) -> npt.NDArray[np.float32]:
        """Vectors of texts (strings, or a pyarrow string column), (texts, dimension) float32, in order, or of
        a single text, (dimension,); zeros for a text without any token, and for one so long that a
        recurrent encoder overflows. A mean does not depend on the other texts.
        """
        if isinstance(texts, str):
            return self.encode([texts])[0]
        column = texts if isinstance(texts, pa.Array | pa.ChunkedArray) else pa.array(texts, pa.string())
        vectors = np.empty((len(column), self.dimension), dtype=np.float32)
        for first in range(0, len(column), BATCH_TEXTS):
            batch = self.batch(column.slice(first, BATCH_TEXTS))
            row = first
            for part in encoded_parts(self.encoder, batch, self.device):
                vectors[row : row + len(part)] = _finite(part.float().cpu().numpy())
                row += len(part)
        return vectors

    def batch(self, column: Any) -> dict[str, Bags]:
        """A pyarrow string column as the encoder reads it."""
        batch = {}
        for unit, cutter in self._cutters.items():
            (cut,) = cutter.cut(column)
            ids = self.vocabularies[unit].ids_of(cut.vocabulary)[cut.ids]
            batch[unit] = Bags(torch.from_numpy(ids), torch.from_numpy(cut.offsets.astype(np.int64)))
        return batch

    def save(self, directory: Path, about: Mapping[str, Any] | None = None) -> None:
        """Write the model with `about`, or `self.about`; what was at `directory` is replaced as a whole."""
        with replaced_directory(directory) as temporary:
            write_json(
                temporary / _DESCRIPTION,
                {
                    "format": FORMAT,
                    "architecture": self.parameters.model_dump(mode="json"),
                    "dimension": self.dimension,
                    "vocabularies": {unit: len(vocabulary) for unit, vocabulary in self.vocabularies.items()},
                    "about": self.about if about is None else dict(about),
                },
            )
            for unit, vocabulary in self.vocabularies.items():
                vocabulary.save(temporary / f"{unit}.vocabulary.json")
            if self.sentencepiece_model is not None:
                shutil.copyfile(self.sentencepiece_model, temporary / _SENTENCEPIECE)
            self.save_tensors(temporary)

    def save_tensors(self, directory: Path) -> None:
        """Write the parameters alone into a model's directory."""
        write_tensors(directory / _TENSORS, dict(self.encoder.named_parameters()))

    @classmethod
    def open(cls, directory: str | Path, device: str = "cpu") -> SentenceModel:
        """Open what `save` wrote, on a device.

        Raises:
            ConfigurationError: no such device.
            InputError: not a model's directory (a pickle is never opened), or damaged.
        """
        check_device(device)
        directory = Path(directory)
        path = directory / _DESCRIPTION
        if not path.is_file():
            remedy = "Give a directory such as models/embeddings/NAME; pickles (.pt, .bin) are never loaded."
            raise InputError("not a directory of a trained model", directory, remedy=remedy)
        content = read_json(path)
        with describing(path):
            check_format(content["format"], FORMAT, path)
            sizes = {str(unit): int(size) for unit, size in content["vocabularies"].items()}
            parameters = _PARAMETERS.validate_python(content["architecture"])
            about = dict(content["about"])
        vocabularies = {}
        for unit, size in sizes.items():
            vocabularies[unit] = Vocabulary.load(directory / f"{unit}.vocabulary.json")
            if len(vocabularies[unit]) != size:
                raise InputError(
                    f"{len(vocabularies[unit])} units, {_DESCRIPTION} says {size}",
                    directory / f"{unit}.vocabulary.json",
                )
        pieces = directory / _SENTENCEPIECE
        try:
            encoder = build_encoder(
                parameters, lambda part, number: torch.zeros(sizes[part.unit], part.dimension), seed=0
            )
        except KeyError as error:
            raise InputError(f"damaged: no vocabulary of {error} units", path) from error
        except (RuntimeError, MemoryError) as error:
            raise InputError("damaged: its dimensions need more memory than there is", path) from error
        load_parameters(encoder, directory / _TENSORS)
        encoder.to(device)
        return cls(encoder, parameters, vocabularies, pieces if pieces.is_file() else None, about)


def _finite(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The same with zeros for vectors that overflowed: identity-RNNs grow with the length."""
    if np.isfinite(vectors.sum()):
        return vectors
    finite = np.isfinite(vectors).all(axis=1, keepdims=True)
    if not finite.all():
        logger.warning("%d texts are too long for this model: their vectors are zeros", (~finite).sum())
    return np.where(finite, vectors, np.float32(0))
