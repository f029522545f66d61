"""The work directory: only complete results of its own, and a single writer."""

import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pyarrow as pa
import pytest

from paraforge.base.errors import InputError, Interrupted, WorkLockedError
from paraforge.base.shards.work import (
    WorkDirectory,
    libraries_of,
    link_or_copy,
    replaced_directories,
    replaced_directory,
)


def test_library_order_does_not_change_shard(tmp_path: Path) -> None:
    work = WorkDirectory("step", tmp_path)
    found = []
    for names in ("ab", "ba"):
        work.commit("k1", pa.table({"a": [1]}), dict.fromkeys(names, "1.0"))
        found.append(work.file("k1").read_bytes())
    assert found[0] == found[1]


def test_truncated_or_swapped_shards_are_rejected(tmp_path: Path) -> None:
    work = WorkDirectory("step", tmp_path)
    assert work.find("k1") is None and libraries_of(work.file("k1")) == {}
    assert work.commit("k1", pa.table({"a": list(range(5000))})) == work.find("k1")
    work.commit("k2", pa.table({"a": list(range(5000, 10000))}))
    one, two = work.file("k1"), work.file("k2")
    first, second = one.read_bytes(), two.read_bytes()

    one.write_bytes(first[:-20])
    assert work.find("k1") is None
    one.write_bytes(second), two.write_bytes(first)
    assert work.find("k1") is None and work.find("k2") is None
    one.unlink()
    assert work.find("k1") is None


def test_second_writer_is_told_the_first(tmp_path: Path) -> None:
    work = WorkDirectory("step", tmp_path)
    program = (
        "import sys; from pathlib import Path; from paraforge.base.shards.work import WorkDirectory\n"
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
        with pytest.raises(WorkLockedError, match=f"process {other.pid} on ") as refused, work.lock():
            pass
        assert refused.value.exit_code == 4
        (tmp_path / "step" / "holder.json").write_text("{")
        with pytest.raises(WorkLockedError, match="in use by another process: wait for it"), work.lock():
            pass
    finally:
        other.kill()
        other.communicate()
    with work.lock():  # a killed holder leaves nothing that has to be cleared by hand
        pass
    assert [path.name for path in work.path.iterdir()] == ["lock"]  # nobody is named who has ended


@pytest.mark.parametrize(("why", "said"), [((), "interrupted: finished work is kept in"), (("why",), "why$")])
def test_interruption_message_says_what_is_kept(tmp_path: Path, why: tuple[str, ...], said: str) -> None:
    with pytest.raises(Interrupted, match=f"^{said}"), WorkDirectory("step", tmp_path).lock():
        raise Interrupted(*why)


def test_failed_replacement_keeps_old_directory(tmp_path: Path) -> None:
    output = tmp_path / "out"
    output.mkdir()
    (output / "kept").write_text("old")
    with pytest.raises(RuntimeError), replaced_directory(output) as temporary:
        (temporary / "half").write_text("new")
        raise RuntimeError
    assert [path.name for path in tmp_path.iterdir()] == ["out"] and (output / "kept").exists()


def test_user_file_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis").write_text("years of work")
    refused = pytest.raises(InputError, match="thesis: is a file, but must be a directory")
    with refused, replaced_directories(tmp_path / "other", tmp_path / "thesis"):
        pass
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "file").write_text("kept")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with replaced_directory(tmp_path / "link") as new:
        (new / "file").write_text("new")
    assert contents(tmp_path) == {"thesis": "years of work", "target/file": "kept", "link/file": "new"}


def contents(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}


def test_failed_rename_keeps_old_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("old")
    rename = Path.rename

    def refuse(self: Path, target: Path) -> Path:
        if target.name == "two" and not self.name.endswith("-old.tmp"):
            raise OSError("no")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(OSError, match="no"), replaced_directories(tmp_path / "one", tmp_path / "two") as new:
        for directory in new:
            (directory / "file").write_text("new")
    assert contents(tmp_path) == {"one/file": "new", "two/file": "old"}


def test_active_writers_are_left_alone(tmp_path: Path) -> None:
    with replaced_directory(tmp_path / "out") as first:
        with replaced_directory(tmp_path / "out") as second:
            (second / "file").write_text("second")
        assert first.is_dir()
        (first / "file").write_text("first")
    assert contents(tmp_path) == {"out/file": "first"}


@pytest.mark.parametrize("name", ["a.json", "a.txt", "README.md", "a.parquet"])
def test_text_is_copied_but_data_hard_linked(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("{}")
    link_or_copy(tmp_path / name, tmp_path / f"copy-{name}")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("os.link", Mock(side_effect=OSError))  # as between file systems
        link_or_copy(tmp_path / name, tmp_path / f"again-{name}")
    assert (tmp_path / f"again-{name}").read_text() == "{}"
    assert (tmp_path / name).samefile(tmp_path / f"copy-{name}") == name.endswith(".parquet")


def test_leftovers_of_killed_writer_do_not_block(tmp_path: Path) -> None:
    """The holder of the lock is the only writer, so all temporary files are leftovers, whichever host wrote
    them.
    """
    work = WorkDirectory("step", tmp_path)
    record = work.commit("kept", pa.table({"a": [1]}))
    for number, left in enumerate((".file.1-ab.tmp", ".out.host-1-ab.tmp", ".out.host-1-ab-old.tmp")):
        if number:
            (work.path / left / "deep").mkdir(parents=True)
            (work.path / left / "deep" / "file").touch()
        else:
            (work.path / left).touch()
    replaced = work.path / "files" / ".before.host-1-0123abcd-old.tmp"
    (replaced / ".inner.host-1-0123abcd.tmp").mkdir(parents=True)
    (work.path / "files" / ".half.host-1-0123abcd.tmp").touch()
    with work.lock():
        assert work.find("kept") == record
        assert not list(work.path.rglob(".*.tmp"))
        assert [path.name for path in (work.path / "files").iterdir()] == ["before"]


@pytest.mark.parametrize(("step", "left"), [("ingest", {"new", "files/used"}), ("score", None)])
def test_finished_stage_removes_cheap_results(tmp_path: Path, step: str, left: set[str] | None) -> None:
    work = WorkDirectory(step, tmp_path)
    with work.lock():
        for key in ("old", "new"):
            work.commit(key, pa.table({"a": [1]}))
        for name in ("files/used", "files/unused", "sample"):
            (work.path / name).mkdir(parents=True)
        before = names(work.path)
        work.keep_only(["new", "files/used"])
        assert names(work.path) == (before if left is None else left)
    assert (work.path / "lock").exists()


def names(root: Path) -> set[str]:
    """Return the results in a step's directory, by name."""
    found = {path.stem for path in root.iterdir() if path.suffix == ".parquet"}
    found |= {path.name for path in root.iterdir() if path.is_dir() and path.name != "files"}
    return found | {f"files/{path.name}" for path in root.glob("files/*")}
