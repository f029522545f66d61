"""A module of sentence-transformers that is a trained model of this project: what `paraforge export` names
where the library's own modules cannot do the same."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch
from torch import Tensor, nn

from paraforge.embeddings.learning.batches import Bags
from paraforge.embeddings.trainer.model import SentenceModel

_ROWS = "rows of "


class ParaforgeEncoder(nn.Module):
    """Text to sentence vectors: the only module of a `SentenceTransformer`, of the trained model at
    `directory`."""

    save_in_root = False
    modalities = ("text",)

    def __init__(self, directory: str | Path) -> None:
        super().__init__()
        self._directory = Path(directory)
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
        """As `tokenize`, each text behind the prompt where there is one."""
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
        """There is no limit."""
        return torch.inf

    def get_embedding_dimension(self) -> int:
        """Elements of a vector."""
        return self._model.dimension

    def get_sentence_embedding_dimension(self) -> int:
        """Return the same, as older versions of the library ask for it."""
        return self._model.dimension

    def save(self, output_path: str, *_: Any, **__: Any) -> None:
        """Write the model's directory, with the parameters as they are now."""
        for file in sorted(self._directory.iterdir()):
            shutil.copyfile(file, Path(output_path) / file.name)
        self._model.save_tensors(Path(output_path))

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **_: Any) -> ParaforgeEncoder:
        """Open what `save` wrote; nothing is fetched from anywhere."""
        return cls(Path(model_name_or_path) / subfolder)
