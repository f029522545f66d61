"""Training with fairseq's trainer: limits, resuming, and results."""

import copy
import json
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from paraforge.base.errors import InputError, Interrupted
from paraforge.base.shards.resources import Resources
from paraforge.translation.models.checkpoint import load_checkpoint, weights_only_state
from paraforge.translation.training import training_run as trainer
from paraforge.translation.training.binarization import PreparedBitext, prepare_bitext
from paraforge.translation.training.parameters import NmtParameters
from paraforge.translation.training.processes import Ranks, join
from paraforge.translation.training.training import trainer_settings
from paraforge.translation.training.training_run import TrainingRun
from paraforge.translation.training.validation import Scores
from tests.translation.training.test_binarization import accepted, write_shards

RESOURCES = Resources(threads=1, devices=["cpu"])
Begin = Callable[..., TrainingRun]
Prepared = tuple[Path, PreparedBitext]
"""A directory, and what was prepared in it."""


def parameters(**changes: Any) -> NmtParameters:
    tiny: dict[str, Any] = {
        "vocabulary": {"size": 50},
        "architecture": {
            "encoder_layers": 1, "decoder_layers": 1, "width": 16, "feed_forward": 32, "heads": 2,
            "dropout": 0.2,
        },
        "training": {
            "batch_tokens": 256, "learning_rate": 0.01, "warmup_updates": 5, "maximum_updates": 12,
            "precision": "float32",
        },
        "validation": {"held_out": 20, "every_updates": 4, "beam": 2, "average": 2, "final_beam": 3},
        "maximum_tokens": 40,
    }  # fmt: skip
    for section, values in changes.items():
        tiny[section] = {**tiny.get(section, {}), **values} if isinstance(values, dict) else values
    return NmtParameters.model_validate(tiny)


@pytest.mark.parametrize(("limit", "late"), [(None, False), (1, True), (1.5, True), (1.6, False)])
def test_time_limit_is_in_minutes(limit: float | None, late: bool) -> None:
    run: Any = SimpleNamespace(parameters=parameters(training={"maximum_minutes": limit}), seconds=lambda: 90)
    assert TrainingRun._is_late(run) is late


def start(directory: Path, prepared: Prepared, **changes: Any) -> TrainingRun:
    """Start a run in this process in ``directory``; a second call resumes from the last checkpoint."""
    work, bitext_prepared = prepared
    if not directory.exists():
        directory.mkdir()
        for name in ("parts", "source.spm", "target.spm", "dict.cs.txt", "dict.en.txt", "held_out.parquet"):
            (directory / name).symlink_to(work / name)
    settings = trainer_settings(directory, parameters(**changes), bitext_prepared, RESOURCES)
    return TrainingRun(directory, json.loads(json.dumps(settings)))  # as a process reads them


def weights(run: TrainingRun) -> dict[str, torch.Tensor]:
    model: dict[str, torch.Tensor] = weights_only_state({"model": run.trainer.model.state_dict()})["model"]
    return model


