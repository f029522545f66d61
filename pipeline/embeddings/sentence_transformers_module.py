"""A sentence-transformers module that wraps a trained model of this project. `paraforge export` uses it if
the library's own modules cannot do the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import torch
from torch import Tensor, nn

from paraforge.base.files import write_digests
from paraforge.embeddings.learning.batches import Bags
from paraforge.embeddings.trainer.model import SentenceModel

_ROWS = "rows of "


class ParaforgeEncoder(nn.Module):
    """Converts text to sentence vectors with the trained model at `directory`; the only module of a
    `SentenceTransformer`."""

    save_in_root = False
    modalities = ("text",)

    def __init__(self, directory: str | Path) -> None:
        super().__init__()
        self._model = SentenceModel.open(directory)
        self.encoder = self._model.encoder

    def tokenize(self, texts: list[str], **_: Any) -> dict[str, Tensor]:
        """Return the units of each text, as flat tensors by name."""
        column = pa.array(texts, pa.string())
        batch, tables = (self._model.batch(column), None) if self.training else self._model.inputs(column)
        units = {
            f"{unit}.{part}": getattr(bags, part)
            for unit, bags in batch.items()
            for part in ("ids", "offsets")
        }
        return units | {f"{_ROWS}{name}": rows for name, rows in (tables or {}).items()}

    def preprocess(self, inputs: list[str], prompt: str | None = None, **_: Any) -> dict[str, Tensor]:
        """Tokenize like `tokenize`, with the prompt, if any, before each text."""
        return self.tokenize([f"{prompt}{text}" for text in inputs] if prompt else list(inputs))

    def forward(self, features: dict[str, Tensor], **_: Any) -> dict[str, Tensor]:
        """Add `sentence_embedding`, (texts, dimension)."""
        batch = {
            unit: Bags(features[f"{unit}.ids"], features[f"{unit}.offsets"]) for unit in self.encoder.units()
        }
        tables = {name.removeprefix(_ROWS): rows for name, rows in features.items() if name.startswith(_ROWS)}
        features["sentence_embedding"] = self.encoder(batch, tables or None)
        return features

    @property
    def max_seq_length(self) -> float:
        """Return infinity: there is no limit."""
        return torch.inf

    def get_embedding_dimension(self) -> int:
        """Return the dimension of a vector."""
        return self._model.dimension

    def get_sentence_embedding_dimension(self) -> int:
        """Return the same under the name for older versions of the library."""
        return self._model.dimension

    def save(self, output_path: str, *_: Any, **__: Any) -> None:
        """Write the model's directory with the current parameters, also over the one that was loaded."""
        self._model.save(Path(output_path))
        write_digests(Path(output_path))

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **_: Any) -> ParaforgeEncoder:
        """Open a directory written by `save`, without network access."""
        return cls(Path(model_name_or_path) / subfolder)
