"""An encoder is one file: a file outside the package is trained, saved and opened like any other."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

import paraforge
from paraforge.base.shards.resources import Resources
from paraforge.embeddings import encoders
from paraforge.embeddings.encoders.parameters import named_encoder
from paraforge.embeddings.trainer.data import TrainingData
from paraforge.embeddings.trainer.parameters import ModelParameters, PairFileParameters
from paraforge.embeddings.trainer.train_model import train_model
from tests.embeddings.trainer.pairs import sentence_pairs, write_pairs

MAXIMUM = '''
from typing import Literal

import torch
from pydantic import Field

from paraforge.embeddings.encoders.parameters import VectorParameters
from paraforge.embeddings.encoders.protocol import TableEncoder


class LargestParameters(VectorParameters):
    """Largest elements of a sentence's vectors, times a weight each."""

    kind: Literal["largest"] = "largest"
    power: float = Field(1.0, gt=0, description="of the vectors' elements")

    def network(self, table):
        return Largest(table, self.unit)


class Largest(TableEncoder):
    def __init__(self, table, unit):
        super().__init__(table, unit)
        self.dimension = table.shape[1]
        self.weight = torch.nn.Parameter(torch.empty(self.dimension))

    def forward(self, batch, tables=None):
        bags, rows = batch[self.unit], self.rows(tables)
        highest = rows.new_full((len(bags), self.dimension), -torch.inf)
        index = bags.sentences.unsqueeze(1).expand(-1, self.dimension)
        highest = highest.scatter_reduce(0, index, rows[bags.ids], "amax")
        return torch.where(highest.isfinite(), highest, 0) * self.weight
'''


def test_an_encoder_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file beside the others, here in another directory, is trained, kept and opened by its kind."""
    chosen = {"kind": "concatenation", "parts": [{"kind": "largest", "dimension": 6}, {"kind": "average"}]}
    with pytest.raises(ValidationError, match=r"kind largest: there are average, .*dan, .*projection"):
        ModelParameters.model_validate({"encoder": chosen})
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "largest.py").write_text(MAXIMUM)
    monkeypatch.setattr(encoders, "__path__", [*encoders.__path__, str(tmp_path / "files")])
    assert named_encoder("largest+word")["parts"][0] == {"kind": "largest"}
    with pytest.raises(ValidationError, match="power"):
        ModelParameters.model_validate({"encoder": {"kind": "largest", "power": -1}})
    parameters = ModelParameters.model_validate({"encoder": chosen})
    assert parameters.model_dump(mode="json")["encoder"]["parts"][0]["power"] == 1.0
    data = TrainingData([PairFileParameters(path=str(write_pairs(tmp_path / "pairs.tsv", sentence_pairs())))])
    report = train_model(parameters, data, tmp_path / "model", Resources(threads=1, work=tmp_path / "work"))
    assert report.dimension == 306
    losses = [entry["loss"] for entry in report.history]
    assert losses[-1] < losses[0]
    assert paraforge.load(tmp_path / "model").encode(["left1 left2", ""]).shape == (2, 306)
