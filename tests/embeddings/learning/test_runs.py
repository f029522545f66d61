"""A finished training is reused only if its model and report are unchanged."""

import errno
from pathlib import Path
from typing import Any

import pytest

from paraforge.base.errors import InputError, WorkLockedError
from paraforge.base.files import write_json
from paraforge.embeddings.learning.loop import Record
from paraforge.embeddings.learning.runs import MODEL, run_once

DAMAGED = [f"{MODEL}/weights", f"{MODEL}/sha256.json", "report.json"]


@pytest.mark.parametrize("changed", [None, *DAMAGED, "format", "key"])
def test_damaged_result_is_trained_again(tmp_path: Path, changed: str | None) -> None:
    trained: list[Path] = []
    key, readable = "0" * 40, True

    def train(directory: Path) -> dict[str, Any]:
        trained.append(directory)
        with pytest.raises(WorkLockedError):
            run()
        (directory / MODEL).mkdir(parents=True, exist_ok=True)
        (directory / MODEL / "weights").write_bytes(b"weights")
        (directory / "pairs").mkdir(exist_ok=True)
        write_json(directory / "pairs" / "index.json", {})
        return {"pairs": 7}

    def open_model(directory: Path) -> None:
        if not readable:
            raise InputError("of an earlier format", directory)

    def run() -> dict[str, Any]:
        output, work = tmp_path / "models" / "out", tmp_path / "work"
        report = run_once("kind", key, work, output, train=train, open_model=open_model, scratch=["pairs"])
        assert (output / "weights").read_bytes() == b"weights"
        return report

    (tmp_path / "models").write_text("a thesis")
    with pytest.raises(InputError, match="models"):
        run()
    (tmp_path / "models").unlink()
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "out").write_text("a thesis")
    with pytest.raises(InputError, match="models/out: is a file"):
        run()
    with pytest.raises(InputError, match="contains the work directory"):
        run_once("x", key, tmp_path / "work", tmp_path, train=train, open_model=open_model, scratch=[])
    assert not trained  # in vain

    def full(directory: Path) -> dict[str, Any]:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match=r"written: .*work/full/0"):
        run_once(
            "full", key, tmp_path / "work", tmp_path / "o", train=full, open_model=open_model, scratch=[]
        )
    (tmp_path / "models" / "out").unlink()
    assert run() == {"pairs": 7}
    (trained[0] / "pairs").mkdir()  # as if it had been killed before this was removed
    assert run() == {"pairs": 7} and len(trained) == 1
    assert not (trained[0] / "pairs").exists()
    if changed in DAMAGED:
        path = trained[0] / changed
        content = path.read_bytes()
        path.unlink()  # the output may be a link to it
        path.write_bytes(content[:-3] + b"xyz")
    readable = changed != "format"
    key = "0" * 39 + "1" if changed == "key" else key
    assert run() == {"pairs": 7} and len(trained) == 1 + (changed is not None)


def test_progress_shows_mean_loss_since_last_entry() -> None:
    history = [{"loss": 0.7}, {"loss": 0.5}, {"loss": None}]
    assert [Record().loss, Record(history=history).loss] == [None, 0.5]
    assert Record(history=history, loss_sum=6.0, loss_terms=4).loss == 1.5