def assert_equal(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> None:
    assert first.keys() == second.keys()
    different = [name for name in first if not torch.equal(first[name], second[name])]
    assert not different


@pytest.mark.full
def test_training_is_reproducible_and_learns(begin: Begin) -> None:
    first, name = begin("a"), "decoder.layers.0.fc1.weight"
    before = weights(first)[name]
    assert first.train() == "maximum_updates"
    assert first.updates == 12
    assert [row["update"] for row in first.history] == [4, 8, 12]
    assert first.history[-1]["valid_loss"] < first.history[0]["valid_loss"]
    second, other = begin("b"), begin("c", training={"seed": 2})
    second.train()
    other.train()
    assert_equal(weights(first), weights(second))
    assert not any(torch.equal(weights(first)[name], one) for one in (before, weights(other)[name]))


@pytest.mark.parametrize("accumulate", [1, pytest.param(2, marks=pytest.mark.full)])
def test_stopped_training_resumes_identically(
    begin: Begin, monkeypatch: pytest.MonkeyPatch, accumulate: int
) -> None:
    changes: dict[str, Any] = {"training": {"accumulate": accumulate}}
    whole = begin("whole", **changes)
    whole.train()
    assert whole.epoch() > 1 or accumulate == 1
    for stop_after in (5, 9):
        run = begin("stopped", **changes)
        monkeypatch.setattr(trainer, "stop_requested", lambda run=run, at=stop_after: run.updates >= at)
        with pytest.raises(Interrupted):
            run.train()
        assert run.updates == stop_after
    monkeypatch.setattr(trainer, "stop_requested", lambda: False)
    last = begin("stopped", **changes)
    assert last.updates == 9
    last.train()
    assert_equal(weights(whole), weights(last))
    for name in ("bleu", "train_loss", "valid_loss", "target_tokens"):
        assert [row[name] for row in last.history] == [row[name] for row in whole.history]


def test_checkpoint_counts_batches_of_all_processes(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    run = begin()
    monkeypatch.setattr(trainer, "stop_requested", lambda: run.updates >= 1)
    with pytest.raises(Interrupted):
        run.train()
    run.ranks = Ranks(0, 2)  # as if another process had trained on as many
    monkeypatch.setattr("time.time", lambda: 0.0)  # the clock is set back
    run._begun -= 1000
    run.save()
    again = begin()
    assert again.epochs.iterations_in_epoch == 2 * run.epochs.iterations_in_epoch > 0
    assert again.seconds() > 1000
    monkeypatch.setattr(
        trainer, "join", lambda rank, count, *others: join(rank, count, *others) and Ranks(0, 2)
    )
    assert begin().epochs.iterations_in_epoch == run.epochs.iterations_in_epoch


def test_validation_losses(trained: TrainingRun) -> None:
    assert trained._recent == []  # the next validation has the mean since this one
    for row in trained.history:
        assert row["valid_perplexity"] != pytest.approx(2 ** row["valid_loss"], rel=1e-3)  # smoothed


def test_full_disk_keeps_checkpoint_and_damage_is_named(
    tmp_path: Path, begin: Begin, trained: TrainingRun
) -> None:
    shutil.copytree(trained.directory, tmp_path / "run", symlinks=True)
    path = tmp_path / "run" / "checkpoints" / trainer.LAST
    content, run = path.read_bytes(), copy.copy(trained)
    run.directory = tmp_path / "run"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with pytest.raises(OSError, match=f"while this was written: .*{trainer.LAST}"):
            run.save()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == content and list(path.parent.iterdir()) == [path]
    path.write_bytes(content[:-100])
    with pytest.raises(InputError, match=rf"{trainer.LAST}: .*damaged.*\. Remove the file"):
        begin()


def test_orphaned_or_timed_out_training_stops(begin: Begin) -> None:
    run = begin()
    run.parent = -1
    with pytest.raises(Interrupted):
        run.train()
    assert run.updates == begin().updates == 1
    late = begin("late", training={"maximum_minutes": 1e-6})
    assert (late.train(), late.updates) == ("maximum_minutes", 1)


def test_training_uses_one_of_several_gpus(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert begin().trainer.data_parallel_rank == 0


def test_too_large_batch_is_not_dropped(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: Any) -> None:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    run = begin()
    monkeypatch.setattr(run.task, "train_step", full)
    with pytest.raises(InputError, match=r"out of memory.*Halve training\.batch_tokens"):
        run.train()


def test_finished_training_is_not_continued(tmp_path: Path, begin: Begin, trained: TrainingRun) -> None:
    shutil.copytree(trained.directory, tmp_path / "run", symlinks=True)
    again = begin()
    assert again.finished == again.train() == "maximum_updates"
    assert again.updates == 12
    state = load_checkpoint(trained.directory / "checkpoints" / "checkpoint_last.pt")
    assert state["extra_state"]["paraforge"]["finished"] == "maximum_updates"
    snapshot = next((trained.directory / "snapshots").iterdir())
    assert str(trained.directory).encode() not in snapshot.read_bytes()


def test_checkpoints_are_saved_by_the_clock(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    def saved_after(seconds: float) -> list[int]:
        monkeypatch.setattr(trainer, "CHECKPOINT_SECONDS", seconds)
        run = begin(f"after {seconds}", training={"maximum_updates": 6}, validation={"every_updates": 3})
        updates: list[int] = []
        monkeypatch.setattr(run, "save", lambda: updates.append(run.updates))
        assert run.train() == "maximum_updates"
        return updates

    assert saved_after(-1.0) == [1, 2, 3, 4, 5, 6]
    assert saved_after(1e9) == [3, 6]


def test_patience_ends_training(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    """Training ends after three validations, whatever the number of updates."""
    scores = iter([1.0, 3.0, 2.0, 2.5, 2.0, 9.0])

    def evaluate(*arguments: Any, **options: Any) -> Scores:
        return Scores(bleu=next(scores), chrf=1.0, bleu_signature="", chrf_signature="")

    monkeypatch.setattr("paraforge.translation.training.validation.evaluate", evaluate)
    run = begin(training={"maximum_updates": 1000}, validation={"every_updates": 2, "patience": 3})
    messages: list[dict[str, Any]] = []
    monkeypatch.setattr(trainer, "report", lambda **values: messages.append(values))
    save = run.save
    saved: list[dict[str, float]] = []

    def save_if_it_can_resume() -> None:
        """What the checkpoint before needs is there until it is replaced."""
        needed = trainer.needed_snapshots(run.directory, saved, run.parameters) if saved else []
        assert all(path.is_file() for path in needed)
        save()
        saved[:] = run.history

    monkeypatch.setattr(run, "save", save_if_it_can_resume)
    assert run.train() == "patience"
    run._report()  # as at the end, right after a validation
    assert all(message.get("loss", 1) > 0 for message in messages)
    assert [row["bleu"] for row in run.history] == [1.0, 3.0, 2.0, 2.5, 2.0]
    # The best and the last two, which may be averaged.
    kept = sorted(path.name for path in (run.directory / "snapshots").iterdir())
    assert kept == ["update-00000004.pt", "update-00000008.pt", "update-00000010.pt"]


def test_training_parts_are_used_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paraforge.translation.training.binarization.PAIRS_PER_PART", 100)
    shards = write_shards(tmp_path / "shards", accepted(300))
    cut = prepare_bitext(shards, tmp_path / "work", parameters(), RESOURCES)
    assert len(cut.parts) == 3
    limits = {"maximum_epochs": 2, "maximum_updates": 1000}
    run = start(tmp_path / "run", (tmp_path / "work", cut), training=limits, validation={"every_updates": 0})
    assert run.train() == "maximum_epochs"
    assert [row["epoch"] for row in run.history] == [1, 2]
    assert run.target_tokens == 2 * cut.target_tokens


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("pre_norm", [False, True])
@pytest.mark.full
def test_precisions_and_norms_train(begin: Begin, precision: str, pre_norm: bool) -> None:
    run = begin(
        architecture={"pre_norm": pre_norm},
        training={"precision": precision, "schedule": "linear", "maximum_updates": 30},
        validation={"every_updates": 10},
    )
    run.train()
    assert run.history[-1]["valid_loss"] < run.history[0]["valid_loss"] - 0.2
