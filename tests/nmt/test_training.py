"""Training with fairseq's trainer: limits, resuming, and what comes out of it."""

from __future__ import annotations

import csv
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import torch

from paraforge.errors import IncompleteError, InputError, Interrupted
from paraforge.files import read_json, write_json
from paraforge.models.checkpoint import weights_only_state
from paraforge.models.fairseq_compat import load_checkpoint
from paraforge.nmt import processes, training
from paraforge.nmt import training_run as trainer
from paraforge.nmt.binarisation import PreparedBitext, prepare_bitext
from paraforge.nmt.parameters import NmtParameters
from paraforge.nmt.training import train_model, trainer_settings, write_history
from paraforge.nmt.training_pairs import held_out_values
from paraforge.nmt.training_run import TrainingRun
from paraforge.shards.resources import Resources
from tests.models.tiny import bitext
from tests.nmt.test_binarisation import write_shards

RESOURCES = Resources(threads=1, devices=["cpu"])


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


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, PreparedBitext]:
    directory = tmp_path_factory.mktemp("prepared")
    shards = write_shards(directory / "shards", [(cs, en, None) for cs, en in bitext(300)])
    return directory / "work", prepare_bitext(shards, directory / "work", parameters())


def start(directory: Path, prepared: tuple[Path, PreparedBitext], **changes: Any) -> TrainingRun:
    """A run in this process, in ``directory``; a second call resumes from the last checkpoint."""
    work, bitext_prepared = prepared
    if not directory.exists():
        directory.mkdir()
        for name in ("parts", "source.spm", "target.spm", "dict.cs.txt", "dict.en.txt", "held_out.parquet"):
            (directory / name).symlink_to(work / name)
    settings = trainer_settings(directory, parameters(**changes), bitext_prepared, RESOURCES)
    return TrainingRun(directory, settings)


def weights(run: TrainingRun) -> dict[str, torch.Tensor]:
    model: dict[str, torch.Tensor] = weights_only_state({"model": run.trainer.model.state_dict()})["model"]
    return model


