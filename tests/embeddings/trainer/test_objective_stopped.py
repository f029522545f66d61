"""The training loop: signals, resuming, evaluation, early stopping, and errors."""

import dataclasses
import math
import signal
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from paraforge.base.errors import InputError, Interrupted
from paraforge.embeddings.encoders.averages import Average
from paraforge.embeddings.encoders.encoder import Encoder
from paraforge.embeddings.losses import loss_names
from paraforge.embeddings.trainer.objective import encoder_trainer
from paraforge.embeddings.trainer.pair_store import PairStore
from paraforge.embeddings.trainer.parameters import TrainingParameters
from tests.embeddings.trainer.training import (
    make_encoder,
    make_repetitive_store,
    make_store,
    parameters,
    store_of,
    train,
)


@pytest.mark.parametrize(
    ("make", "stop_after", "changes"),
    [
        (make_store, 1, {}),
        (make_store, 9, {"average_after": 0.2}),
        (make_repetitive_store, 12, {"batch_size": 2, "mega_batch": 9, "anneal": 6}),
    ],
)
def test_resumed_training_gives_same_bits(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[Path], PairStore],
    stop_after: int,
    changes: dict[str, Any],
) -> None:
    """Mini-batches without a negative are included, because their number decides the next mega-batches."""
    monkeypatch.setattr("paraforge.embeddings.learning.loop.AVERAGE_EVERY", 2)
    store = make(tmp_path / "pairs")
    settings = parameters(**{"epochs": 3, "negatives": "mix", "anneal": 3, **changes})
    scores = iter([0.1, 0.3, 0.2])
    expected, whole = train(store, settings, evaluate=lambda encoder: next(scores))

    scores = iter([0.1, 0.3, 0.2])
    options: dict[str, Any] = {
        "evaluate": lambda encoder: next(scores),
        "checkpoints": tmp_path / "checkpoints",
        "checkpoint_seconds": 1e-9,
    }
    encoder = make_encoder(store)
    trainer = encoder_trainer(encoder, store, settings, **options)
    step, steps = trainer._step, count(1)

    def stopped_step(batch: Any) -> Any:
        if next(steps) == stop_after:
            signal.raise_signal(signal.SIGTERM)
        return step(batch)

    monkeypatch.setattr(trainer, "_step", stopped_step)
    with pytest.raises(Interrupted):
        trainer.run()
    assert next(steps) == stop_after + 1
    table, record = train(store, settings, **options)
    assert torch.equal(table, expected)
    assert dataclasses.asdict(record) == dataclasses.asdict(whole)
    again, _ = train(store, settings, **options)  # finished: nothing more is done
    assert torch.equal(again, expected)


def test_signal_leaves_checkpoint(tmp_path: Path) -> None:
    store = make_store(tmp_path / "pairs")

    def evaluate(encoder: Encoder) -> float:
        signal.raise_signal(signal.SIGTERM)
        return 0.0

    with pytest.raises(Interrupted):
        train(store, parameters(), evaluate=evaluate, checkpoints=tmp_path / "checkpoints")
    assert list((tmp_path / "checkpoints").glob("newest.safetensors"))


