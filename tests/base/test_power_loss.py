"""Power fails at any moment: what has its final name is whole, and what a call has written stays.

The order of writes, fsyncs, renames and removals is recorded and cut anywhere. What was not synced by then is
dropped: content without fsync, and names in a directory without fsync of it. As a file system may also keep
names early, each cut is looked at with the names of that moment, too.
"""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from paraforge.base.files import remove_directory, text_output, write_csv, write_json
from paraforge.base.shards.store import ShardDirectory, write_shard
from paraforge.base.shards.work import WorkDirectory, link_or_copy, replaced_directories, replaced_directory
from paraforge.translation.memory.memory import HypothesisRows, MemorySet
from tests.base.shards.steps import write_table

Content = dict[str, bytes]
CALLS = ("fsync", "rename", "replace", "link", "mkdir", "unlink", "rmdir")


class Disk:
    """A directory, and what a power cut at each recorded moment would leave."""

    def __init__(self, root: Path, without: int | None = None) -> None:
        """without: the fsync, counted from 0, that is left out."""
        self.root = root
        self.syncs = 0
        self.cuts: list[Content] = []
        self._without = without
        self._content: dict[int, bytes] = {}
        self._names: dict[int, dict[str, tuple[int, bool]]] = {}
        self._held: list[int] = []
        for path in [root, *root.rglob("*")]:
            descriptor = os.open(path, os.O_RDONLY)
            self._note(descriptor)
            os.close(descriptor)

    def _note(self, descriptor: int) -> None:
        """Record that a file or directory has reached the disk as it is now."""
        self._held.append(os.dup(descriptor))  # so that no later file gets its number
        number = os.fstat(descriptor).st_ino
        place = Path(f"/proc/self/fd/{descriptor}")
        if place.is_dir():
            self._names[number] = {
                path.name: (path.lstat().st_ino, path.is_dir()) for path in place.iterdir()
            }
        else:
            self._content[number] = place.read_bytes()

    def fsync(self, descriptor: int) -> None:
        if self.syncs != self._without:
            self._note(descriptor)
        self.syncs += 1

    def cut(self) -> None:
        """Record what a power cut now would leave."""
        self.cuts += [self.left(), self._early()]

    def left(self) -> Content:
        found: Content = {}

        def walk(number: int, name: str) -> None:
            for inner, (other, is_directory) in self._names.get(number, {}).items():
                if is_directory:
                    walk(other, f"{name}{inner}/")
                else:
                    found[f"{name}{inner}"] = self._content.get(other, b"")

        walk(self.root.stat().st_ino, "")
        return found

    def _early(self) -> Content:
        paths = [path for path in self.root.rglob("*") if path.is_file()]
        return {
            path.relative_to(self.root).as_posix(): self._content.get(path.stat().st_ino, b"")
            for path in paths
        }

    def close(self) -> None:
        for descriptor in self._held:
            os.close(descriptor)


