"""The work directory believes only what is whole and its own, and has one writer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline.errors import WorkLockedError
from pipeline.shards.store import ShardDirectory
from pipeline.shards.work import WorkDirectory, replaced_directory


def test_a_committed_shard_is_found(tmp_path: Path) -> None:
    work = WorkDirectory("step", tmp_path)
    record = work.commit("k1", pa.table({"a": [1, 2, 3]}))
    assert work.find("k1") == record
    assert work.find("k2") is None


def test_damaged_truncated_and_swapped_shards_are_not_believed(tmp_path: Path) -> None:
    work = WorkDirectory("step", tmp_path)
    work.commit("k1", pa.table({"a": list(range(5000))}))
    work.commit("k2", pa.table({"a": list(range(5000, 10000))}))
    one, two = work.file("k1"), work.file("k2")
    first, second = one.read_bytes(), two.read_bytes()

    one.write_bytes(first[:100] + bytes([first[100] ^ 1]) + first[101:])
    assert work.find("k1") is None
    one.write_bytes(first[:-20])
    assert work.find("k1") is None
    one.write_bytes(second), two.write_bytes(first)
    assert work.find("k1") is None and work.find("k2") is None
    # even with their records swapped as well, the key in the footer tells
    a, b = one.with_suffix(".json"), two.with_suffix(".json")
    text = a.read_text()
    a.write_text(b.read_text()), b.write_text(text)
    assert work.find("k1") is None and work.find("k2") is None
    one.unlink()
    assert work.find("k1") is None


def test_a_shard_without_its_record_is_not_believed(tmp_path: Path) -> None:
    work = WorkDirectory("step", tmp_path)
    work.commit("k1", pa.table({"a": [1]}))
    work.file("k1").with_suffix(".json").unlink()
    assert work.find("k1") is None


def test_the_second_writer_is_told_who_the_first_is(tmp_path: Path) -> None:
    work = WorkDirectory("step", tmp_path)
    program = (
        "import sys; from pathlib import Path; from pipeline.shards.work import WorkDirectory\n"
        "with WorkDirectory('step', Path(sys.argv[1])).lock(): print('locked', flush=True); sys.stdin.read()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert other.stdout is not None and other.stdout.readline() == "locked\n"
        with pytest.raises(WorkLockedError, match=f"process {other.pid} on "), work.lock():
            pass
    finally:
        other.kill()
        other.communicate()
    with work.lock():  # a killed holder leaves nothing that has to be cleared by hand
        pass


def test_publish_replaces_the_output_as_a_whole(tmp_path: Path) -> None:
    work = WorkDirectory("step", tmp_path / "work")
    output = tmp_path / "out"
    output.mkdir()
    (output / "stale").write_text("old")
    records = [work.commit(key, pa.table({"a": [index]})) for index, key in enumerate(["x", "y"])]
    work.publish(["x", "y"], records, output, {"step": "step"})
    assert sorted(path.name for path in output.iterdir()) == [
        "shard-00000.parquet",
        "shard-00001.parquet",
        "shards.json",
    ]
    assert [table.to_pydict() for table in ShardDirectory(output).tables()] == [{"a": [0]}, {"a": [1]}]


def test_a_failed_replacement_leaves_the_old_directory(tmp_path: Path) -> None:
    output = tmp_path / "out"
    output.mkdir()
    (output / "kept").write_text("old")
    with pytest.raises(RuntimeError), replaced_directory(output) as temporary:
        (temporary / "half").write_text("new")
        raise RuntimeError
    assert [path.name for path in tmp_path.iterdir()] == ["out"] and (output / "kept").exists()
