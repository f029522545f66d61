"""What cannot be trained, and trainings that diverge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from pydantic import TypeAdapter
from safetensors.torch import load_file

from paraforge.base.errors import ConfigurationError, InputError
from paraforge.base.text.pair_blocks import PairBlock
from paraforge.base.text.units import Words
from paraforge.embeddings.encoders.average import Average
from paraforge.embeddings.encoders.build import build_encoder
from paraforge.embeddings.encoders.parameters import EncoderParameters, named_encoder
from paraforge.embeddings.losses import loss_names
from paraforge.embeddings.trainer.objective import encoder_trainer
from paraforge.embeddings.trainer.pair_store import build_pair_store
from paraforge.embeddings.trainer.parameters import TrainingParameters, VocabularyParameters
from tests.embeddings.trainer.training import make_encoder, make_store, parameters, train


@pytest.mark.parametrize("loss", loss_names())
@pytest.mark.parametrize("pairs", [1, 9])
def test_pairs_that_are_all_the_same_are_an_error(tmp_path: Path, pairs: int, loss: str) -> None:
    scores = pa.array([1.0] * pairs, pa.float32())
    block = PairBlock(pa.array(["a b"] * pairs), pa.array(["a c"] * pairs), scores=scores)
    store = build_pair_store(tmp_path, [block], [Words()], VocabularyParameters(minimum_count=1))
    store.teacher = np.ones((2 * pairs, 2), dtype=np.float32)
    with pytest.raises(InputError, match=f"nothing to learn: none of {2 * pairs} pairs has a negative"):
        train(store, parameters(exclude_identical=True, loss=loss))


def test_a_mean_of_no_parameters_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = make_store(tmp_path / "pairs")
    train(store, parameters())
    assert not caplog.records
    train(store, parameters(average_after=0.0))
    assert "too few updates for average_after" in caplog.text


def test_a_vocabulary_larger_than_the_table_is_refused(tmp_path: Path) -> None:
    store = make_store(tmp_path / "pairs")
    rows = len(store.vocabularies["word"])
    with pytest.raises(InputError, match=f"has {rows - 1} rows, the pairs' word vocabulary {rows}"):
        encoder_trainer(Average(torch.zeros(rows - 1, 3)), store, parameters())
    with pytest.raises(InputError, match="reads trigram units, the pairs have word"):
        encoder_trainer(Average(torch.zeros(rows, 3), "trigram"), store, parameters())


def test_nan_in_vectors_is_refused(tmp_path: Path) -> None:
    store = make_store(tmp_path / "pairs")
    encoder = make_encoder(store)
    with torch.no_grad():
        encoder.table[3, 1] = float("nan")
    with pytest.raises(InputError, match="NaN or infinity"):
        encoder_trainer(encoder, store, parameters())


@pytest.mark.parametrize("learning_rate", [1e20, 1e38])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"loss": "softmax"},
        {"optimiser": "adagrad"},
        {"table_updates": "deferred"},
        {"table_updates": "dense"},
        {"negatives": "mix", "two_sided": False},
        {"anneal": 0, "negative_precision": "float32", "exclude_identical": False},
        {"lambda_words": 0.1, "clip": 1.0},
        {"average_after": 0.5},
        {"epochs": 1, "batch_size": 1000},  # a single update: no loss comes after it
    ],
    ids=str,
)
@pytest.mark.parametrize("evaluated", [True, False])
def test_divergence_is_an_error_and_leaves_nothing(
    tmp_path: Path, learning_rate: float, changes: dict[str, Any], evaluated: bool
) -> None:
    """The defaults but for what is named."""
    store = make_store(tmp_path / "pairs", pairs=300)
    settings = TrainingParameters.model_validate({"learning_rate": learning_rate, **changes})
    options: dict[str, Any] = {"checkpoints": tmp_path / "checkpoints", "checkpoint_seconds": 0.0}
    if evaluated:
        options["evaluate"] = lambda encoder: float(encoder.table.sum())
    with pytest.raises(InputError, match=r"diverged: .* not finite|diverged: the loss is") as caught:
        train(store, settings, dtype=torch.float32, **options)
    assert caught.value.exit_code == 2
    assert "Lower training.learning_rate" in str(caught.value)
    assert "\n" not in str(caught.value)
    for path in (tmp_path / "checkpoints").glob("updates-*/*.safetensors"):
        for value in load_file(path).values():
            assert bool(value.isfinite().all())


@pytest.mark.parametrize("kind", ["lstm", "dan", "rnn", "projection"])
def test_divergence_of_compositional_parameters_is_an_error(tmp_path: Path, kind: str) -> None:
    store = make_store(tmp_path / "pairs", pairs=300)
    made: Any = TypeAdapter(EncoderParameters).validate_python(named_encoder(kind))
    rows = len(store.vocabularies["word"])
    encoder = build_encoder(made, lambda part, _: torch.randn(rows, part.dimension), seed=2)
    with pytest.raises(InputError, match="the training diverged"):
        encoder_trainer(encoder, store, TrainingParameters(learning_rate=1e38, epochs=2)).run()


def test_a_prefix_is_shorter_than_the_vector(tmp_path: Path) -> None:
    store = make_store(tmp_path / "pairs")
    size = make_encoder(store).dimension
    train(store, parameters(prefixes=[size - 1]))
    with pytest.raises(ConfigurationError, match=rf"training\.prefixes: \[{size}\].* {size} elements"):
        train(store, parameters(prefixes=[size]))