def test_checkpoints_are_saved_when_due(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step takes one second, an evaluation and a checkpoint ten each. 57 pairs are three steps."""
    store, now = make_store(tmp_path / "pairs"), 0.0
    encoder = make_encoder(store)
    clock = SimpleNamespace(perf_counter=lambda: now)
    monkeypatch.setattr("paraforge.embeddings.learning.loop.time", clock)

    def slow(seconds: float, training: bool | None, action: Callable[..., Any]) -> Callable[..., Any]:
        def act(*arguments: Any) -> Any:
            nonlocal now
            now += seconds
            assert training in (None, encoder.training)
            return action(*arguments)

        return act

    options: dict[str, Any] = {"checkpoints": tmp_path / "checkpoints", "checkpoint_seconds": 1.5}
    options["evaluate"] = slow(10, False, lambda _: 1.0)

    def run() -> tuple[list[int], float]:
        saved: list[int] = []
        trainer = encoder_trainer(encoder, store, parameters(epochs=3), **options)
        save = trainer._save
        monkeypatch.setattr(trainer, "_step", slow(1, True, trainer._step))
        monkeypatch.setattr(
            trainer, "_save", slow(10, None, lambda: save() or saved.append(trainer.record.seen))
        )
        trainer.run()
        return saved, trainer.rate

    assert run() == ([48, 57, 105, 114, 162, 171, 171], 57 / 3)
    assert run() == ([171], 0.0)  # nothing is left to do


@pytest.mark.parametrize("every", [0, 24, 100])
def test_best_model_is_kept_and_training_stops_early(tmp_path: Path, every: int) -> None:
    """Training stops after two evaluations without improvement, at two evaluations per epoch, one, or one
    every two epochs.
    """
    store = make_store(tmp_path / "pairs")
    tables = []
    scores = iter([0.1, 0.5, 0.4, 0.5, 0.9])

    def evaluate(encoder: Encoder) -> float:
        tables.append(encoder.get_parameter("table").detach().clone())
        return next(scores)

    table, record = train(store, parameters(epochs=9, patience=2, evaluate_every=every), evaluate=evaluate)
    assert [entry["score"] for entry in record.history] == [0.1, 0.5, 0.4, 0.5]
    assert record.history[0]["epoch"] == (2 if every == 100 else 1)
    assert record.best_score == 0.5
    assert torch.equal(table, tables[1])


def test_mean_of_late_parameters_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paraforge.embeddings.learning.loop.AVERAGE_EVERY", 3)
    store = make_store(tmp_path / "pairs", pairs=48)  # 6 updates an epoch, of 8 pairs each
    changes = {"epochs": 3, "mega_batch": 1, "average_after": 0.5}
    encoder = make_encoder(store)
    trainer = encoder_trainer(encoder, store, parameters(**changes))
    seen: dict[int, Tensor] = {}

    def observe() -> bool:
        trainer.task.optimizer.synchronize()
        seen[trainer.record.updates] = encoder.table.detach().clone()
        return False

    with monkeypatch.context() as patched:
        patched.setattr("paraforge.embeddings.learning.loop.stop_requested", observe)
        trainer.run()
    entered = [seen[9], seen[12], seen[15], seen[18]]  # half of 144 pairs are seen after update 9
    assert trainer.record.averaged == len(entered)
    torch.testing.assert_close(encoder.table.detach(), torch.stack(entered).mean(0))

    evaluated = []

    def evaluate(encoder: Encoder) -> float:
        evaluated.append(encoder.get_parameter("table").detach().clone())
        return float(len(evaluated))

    table, _ = train(store, parameters(**changes), evaluate=evaluate)
    torch.testing.assert_close(evaluated[0], seen[6])
    torch.testing.assert_close(evaluated[1], torch.stack(entered[:2]).mean(0))
    torch.testing.assert_close(evaluated[2], torch.stack(entered).mean(0))
    assert torch.equal(table, evaluated[2])


def test_evaluation_between_epochs(tmp_path: Path) -> None:
    store = make_store(tmp_path / "pairs")  # 57 pairs, mega-batches of 24, 24, 9
    settings = parameters(epochs=2, evaluate_every=40)
    _, record = train(store, settings, evaluate=lambda encoder: 1.0)
    assert [entry["pairs"] for entry in record.history] == [48, 81, 114]


@pytest.mark.parametrize("scores", [[0.3, math.nan, 0.2], [math.nan] * 3, [math.inf, 0.3, 0]])
def test_nan_score_is_never_best(tmp_path: Path, scores: list[float]) -> None:
    store = make_store(tmp_path / "pairs")
    given = iter(scores)
    options: dict[str, Any] = {"checkpoints": tmp_path / "checkpoints"}
    _, record = train(store, parameters(epochs=3), evaluate=lambda encoder: next(given), **options)
    finite = [score for score in scores if math.isfinite(score)]
    assert record.best_score == (max(finite) if finite else None)
    expected = [score if math.isfinite(score) else None for score in scores]
    assert [entry["score"] for entry in record.history] == expected


@pytest.mark.parametrize("loss", loss_names())
def test_only_identical_pairs_are_error(tmp_path: Path, loss: str) -> None:
    pairs = 1 if loss == "margin" else 9
    store = store_of(tmp_path, ["a b"] * pairs, ["a c"] * pairs)
    store.teacher = np.ones((2 * pairs, 2), dtype=np.float32)
    with pytest.raises(InputError, match=f"nothing to learn: none of {2 * pairs} pairs has a negative"):
        train(store, parameters(loss=loss))


def test_empty_parameter_mean_warns(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = make_store(tmp_path / "pairs")
    train(store, parameters())
    assert not caplog.records
    train(store, parameters(average_after=0.0))
    assert "too few updates for average_after" in caplog.text


@pytest.mark.parametrize("value", [torch.nan, torch.inf, 3e38])
def test_non_finite_table_is_error(tmp_path: Path, value: float) -> None:
    store = make_store(tmp_path / "pairs")
    table = torch.full((len(store.vocabularies["word"]), 3), value)
    with pytest.raises(InputError, match=r"not finite after 0 updates\. Start from smaller vectors"):
        encoder_trainer(Average(table), store, parameters()).run()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"loss": "softmax", "optimizer": "adagrad"},
        {"lambda_words": 0.1, "clip": 1.0, "average_after": 0.5},
        {"epochs": 1, "batch_size": 1000},  # a single update: no loss comes after it
    ],
    ids=str,
)
def test_divergence_is_error_without_model(tmp_path: Path, changes: dict[str, Any]) -> None:
    """Parameters that are not named have their defaults. Some cases have a larger rate and an evaluation."""
    evaluated = len(str(changes)) % 2 == 0
    learning_rate = 1e38 if evaluated else 1e20
    store = make_store(tmp_path / "pairs", pairs=300)
    settings = TrainingParameters.model_validate({"learning_rate": learning_rate, **changes})
    options: dict[str, Any] = {"checkpoints": tmp_path / "checkpoints", "checkpoint_seconds": 0.0}

    def finite_sum(encoder: Any) -> float:
        assert bool(encoder.table.isfinite().all())
        return float(encoder.table.sum())

    if evaluated:
        options["evaluate"] = finite_sum
    with pytest.raises(InputError, match=r"diverged: .* not finite|diverged: the loss is") as caught:
        train(store, settings, dtype=torch.float32, **options)
    assert caught.value.exit_code == 2
    assert "Lower learning_rate" in str(caught.value)
    assert "\n" not in str(caught.value)
    for path in (tmp_path / "checkpoints").glob("*.safetensors"):
        for value in load_file(path).values():
            assert bool(value.isfinite().all())