def assert_equal(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> None:
    assert first.keys() == second.keys()
    different = [name for name in first if not torch.equal(first[name], second[name])]
    assert not different


def test_two_runs_are_equal_and_learn(tmp_path: Path, prepared: tuple[Path, PreparedBitext]) -> None:
    first = start(tmp_path / "a", prepared)
    before = weights(first)
    assert first.train() == "maximum_updates"
    assert first.updates == 12
    assert [row["update"] for row in first.history] == [4, 8, 12]
    assert first.history[-1]["valid_loss"] < first.history[0]["valid_loss"]
    assert not torch.equal(
        before["decoder.layers.0.fc1.weight"], weights(first)["decoder.layers.0.fc1.weight"]
    )
    second = start(tmp_path / "b", prepared)
    second.train()
    assert_equal(weights(first), weights(second))
    other = start(tmp_path / "c", prepared, training={"seed": 2})
    other.train()
    assert not torch.equal(
        weights(first)["decoder.layers.0.fc1.weight"], weights(other)["decoder.layers.0.fc1.weight"]
    )


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_stopped_run_goes_on_as_if_it_had_not_stopped(
    tmp_path: Path, prepared: tuple[Path, PreparedBitext], monkeypatch: pytest.MonkeyPatch, accumulate: int
) -> None:
    changes: dict[str, Any] = {"training": {"accumulate": accumulate}}
    whole = start(tmp_path / "whole", prepared, **changes)
    whole.train()
    assert whole.epoch() > 1 or accumulate == 1
    for stop_after in (5, 9):
        run = start(tmp_path / "stopped", prepared, **changes)
        monkeypatch.setattr(trainer, "stop_requested", lambda run=run, at=stop_after: run.updates >= at)
        with pytest.raises(Interrupted):
            run.train()
        assert run.updates == stop_after
    monkeypatch.setattr(trainer, "stop_requested", lambda: False)
    last = start(tmp_path / "stopped", prepared, **changes)
    assert last.updates == 9
    last.train()
    assert_equal(weights(whole), weights(last))
    for ours, expected in zip(last.history, whole.history, strict=True):
        assert ours["bleu"] == expected["bleu"]
        assert ours["valid_loss"] == expected["valid_loss"]
        assert ours["target_tokens"] == expected["target_tokens"]


def test_a_killed_run_goes_on_from_its_last_checkpoint(
    tmp_path: Path, prepared: tuple[Path, PreparedBitext], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = start(tmp_path / "whole", prepared)
    whole.train()
    killed = start(tmp_path / "killed", prepared)

    def die() -> bool:
        if killed.updates == 7:
            raise SystemExit("killed")
        return False

    monkeypatch.setattr(trainer, "stop_requested", die)
    with pytest.raises(SystemExit):
        killed.train()
    # What a killed writer leaves beside a checkpoint is never read.
    (tmp_path / "killed" / "checkpoints" / ".checkpoint_last.pt.1-x.tmp").write_bytes(b"half a checkpoint")
    monkeypatch.setattr(trainer, "stop_requested", lambda: False)
    resumed = start(tmp_path / "killed", prepared)
    assert resumed.updates == 4
    resumed.train()
    assert_equal(weights(whole), weights(resumed))
    assert [row["update"] for row in resumed.history] == [4, 8, 12]


def test_an_orphan_stops(
    tmp_path: Path, prepared: tuple[Path, PreparedBitext], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = start(tmp_path / "run", prepared)
    run.parent = -1
    with pytest.raises(Interrupted):
        run.train()
    assert run.updates == 1
    assert start(tmp_path / "run", prepared).updates == 1


def test_a_finished_run_is_not_continued(tmp_path: Path, prepared: tuple[Path, PreparedBitext]) -> None:
    start(tmp_path / "run", prepared).train()
    again = start(tmp_path / "run", prepared)
    assert again.finished == "maximum_updates"
    assert again.train() == "maximum_updates"
    assert again.updates == 12


def test_epochs_end_a_run(tmp_path: Path, prepared: tuple[Path, PreparedBitext]) -> None:
    run = start(
        tmp_path / "run",
        prepared,
        training={"maximum_epochs": 2, "maximum_updates": 1000},
        validation={"every_updates": 0},
    )
    assert run.train() == "maximum_epochs"
    assert [row["epoch"] for row in run.history] == [1, 2]
    assert run.target_tokens == 2 * prepared[1].target_tokens


def test_patience_ends_a_run(
    tmp_path: Path, prepared: tuple[Path, PreparedBitext], monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = iter([1.0, 3.0, 2.0, 2.5, 2.0, 9.0])

    def evaluate(*arguments: Any, **options: Any) -> Any:
        from paraforge.nmt.validation import Scores

        return Scores(bleu=next(scores), chrf=1.0, bleu_signature="", chrf_signature="")

    monkeypatch.setattr("paraforge.nmt.validation.evaluate", evaluate)
    run = start(
        tmp_path / "run",
        prepared,
        training={"maximum_updates": 1000},
        validation={"every_updates": 1, "patience": 3},
    )
    messages: list[dict[str, Any]] = []
    monkeypatch.setattr(trainer, "report", lambda **values: messages.append(values))
    assert run.train() == "patience"
    run._report()  # as at the end, right after a validation
    assert all(message.get("loss", 1) > 0 for message in messages)
    assert [row["bleu"] for row in run.history] == [1.0, 3.0, 2.0, 2.5, 2.0]
    kept = sorted(path.name for path in (tmp_path / "run" / "snapshots").iterdir())
    # The best and the last two, which may be averaged.
    assert kept == ["update-00000002.pt", "update-00000004.pt", "update-00000005.pt"]


def test_time_ends_a_run(tmp_path: Path, prepared: tuple[Path, PreparedBitext]) -> None:
    run = start(tmp_path / "run", prepared, training={"maximum_minutes": 1e-6})
    assert run.train() == "maximum_minutes"
    assert run.updates == 1


def test_parts_are_gone_through_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paraforge.nmt.binarisation.PAIRS_PER_PART", 100)
    shards = write_shards(tmp_path / "shards", [(cs, en, None) for cs, en in bitext(300)])
    cut = prepare_bitext(shards, tmp_path / "work", parameters())
    assert len(cut.parts) == 3
    run = start(
        tmp_path / "run",
        (tmp_path / "work", cut),
        training={"maximum_epochs": 2, "maximum_updates": 1000},
        validation={"every_updates": 0},
    )
    assert run.train() == "maximum_epochs"
    assert [row["epoch"] for row in run.history] == [1, 2]
    assert run.target_tokens == 2 * cut.target_tokens


def test_checkpoints_hold_plain_values(tmp_path: Path, prepared: tuple[Path, PreparedBitext]) -> None:
    start(tmp_path / "run", prepared).train()
    state = load_checkpoint(tmp_path / "run" / "checkpoints" / "checkpoint_last.pt")
    assert state["extra_state"]["paraforge"]["finished"] == "maximum_updates"
    snapshot = next((tmp_path / "run" / "snapshots").iterdir())
    assert str(tmp_path).encode() not in snapshot.read_bytes()


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("pre_norm", [False, True])
def test_precisions_and_norms_train(
    tmp_path: Path, prepared: tuple[Path, PreparedBitext], precision: str, pre_norm: bool
) -> None:
    run = start(
        tmp_path / "run",
        prepared,
        architecture={"pre_norm": pre_norm},
        training={"precision": precision, "schedule": "linear", "maximum_updates": 30},
        validation={"every_updates": 10},
    )
    run.train()
    assert run.history[-1]["valid_loss"] < run.history[0]["valid_loss"] - 0.2


def test_the_training_device_is_the_first_gpu_that_is_named_and_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    generations = [(9, 0), (7, 5)]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: bool(generations))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(generations))
    monkeypatch.setattr(
        torch.cuda, "get_device_capability", lambda device: generations[torch.device(device).index]
    )

    def chosen(*devices: str) -> str:
        return training.training_device(Resources(devices=list(devices)))

    assert (chosen("auto"), chosen("cuda"), chosen("cuda:1", "cuda:0")) == ("cuda:0", "cuda:0", "cuda:1")
    assert (chosen("cpu"), chosen("cuda:2", "cuda:1"), chosen("cpu", "cuda:1")) == ("cpu", "cuda:1", "cuda:1")
    kinds = [training.precision("auto", device) for device in ("cuda:0", "cuda:1")]
    assert kinds == ["bfloat16", "float32"]
    generations.clear()
    assert (chosen("auto"), chosen("cuda:1")) == ("cpu", "cpu")


def test_a_training_on_the_cpu_sees_no_gpu() -> None:
    """fairseq would bring the norm of the gradients to one."""
    on_cpu, on_gpu = (
        processes.training_environment({"threads": 1, "device": device}) for device in ("cpu", "cuda:1")
    )
    assert on_cpu["CUDA_VISIBLE_DEVICES"] == ""
    assert on_gpu.get("CUDA_VISIBLE_DEVICES") == os.environ.get("CUDA_VISIBLE_DEVICES")


def test_precision() -> None:
    assert training.precision("float32", "cpu") == "float32"
    assert training.precision("bfloat16", "cpu") == "bfloat16"
    assert training.precision("auto", "cpu") in ("float32", "bfloat16")


def test_the_process_trains_reports_and_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shards = write_shards(tmp_path / "shards", [(cs, en, None) for cs, en in bitext(300)])
    chosen = parameters()
    # SIGTERM after the first report: the process writes a checkpoint and ends, and so does the stage. This
    # process is not forked, as tests/forked.py has it elsewhere.
    with monkeypatch.context() as patch:
        patch.setattr(processes, "subprocess", subprocess)
        patch.setattr(processes, "stop_requested", lambda: True)
        with pytest.raises(Interrupted):
            train_model(shards, tmp_path / "work", chosen, RESOURCES)
    assert (tmp_path / "work" / "checkpoints" / "checkpoint_last.pt").is_file()
    result = train_model(shards, tmp_path / "work", chosen, RESOURCES)
    assert result.reason == "maximum_updates"
    assert [row["update"] for row in result.history] == [4, 8, 12]
    write_history(result.history, tmp_path / "nmt.csv")
    with (tmp_path / "nmt.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["update"]) for row in rows] == [4, 8, 12]
    assert float(rows[-1]["bleu"]) == result.history[-1]["bleu"]


def test_the_number_of_processes_changes_nothing_but_rounding(tmp_path: Path) -> None:
    shards = write_shards(tmp_path / "shards", [(cs, en, None) for cs, en in bitext(300)])
    chosen = parameters(training={"accumulate": 2, "maximum_updates": 8})
    results = {
        threads: train_model(
            shards, tmp_path / f"work-{threads}", chosen, Resources(threads=threads, devices=["cpu"])
        )
        for threads in (1, 2)
    }
    assert read_json(tmp_path / "work-1" / "settings.json")["ranks"] == 1
    assert read_json(tmp_path / "work-2" / "settings.json")["ranks"] == 2
    for alone, together in zip(results[1].history, results[2].history, strict=True):
        assert together["valid_loss"] == pytest.approx(alone["valid_loss"], abs=2e-3)
        assert together["train_loss"] == pytest.approx(alone["train_loss"], abs=2e-3)
        assert together["target_tokens"] == alone["target_tokens"]
        assert together["epoch"] == pytest.approx(alone["epoch"], abs=0.05)
    # Stopped with two processes, it resumes with one.
    last = load_checkpoint(tmp_path / "work-2" / "checkpoints" / "checkpoint_last.pt")
    alone_last = load_checkpoint(tmp_path / "work-1" / "checkpoints" / "checkpoint_last.pt")
    assert last["extra_state"]["train_iterator"] == alone_last["extra_state"]["train_iterator"]


def test_a_process_that_dies_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shards = write_shards(tmp_path / "shards", [(cs, en, None) for cs, en in bitext(300)])
    written = trainer_settings

    def broken(*arguments: Any) -> dict[str, Any]:
        return {**written(*arguments), "precision": "no such precision"}

    monkeypatch.setattr(training, "trainer_settings", broken)
    with pytest.raises(IncompleteError, match=r"the training process died \(1\): .*no such precision"):
        train_model(shards, tmp_path / "work", parameters(), RESOURCES)
    assert "no such precision" in (tmp_path / "work" / "trainer.log").read_text(encoding="utf-8")


def test_settings_are_json(tmp_path: Path, prepared: tuple[Path, PreparedBitext]) -> None:
    settings = trainer_settings(tmp_path, parameters(), prepared[1], RESOURCES)
    write_json(tmp_path / "settings.json", settings)
    assert read_json(tmp_path / "settings.json") == json.loads(json.dumps(settings))


@pytest.mark.parametrize(("rows", "wanted"), [(200, 1), (12, 20), (14, 1000)])
def test_where_chance_holds_no_pair_out_no_process_is_started(rows: int, wanted: int, tmp_path: Path) -> None:
    # Which sentences are below the threshold follows from their hashes: these are those above a tenth.
    pairs = [(cs, en, None) for cs, en in bitext(400)]
    values = held_out_values(pa.chunked_array([[cs for cs, _, _ in pairs]]))
    shards = write_shards(
        tmp_path / "in", [pair for pair, value in zip(pairs, values, strict=True) if value > 0.1][:rows]
    )
    chosen = parameters(validation={"held_out": wanted})
    for _ in range(2):  # what was prepared is taken as it is
        with pytest.raises(InputError, match=f"none of {rows} pairs is held out"):
            train_model(shards, tmp_path / "work", chosen, RESOURCES)
    assert not (tmp_path / "work" / "settings.json").exists()