@contextmanager
def recorded(disk: Disk) -> Iterator[None]:
    """Record every call that changes the disk, with a cut before and after it."""
    before = {name: getattr(os, name) for name in CALLS}

    def noting(name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            disk.cut()
            done = disk.fsync(*arguments) if name == "fsync" else before[name](*arguments, **options)
            disk.cut()
            return done

        return call

    try:
        for name in CALLS:
            setattr(os, name, noting(name))
        yield
    finally:
        for name, function in before.items():
            setattr(os, name, function)


def visible(content: Content) -> Content:
    """Return the files under their final names, except those of the lock."""
    return {
        name: text
        for name, text in content.items()
        if not any(part.startswith(".") or part in ("lock", "holder.json") for part in name.split("/"))
    }


def real(root: Path) -> Content:
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def problems(root: Path, write: Callable[[Path], object], whole: list[str], without: int | None) -> list[str]:
    """What a power cut could spoil in a call of ``write``.

    whole: directories that are to be there as a whole or not at all; every file is.
    """
    before = visible(real(root))
    disk = Disk(root, without)
    with recorded(disk):
        write(root)
    after = visible(real(root))
    found = [] if visible(disk.left()) == after else ["what was written is lost when the call has ended"]
    for cut in map(visible, disk.cuts):
        for name, content in cut.items():
            if content not in (before.get(name), after.get(name)):
                found.append(f"{name} is not whole")
        for place in whole:
            first, second, now = (
                {name for name in files if name.startswith(f"{place}/")} for files in (before, after, cut)
            )
            if now and now not in (first, second):
                found.append(f"{place} has {sorted(now)}")
    disk.close()
    return found


def old(root: Path) -> None:
    """The directory and the file that are replaced."""
    for name in ("out/data.bin", "out/inner/more.bin", "file.json"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("old")


def nothing(root: Path) -> None:
    pass


def a_file(root: Path) -> None:
    write_json(root / "file.json", {"a": 1})


def a_file_in_new_directories(root: Path) -> None:
    write_json(root / "deep" / "inner" / "file.json", {"a": 1})


def a_text(root: Path) -> None:
    with text_output(root / "file.txt.gz") as file:
        file.write("text\n")


def a_table(root: Path) -> None:
    write_csv(root / "file.csv", ["a"], [{"a": 1}])


def a_directory(root: Path) -> None:
    a_replaced_directory(root / "new")


def a_replaced_directory(root: Path) -> None:
    with replaced_directory(root / "out") as temporary:
        (temporary / "data.bin").write_text("new")
        (temporary / "inner").mkdir()
        (temporary / "inner" / "more.bin").write_text("new")


def two_directories(root: Path) -> None:
    with replaced_directories(root / "out", root / "two") as places:
        for place in places:
            (place / "data.bin").write_text("new")


def a_copy(root: Path) -> None:
    """Copy files that were never synced, one as a link."""
    (root / ".source").mkdir()
    for name in ("model.bin", "model.json"):
        (root / ".source" / name).write_text("content")
    with replaced_directory(root / "out") as temporary:
        for name in ("model.bin", "model.json"):
            link_or_copy(root / ".source" / name, temporary / name)


def a_removal(root: Path) -> None:
    remove_directory(root / "out")


def a_shard(root: Path) -> None:
    write_shard(pa.table({"a": [1]}), root / "shards" / "shard-00000.parquet")


def some_shards(root: Path) -> None:
    write_table(root / "shards" / "made", pa.table({"a": [1, 2, 3]}), 2, step="test")


def a_memory(root: Path) -> None:
    table = HypothesisRows().table(pa.array([], pa.string()))
    MemorySet(root / "memory" / "set", {"model": "1"}).add([(table, {})])


def a_step(root: Path) -> None:
    work = WorkDirectory("ingest", root / "work")
    with work.lock():
        record = work.commit("key", pa.table({"a": [1]}))
        work.publish(["key"], [record], root / "out", {"step": "test"})
    assert ShardDirectory(root / "out").read(0).num_rows == 1


WRITERS: dict[str, tuple[Callable[[Path], None], Callable[[Path], None], list[str]]] = {
    f"{write.__name__}-over-{before.__name__}": (before, write, whole)
    for before, write, whole in [
        (nothing, a_file, []),
        (old, a_file, []),
        (nothing, a_file_in_new_directories, []),
        (nothing, a_text, []),
        (nothing, a_table, []),
        (nothing, a_directory, ["new/out"]),
        (old, a_replaced_directory, ["out"]),
        (old, two_directories, ["out", "two"]),
        (nothing, a_copy, ["out"]),
        (old, a_copy, ["out"]),
        (old, a_removal, ["out"]),
        (nothing, a_shard, []),
        (nothing, some_shards, []),
        (nothing, a_memory, []),
        (old, a_step, ["out"]),
    ]
}
# These sync a directory or file again when more is written.
TWICE = (a_step, two_directories, some_shards, a_memory)
needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="reads what is open from /proc")


@needs_proc
@pytest.mark.parametrize("name", WRITERS)
def test_power_loss_leaves_complete_files(name: str, tmp_path: Path) -> None:
    before, write, whole = WRITERS[name]
    before(tmp_path)
    assert problems(tmp_path, write, whole, None) == []


@needs_proc
@pytest.mark.parametrize("name", [name for name, (_, write, _) in WRITERS.items() if write not in TWICE])
def test_every_fsync_is_needed(name: str, tmp_path: Path) -> None:
    """If any one fsync is left out, the test above fails."""
    before, write, whole = WRITERS[name]
    (tmp_path / "whole").mkdir()
    before(tmp_path / "whole")
    disk = Disk(tmp_path / "whole")
    with recorded(disk):
        write(tmp_path / "whole")
    disk.close()
    assert disk.syncs > 0
    for number in range(disk.syncs):
        place = tmp_path / str(number)
        place.mkdir()
        before(place)
        assert problems(place, write, whole, number), f"fsync {number + 1} of {disk.syncs} is not needed"


def test_unsyncable_directory_is_not_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some network file systems refuse to sync directories; a file that cannot be synced is an error."""
    fsync = os.fsync

    def refuse(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").is_dir():
            raise OSError(errno.EINVAL, "Invalid argument")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", refuse)
    a_replaced_directory(tmp_path)
    assert (tmp_path / "out" / "data.bin").read_text() == "new"
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(errno.EIO, "I/O error")))
    with pytest.raises(OSError, match="Input/output error"):
        a_file(tmp_path)
