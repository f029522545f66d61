"""A trained model as the scorer."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from paraforge.base.errors import InputError
from paraforge.base.shards.resources import Resources
from paraforge.base.text.vocabulary import UNKNOWN, Vocabulary
from paraforge.corpus.publication.signature import signature
from paraforge.corpus.scoring.score import build_scorers, score_steps, score_table
from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.embeddings.encoders.encoder import build_encoder
from paraforge.embeddings.encoders.parameters import AverageParameters, LstmParameters
from paraforge.embeddings.trainer.model import SentenceModel
from paraforge.products.loading import load_fixed
from tests.corpus.scoring.test_score import WITHOUT_LANGUAGE, rows
from tests.corpus.selection.test_score_file import run, tsv

UNITS = {
    "word": Vocabulary([UNKNOWN, "the", "cat", "dog", "sat", "."]),
    "trigram": Vocabulary([UNKNOWN, " th", "the", "cat", "at ", " ca"]),
}
ENCODERS = {
    "trigrams": AverageParameters(unit="trigram", dimension=4),
    "lstm": LstmParameters(kind="lstm", dimension=4, output_dimension=3),
}


@pytest.fixture(params=ENCODERS)
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    parameters = ENCODERS[request.param]
    generator = torch.Generator().manual_seed(3)
    encoder = build_encoder(
        parameters, lambda part, number: torch.randn(6, part.dimension, generator=generator), seed=1
    )
    SentenceModel(encoder, parameters, UNITS).save(tmp_path / "model")
    return tmp_path / "model"


def test_model_scores_are_cosines(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paraforge.corpus.scoring.cosine._BLOCK_ROWS", 9)
    model = SentenceModel.open(directory)
    table = rows(40)
    scored = score_table(table, build_scorers(directory, load_fixed))
    found = scored["paraphrase_score"].to_pylist()
    for row, value in zip(table.to_pylist(), found, strict=True):
        if row["rejected"] or row["failed"] or row["translation"] is None:
            assert value is None
        else:
            left, right = (
                model.encode(row[side]).astype(np.float64) for side in ("reference", "translation")
            )
            cosine = left @ right / np.linalg.norm(left) / np.linalg.norm(right)
            assert value == pytest.approx(cosine, abs=1e-6)


def test_text_without_tokens_has_null_score(directory: Path) -> None:
    table = pa.table({"reference": ["the cat", ""], "translation": [" ", "the cat"]})
    scored = score_table(table, build_scorers(directory, load_fixed))
    assert scored["paraphrase_score"].to_pylist() == [None, None]


def test_model_is_in_key_and_signature(directory: Path) -> None:
    def description() -> dict[str, Any]:
        return score_steps(WITHOUT_LANGUAGE, directory, Resources(), load_fixed)[1].description()

    before = description()
    model = before["fingerprints"]["model"]
    line = signature(
        ["tatoeba"], {"score": {}, "score-paraphrase_score": before}, SelectParameters(filters=[])
    )
    assert f"|score:model:{model[:8]}|" in line
    tensors = directory / "model.safetensors"
    changed = bytearray(tensors.read_bytes())
    changed[-1] ^= 1
    tensors.write_bytes(bytes(changed))
    assert description() != before


def test_damaged_model_is_early_error_of_score(directory: Path) -> None:
    (directory / "model.safetensors").write_bytes(b"cut")
    with pytest.raises(InputError, match=r"model\.safetensors"):
        score_steps(WITHOUT_LANGUAGE, directory, Resources(), load_fixed)


def test_command_scores_with_model(directory: Path, tmp_path: Path) -> None:
    pairs = [("the cat", "the dog"), ("the cat sat .", "a dog")]
    (tmp_path / "pairs.tsv").write_text(tsv(pairs))
    run(tmp_path / "pairs.tsv", tmp_path / "scored.parquet", "--vectors", directory)
    expected = SentenceModel.open(directory).similarity(*(list(side) for side in zip(*pairs, strict=True)))
    found = pq.read_table(tmp_path / "scored.parquet")["paraphrase_score"].to_numpy()
    np.testing.assert_allclose(found, expected, atol=1e-6)
