"""The training process: device, environment, reports, and exit."""

import csv
import errno
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
import torch
from filelock import FileLock, Timeout
from hypothesis import given
from hypothesis import strategies as st

from paraforge.base.errors import IncompleteError, InputError, Interrupted
from paraforge.base.files import read_json, write_json
from paraforge.base.progress import progress
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardDirectory
from paraforge.translation.models.checkpoint import load_checkpoint
from paraforge.translation.models.fairseq_compat import data_path
from paraforge.translation.training import processes, training, training_run
from paraforge.translation.training.binarization import drawn_of
from paraforge.translation.training.processes import Ranks, join, rank_count
from paraforge.translation.training.training import train_model, trainer_settings, write_history
from tests.translation.training.test_binarization import accepted, write_shards
from tests.translation.training.test_training import RESOURCES, parameters


def test_training_device_is_first_available_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
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
    kinds = [precision("auto", device) for device in ("cuda:0", "cuda:1")]
    assert kinds == ["bfloat16", "float32"]
    assert [precision(kind, "cpu") for kind in ("float32", "bfloat16")] == ["float32", "bfloat16"]
    generations.clear()
    assert (chosen("auto"), chosen("cuda:1")) == ("cpu", "cpu")


@pytest.mark.parametrize(("has_amx", "kernels"), [(True, "1024"), (False, "0")])
def test_training_process_environment(has_amx: bool, kernels: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the CPU it sees no GPU, because fairseq would compute the norm of the gradients there. Matrix
    kernels that take long to generate are cached.
    """
    monkeypatch.setattr(processes, "cpu_has_amx", lambda: has_amx)
    environment = processes.training_environment
    on_cpu, on_gpu = (environment({"threads": 1, "device": device}) for device in ("cpu", "cuda:1"))
    assert on_cpu["CUDA_VISIBLE_DEVICES"] == ""
    assert on_gpu.get("CUDA_VISIBLE_DEVICES") == os.environ.get("CUDA_VISIBLE_DEVICES")
    assert on_cpu["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == kernels


def precision(wanted: str, device: str) -> str:
    """What ``wanted`` means on a device."""
    chosen = parameters()
    of_training = chosen.training.model_copy(update={"precision": wanted})
    chosen = chosen.model_copy(update={"training": of_training})
    return training.with_precision(chosen, Resources(devices=[device])).training.precision


@pytest.fixture
def shards(tmp_path: Path) -> ShardDirectory:
    return write_shards(tmp_path / "shards", accepted(300))


@pytest.mark.full
def test_training_process_trains_reports_and_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shards: ShardDirectory
) -> None:
    # SIGTERM after the first report: the process writes a checkpoint and ends, and so does the stage.
    begun: list[Path] = []

    def bar(**values: Any) -> Any:
        begun.append(tmp_path)
        return progress(**values)

    with monkeypatch.context() as patch:
        patch.setattr(processes, "progress", bar)
        patch.setattr(processes, "stop_requested", lambda: bool(begun))
        with pytest.raises(Interrupted):
            train_model(shards, tmp_path / "work", parameters(), RESOURCES)
    assert (tmp_path / "work" / "checkpoints" / "checkpoint_last.pt").is_file()
    result = train_model(shards, tmp_path / "work", parameters(), RESOURCES)
    assert result.reason == "maximum_updates"
    assert [row["update"] for row in result.history] == [4, 8, 12]
    write_history(result.history, tmp_path / "nmt.csv")
    with (tmp_path / "nmt.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["update"]) for row in rows] == [4, 8, 12]
    assert float(rows[-1]["bleu"]) == result.history[-1]["bleu"]


@pytest.mark.full
def test_number_of_processes_changes_only_rounding(tmp_path: Path, shards: ShardDirectory) -> None:
    chosen = parameters(training={"accumulate": 2, "maximum_updates": 8})
    results = {}
    for threads in (1, 2):
        resources = Resources(threads=threads, devices=["cpu"])
        results[threads] = train_model(shards, tmp_path / f"work-{threads}", chosen, resources)
    assert read_json(tmp_path / "work-1" / "settings.json")["ranks"] == 1
    assert read_json(tmp_path / "work-2" / "settings.json")["ranks"] == 2
    close = {"valid_loss": 2e-3, "train_loss": 2e-3, "target_tokens": 0, "epoch": 0.05}
    for alone, together in zip(results[1].history, results[2].history, strict=True):
        for name, most in close.items():
            assert together[name] == pytest.approx(alone[name], abs=most), name
    snapshot = next((tmp_path / "work-2" / "snapshots").iterdir())
    assert str(tmp_path).encode() not in snapshot.read_bytes()
    # Stopped with two processes, it resumes with one.
    last = load_checkpoint(tmp_path / "work-2" / "checkpoints" / "checkpoint_last.pt")
    alone_last = load_checkpoint(tmp_path / "work-1" / "checkpoints" / "checkpoint_last.pt")
    assert last["extra_state"]["train_iterator"] == alone_last["extra_state"]["train_iterator"]


@pytest.mark.full
def test_dead_training_process_is_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shards: ShardDirectory
) -> None:
    written = trainer_settings

    def broken(*arguments: Any) -> dict[str, Any]:
        return {**written(*arguments), "precision": "no such precision"}

    monkeypatch.setattr(training, "trainer_settings", broken)
    with pytest.raises(IncompleteError, match=r"the training process died \(1\): .*no such precision"):
        train_model(shards, tmp_path / "work", parameters(), RESOURCES)
    assert "no such precision" in (tmp_path / "work" / "trainer.log").read_text(encoding="utf-8")


@pytest.mark.parametrize(("rows", "wanted"), [(200, 1), (12, 20), (14, 1000)])
def test_no_held_out_pair_starts_no_process(rows: int, wanted: int, tmp_path: Path) -> None:
    # Which sentences are below the threshold follows from their hashes: these are those above a tenth.
    pairs = accepted(400)
    values = drawn_of(pa.chunked_array([[cs for cs, _, _ in pairs]]))
    shards = write_shards(
        tmp_path / "in", [pair for pair, value in zip(pairs, values, strict=True) if value > 0.1][:rows]
    )
    chosen = parameters(validation={"held_out": wanted})
    for _ in range(2):  # what was prepared is taken as it is
        with pytest.raises(InputError, match=f"none of {rows} pairs is held out"):
            train_model(shards, tmp_path / "work", chosen, RESOURCES)
    assert not (tmp_path / "work" / "settings.json").exists()


@pytest.mark.parametrize("kind", ["transformer", "lstm"])
def test_parameters_reach_fairseq_by_name(kind: str, tmp_path: Path) -> None:
    wanted = {
        "lr": 0.01, "warmup-updates": 7, "label-smoothing": 0.14, "max-tokens": 255, "update-freq": 4,
        "max-update": 90, "seed": 5, "weight-decay": 0.03, "clip-norm": 0.7, "dropout": 0.11,
        "encoder-layers": 3, "decoder-layers": 3 if kind == "lstm" else 2,
        "encoder-embed-dim": 24, "decoder-embed-dim": 24,
    }  # fmt: skip
    sizes = {"feed_forward": 40, "heads": 6, "attention_dropout": 0.12, "activation_dropout": 0.13}
    own: dict[str, Any] = {"encoder-hidden-size": 12, "decoder-hidden-size": 24, "decoder-out-embed-dim": 24}
    if kind == "transformer":
        own = {f"{side}-ffn-embed-dim": 40 for side in ("encoder", "decoder")}
        own |= {f"{side}-attention-heads": 6 for side in ("encoder", "decoder")}
        wanted |= {"attention-dropout": 0.12, "activation-dropout": 0.13}
    names = {"lr": "learning_rate", "max-tokens": "batch_tokens", "update-freq": "accumulate"}
    names |= {"max-update": "maximum_updates", "clip-norm": "clip"}
    training = {names.get(name, name.replace("-", "_")): value for name, value in [*wanted.items()][:9]}
    shape = {"kind": kind, "encoder_layers": 3, "width": 24, "dropout": 0.11, **sizes}
    shape["decoder_layers"] = wanted["decoder-layers"]
    own |= {"adam-betas": "(0.9,0.98)", "adam-eps": "1e-9", "lr-scheduler": "inverse_sqrt"}
    if linear := kind == "lstm":
        own |= {"lr-scheduler": "polynomial_decay", "total-num-update": 90}
        training["schedule"] = "linear"
    chosen = parameters(training=training, architecture=shape, vocabulary={"shared": not linear})
    prepared: Any = SimpleNamespace(parts=["part"])
    settings = trainer_settings(tmp_path, chosen, prepared, Resources(threads=9, devices=["cpu"]))
    assert (settings["ranks"], settings["threads"]) == (4, 2)
    given = settings["arguments"]
    found = {name: given[given.index(f"--{name}") + 1] for name in wanted | own}
    assert found == {name: str(value) for name, value in (wanted | own).items()}
    assert ("--share-all-embeddings" in given) is not linear
    assert ("--share-decoder-input-output-embed" in given) is linear


def test_training_on_a_gpu_is_one_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(training, "training_device", lambda _: "cuda:0")
    chosen = parameters(training={"accumulate": 4, "precision": "float32"})
    prepared: Any = SimpleNamespace(parts=["part"])
    settings = trainer_settings(tmp_path, chosen, prepared, Resources(threads=9))
    assert (settings["device"], settings["ranks"], settings["threads"]) == ("cuda:0", 1, 9)
    assert "--cpu" not in settings["arguments"]


@pytest.mark.parametrize(
    ("log", "told"),
    [
        ("a\nValueError: why\nb\nRuntimeError: Connection closed by peer\n", "ValueError: why"),
        ("a\n b \n", "b"),
        ("", "no message"),
    ],
)
def test_dead_process_error_shows_its_last_message(log: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(log)
    assert processes._last_words(tmp_path / "log") == told


@pytest.mark.parametrize("part", [":", "${"])
def test_path_misread_by_fairseq_is_early_error(tmp_path: Path, part: str) -> None:
    shards = write_shards(tmp_path / "in", accepted(20))
    folder = tmp_path / f"a{part}b"
    with pytest.raises(InputError, match=re.escape(f"'{part}' in its path")):
        train_model(shards, folder / "work", parameters(), RESOURCES)
    assert not folder.exists()
    folder.mkdir()
    with data_path(folder) as read:
        assert Path(read).samefile(folder) and part not in read


def test_rendezvous_address_is_not_in_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    joined: dict[str, Any] = {}
    monkeypatch.setattr("torch.distributed.init_process_group", lambda backend, **how: joined.update(how))
    configuration = SimpleNamespace(distributed_training=SimpleNamespace(), checkpoint=SimpleNamespace())
    join(1, 2, tmp_path / "what? #3", configuration)
    assert joined["timeout"].total_seconds() > 3600  # a validation, for which the others wait
    joined["store"].set("a", "b")
    assert [path.name for path in tmp_path.iterdir()] == ["what? #3"]
    assert "what" not in repr(configuration)


@given(st.integers(1, 64), st.integers(1, 64))
def test_processes_split_batches(batches: int, threads: int) -> None:
    count = rank_count(batches, threads)
    assert batches % count == 0
    assert count <= threads
    assert all(batches % larger for larger in range(count + 1, min(batches, threads) + 1))


@given(st.integers(0, 100), st.integers(0, 10_000), st.sampled_from([1, 2, 3, 4, 6, 12]))
def test_batch_seed_does_not_depend_on_process(seed: int, update: int, count: int) -> None:
    alone = Ranks().batch_seeds(seed, update, 12)
    shared = [0] * 12
    for rank in range(count):
        shared[rank::count] = Ranks(rank, count).batch_seeds(seed, update, 12 // count)
    assert shared == alone
    others = Ranks().batch_seeds(seed + 1, update, 12) + Ranks().batch_seeds(seed, update + 1, 12)
    assert len({*alone, *others}) == 36
    assert Ranks().totals(3, True, 0.5) == [3, 1, 0.5]  # alone


@pytest.mark.parametrize("code", [0, 3])
def test_finished_process_must_exit_cleanly(tmp_path: Path, code: int) -> None:
    end = '{"event": "failed", "message": "full"}' if code else '{"event": "end", "reason": "patience"}'
    lines = ['{"event": "start", "update": 0, "history": []}', end]
    program = f"print({lines[0]!r}); print({lines[1]!r}); raise SystemExit({code})"
    bad = pytest.raises(IncompleteError, match=r"died \(3\): full")
    with (
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process,
        bad if code else nullcontext(),
    ):
        found = processes.follow([process], 10, tmp_path / "log")
        assert found == ("patience", [])


def test_error_of_earlier_run_is_not_shown(tmp_path: Path) -> None:
    (log := tmp_path / processes.LOG).write_text("OSError: No space left on device")
    settings = {"ranks": 0, "threads": 1, "device": "cpu", "rendezvous": "met"}
    (tmp_path / "met").touch()
    with processes.training_processes(tmp_path, settings):
        assert log.read_text(encoding="utf-8") == ""
    assert not (tmp_path / "met").exists()


def test_signal_ends_wait_for_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that was killed can hold the lock for minutes."""
    handlers = [signal.getsignal(signal.SIGTERM)]

    class Lock(nullcontext[None]):
        def __enter__(self) -> None:
            handlers.append(signal.getsignal(signal.SIGTERM))

    monkeypatch.setattr(training_run, "FileLock", lambda path, timeout: Lock())
    assert training_run.main(tmp_path) == InputError.exit_code  # no settings.json
    assert handlers[0] is handlers[1]


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize(
    "ended",
    [
        ("patience", 0, ["start", "end"]),
        (InputError("no pairs"), InputError.exit_code, ["start", "error"]),
        (Interrupted(), Interrupted.exit_code, ["start"]),
        (OSError(errno.ENOSPC, "No space left on device"), None, ["start", "failed"]),
    ],
)
def test_first_process_reports_and_holds_lock(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,
    rank: int,
    ended: tuple[Any, int | None, list[str]],
) -> None:
    ending, code, events = ended

    def train() -> str:
        with pytest.raises(Timeout) if rank == 0 else nullcontext():
            FileLock(tmp_path / "trainer.lock").acquire(timeout=0)
        if isinstance(ending, Exception):
            raise ending
        return str(ending)

    run = SimpleNamespace(updates=3, history=[], train=train, ranks=Ranks(rank))
    monkeypatch.setattr(training_run, "TrainingRun", lambda *arguments: run)
    write_json(tmp_path / "settings.json", {})
    with pytest.raises(OSError) if code is None else nullcontext():
        assert training_run.main(tmp_path, rank) == code
    found = [json.loads(line)["event"] for line in capsys.readouterr().out.splitlines()]
    assert found == (events if rank == 0 else [])
