"""A full disk: a clear error, and no half shard is believed later."""

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from paraforge.base.shards.resources import Resources
from paraforge.base.shards.step import run_step
from paraforge.base.shards.store import ShardDirectory
from paraforge.base.shards.work import WorkDirectory
from tests.base.shards.steps import multiply_step, write_input


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a small tmpfs needs root and the right to mount")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_stops_the_step_and_the_next_run_goes_on(tmp_path: Path, small_disk: Path) -> None:
    write_input(tmp_path / "in", rows=95)
    resources = Resources.model_validate({"workers": 1, "work": small_disk / "work"})
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * (960 << 10))
    with pytest.raises(OSError, match="No space left") as caught:
        run_step(multiply_step(3), [tmp_path / "in"], tmp_path / "out", resources)
    assert caught.value.errno == errno.ENOSPC
    assert not (tmp_path / "out").exists()
    ballast.unlink()
    report = run_step(multiply_step(3), [tmp_path / "in"], tmp_path / "out", resources)
    assert report.rows == 95
    assert ShardDirectory(tmp_path / "out").read(9)["product"].to_pylist() == [
        3 * line for line in range(90, 95)
    ]


def test_a_shard_that_did_not_fit_leaves_nothing_behind(small_disk: Path) -> None:
    work = WorkDirectory("step", small_disk)
    incompressible = pa.table({"a": [os.urandom(1 << 20)] * 2})
    with pytest.raises(OSError, match="No space left"):
        work.commit("key", incompressible)
    assert work.find("key") is None
    assert [path.name for path in (small_disk / "step").iterdir()] == []
