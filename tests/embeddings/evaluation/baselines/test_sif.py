"""SIF models on disk."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from paraforge.base.errors import InputError
from paraforge.embeddings.evaluation.baselines.sif import SifOfEachSet, open_sif, save_sif
from paraforge.embeddings.evaluation.baselines.word_average import (
    InverseDocumentFrequency,
    Weighting,
    WordAverage,
    sentence_counts,
)
from tests.embeddings.evaluation.baselines.test_word_average import TEXTS, WEIGHTING, table


@pytest.mark.parametrize(
    "weighting",
    [WEIGHTING, None, InverseDocumentFrequency(sentence_counts(TEXTS, "texts"))],
    ids=["sif", "plain", "idf"],
)
@pytest.mark.parametrize("components", [0, 2])
def test_saved_and_opened(tmp_path: Path, weighting: Weighting | None, components: int) -> None:
    model = WordAverage(table(True), weighting)
    if components:
        model = model.fitted_to(TEXTS, components)
    save_sif(model, tmp_path / "sif", {"fitted": "here"})
    opened = open_sif(tmp_path / "sif")
    assert isinstance(opened, WordAverage)
    assert np.array_equal(opened.encode(TEXTS), model.encode(TEXTS))
    before = {path.name: path.read_bytes() for path in (tmp_path / "sif").iterdir()}
    save_sif(opened, tmp_path / "sif", {"fitted": "here"})
    assert {path.name: path.read_bytes() for path in (tmp_path / "sif").iterdir()} == before


def test_one_that_is_fitted_to_each_set(tmp_path: Path) -> None:
    save_sif(SifOfEachSet(WordAverage(table(True), WEIGHTING), 2), tmp_path / "sif")
    opened = open_sif(tmp_path / "sif")
    assert isinstance(opened, SifOfEachSet)
    expected = WordAverage(table(True), WEIGHTING).fitted_to(TEXTS[:5], 2).encode(TEXTS[:5])
    assert np.array_equal(opened.adapted_to(TEXTS[:5]).encode(TEXTS[:5]), expected)


def test_a_set_of_which_no_word_has_a_vector_is_left_as_it_is() -> None:
    model = SifOfEachSet(WordAverage(table(False), WEIGHTING))
    adapted = model.adapted_to(["zzz qqq", ""])
    assert not adapted.encode(["zzz qqq", ""]).any()


def test_damaged(tmp_path: Path) -> None:
    path = tmp_path / "sif"

    def fresh() -> Path:
        save_sif(WordAverage(table(True), WEIGHTING), path)
        return path

    def described(**changes: object) -> None:
        content = json.loads((path / "sif.json").read_text())
        (path / "sif.json").write_text(json.dumps({**content, **changes}))

    for changes in (
        {"format": 9},
        {"words": "x"},
        {"dimension": 7},
        {"words": 3},
        {"weighting": {"kind": "z"}},
    ):
        fresh()
        described(**changes)
        with pytest.raises(InputError, match="sif"):
            open_sif(path)
    tensors = load_file(fresh() / "model.safetensors")
    tensors["vectors"][2, 1] = torch.nan
    save_file(tensors, path / "model.safetensors")
    with pytest.raises(InputError, match="NaN"):
        open_sif(path)
    (fresh() / "model.safetensors").write_bytes(b"\x80\x04.")
    with pytest.raises(InputError, match="not a safetensors file"):
        open_sif(path)
    (fresh() / "words.json").unlink()
    with pytest.raises(InputError, match="no such file"):
        open_sif(path)
