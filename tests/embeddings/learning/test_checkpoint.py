"""Checkpoints: only safetensors with the expected tensors are loaded."""

import errno
import pickle
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError

from paraforge.base.errors import InputError
from paraforge.embeddings.learning.checkpoint import (
    CHECKPOINT,
    newest_checkpoint,
    read_tensors,
    save_checkpoint,
    write_tensors,
)

TENSORS = {"table": torch.arange(6.0).reshape(2, 3), "bias": torch.zeros(3, dtype=torch.float64)}


class _Malicious:
    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (Path("executed"),))


def test_round_trip_and_same_bytes(tmp_path: Path) -> None:
    write_tensors(tmp_path / "a", TENSORS)
    write_tensors(tmp_path / "b", dict(reversed(list(TENSORS.items()))))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    (tmp_path / "usual").touch()
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "usual").stat().st_mode
    loaded = read_tensors(tmp_path / "a", TENSORS)
    assert all(torch.equal(loaded[name], value) for name, value in TENSORS.items())


@pytest.mark.parametrize("name", ["model.pt", "model.safetensors"])
def test_pickle_in_checkpoint_is_never_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(pickle.dumps(_Malicious()))
    with pytest.raises(InputError, match=r"not a safetensors file.*Pickles"):
        read_tensors(tmp_path / name, TENSORS)
    torch.save({"table": torch.zeros(2, 3)}, tmp_path / name)
    with pytest.raises(InputError, match="not a safetensors file"):
        read_tensors(tmp_path / name, TENSORS)
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"table": torch.zeros(3, 3)}, r"table is \(3, 3\) torch.float32, not \(2, 3\)"),
        ({"bias": torch.zeros(3)}, r"bias is \(3,\) torch.float32, not \(3,\) torch.float64"),
        ({"cell": torch.zeros(3)}, "a cell that does not belong"),
        ({"table": torch.full((2, 3), torch.nan)}, "table contains NaN or infinity"),
    ],
)
def test_checkpoint_with_other_tensors_is_error(
    tmp_path: Path, changed: dict[str, torch.Tensor], message: str
) -> None:
    write_tensors(tmp_path / "file", {**TENSORS, **changed})
    with pytest.raises(InputError, match=message):
        read_tensors(tmp_path / "file", TENSORS)


def test_missing_or_truncated_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_tensors(tmp_path / "file", TENSORS)
    write_tensors(tmp_path / "file", TENSORS)
    (tmp_path / "file").write_bytes((tmp_path / "file").read_bytes()[:-3])
    with pytest.raises(InputError, match="not a safetensors file"):
        read_tensors(tmp_path / "file", TENSORS)
    write_tensors(tmp_path / "file", {"table": TENSORS["table"]})
    with pytest.raises(InputError, match="no bias"):
        read_tensors(tmp_path / "file", TENSORS)


def test_newest_complete_checkpoint_is_used(tmp_path: Path) -> None:
    assert newest_checkpoint(tmp_path, TENSORS) is None
    save_checkpoint(tmp_path, TENSORS, {"n": 5})
    save_checkpoint(tmp_path, {**TENSORS, "bias": torch.ones(3, dtype=torch.float64)}, {"n": 12})
    tensors, state = newest_checkpoint(tmp_path, TENSORS)
    assert state == {"n": 12}
    assert torch.equal(tensors["table"], TENSORS["table"]) and bool((tensors["bias"] == 1).all())
    assert [path.name for path in tmp_path.iterdir()] == [CHECKPOINT]


def test_damaged_checkpoint_is_skipped(tmp_path: Path) -> None:
    """The file is cut, or has a wrong header length, no text, or other tensors."""
    save_checkpoint(tmp_path, TENSORS, {"n": 5})
    path = tmp_path / CHECKPOINT
    good = path.read_bytes()
    for damaged in (b"", good[:20], good[:-3], good[:3] + b"x" + good[4:]):
        path.write_bytes(damaged)
        assert newest_checkpoint(tmp_path, TENSORS) is None
    write_tensors(path, TENSORS)
    assert newest_checkpoint(tmp_path, TENSORS) is None
    save_checkpoint(tmp_path, {"table": TENSORS["table"]}, {"n": 5})
    assert newest_checkpoint(tmp_path, TENSORS) is None


def test_full_disk_while_saving_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = "Error while serializing: I/O error: No space left on device (os error 28)"

    def full(*_: object) -> None:
        raise SafetensorError(problem)

    monkeypatch.setattr("safetensors.torch.save_file", full)
    with pytest.raises(OSError, match="No space left on device") as caught:
        write_tensors(tmp_path / "x.safetensors", TENSORS)
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename == str(tmp_path / "x.safetensors")
    problem = "another one"
    with pytest.raises(SafetensorError, match=problem):
        write_tensors(tmp_path / "x.safetensors", TENSORS)
