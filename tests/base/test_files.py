"""Fingerprints of files and directories, and leftovers of killed processes."""

import errno
import gzip
import hashlib
import itertools
import math
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from paraforge.base import files
from paraforge.base.files import sha256_directory, sweep, text_output, write_json


def test_fingerprint_follows_linked_directories(tmp_path: Path) -> None:
    for name in ("model", "elsewhere/inner"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "model" / "weights").write_text("weights")
    plain = sha256_directory(tmp_path / "model")
    (tmp_path / "elsewhere" / "inner" / "vocabulary").write_text("one")
    (tmp_path / "model" / "linked").symlink_to(tmp_path / "elsewhere")
    linked = sha256_directory(tmp_path / "model")
    (tmp_path / "elsewhere" / "inner" / "vocabulary").write_text("two")
    assert len({plain, linked, sha256_directory(tmp_path / "model")}) == 3
    (tmp_path / "elsewhere" / "round").symlink_to(tmp_path / "model")
    assert len([*files.files_below(tmp_path / "model")]) == 2  # each once
    named = sha256_directory(tmp_path / "model")
    (tmp_path / "model" / "lost").symlink_to(tmp_path / "nowhere")
    assert sha256_directory(tmp_path / "model") == named


def test_fingerprint_ignores_directory_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "inner/a"):
        write_json(tmp_path / name, name)
    wanted = sha256_directory(tmp_path)
    paths = [*files.files_below(tmp_path)]
    for order in itertools.permutations(paths):
        monkeypatch.setattr(files, "files_below", lambda _, order=order: order)
        assert sha256_directory(tmp_path) == wanted


def write_a_file(place: Path) -> None:
    write_json(place / "other.json", {})


def write_a_directory(place: Path) -> None:
    with files.scratch_directory(place / "other"):
        pass


def refuse() -> None:
    """Raise the system's error for another user's process."""
    raise PermissionError


@pytest.mark.parametrize("write", [write_a_file, write_a_directory])
def test_next_writer_removes_leftovers_of_killed_command(
    write: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "node-1.example.org")
    program = (
        "import os, pathlib, socket, sys\n"
        "socket.gethostname = lambda: 'node-1.example.org'\n"
        "from paraforge.base.files import atomic_path, scratch_directory\n"
        "place = pathlib.Path(sys.argv[1])\n"
        "with scratch_directory(place / 'scratch') as scratch, atomic_path(place / 'file') as temporary:\n"
        "    (scratch / 'half').touch(); temporary.touch(); os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    assert [left.suffix for left in tmp_path.iterdir()] == [".tmp"] * 2
    alive = tmp_path / f".other.node-1-example-org-{os.getpid()}-00000000.tmp"
    elsewhere = tmp_path / ".other.another-host-1-00000000.tmp"
    long_ago = tmp_path / ".out.another-host-1-00000000.tmp"
    long_ago.mkdir()
    os.utime(long_ago, (0, time.time() - 8 * 24 * 3600))
    mine = tmp_path / ".notes.tmp"
    unknown = tmp_path / f".other.node-1-example-org-{10**20}-00000000.tmp"
    others = tmp_path / ".other.node-1-example-org-1-00000000.tmp"
    kill = os.kill
    monkeypatch.setattr(os, "kill", lambda pid, number: kill(pid, number) if pid != 1 else refuse())
    kept = {alive, elsewhere, mine, unknown, others}
    for path in kept:
        path.touch()
    write(tmp_path)
    written = {tmp_path / "other.json"} & {*tmp_path.iterdir()}
    assert {*tmp_path.iterdir()} - written == kept
    sweep(tmp_path, alone=True)
    assert {*tmp_path.iterdir()} == written
    replaced = tmp_path / f"{files.temporary_name(tmp_path / 'a.b').name.removesuffix('.tmp')}-old.tmp"
    replaced.mkdir()
    sweep(tmp_path, alone=True)
    assert {*tmp_path.iterdir()} == {*written, tmp_path / "a.b"}


def test_files_with_wrong_digests_are_named(tmp_path: Path) -> None:
    for name in ("inner/a", "b", "c"):
        files.write_whole(tmp_path / name, name)
    files.write_digests(tmp_path)
    assert files.check_digests(tmp_path) == []
    (tmp_path / "b").write_text("B")
    (tmp_path / "inner/a").unlink()
    assert [str(problem) for problem in files.check_digests(tmp_path)] == [
        f"{tmp_path}/b: differs from sha256.json: it is damaged or was changed",
        f"{tmp_path}/inner/a: cannot be read: No such file or directory",
    ]
    wrong = {b"[1]": "not the SHA-256", b"{}": "not the SHA-256", b"{": "not JSON", b"\xff": "not UTF-8 text"}
    for content, message in wrong.items():
        (tmp_path / "sha256.json").write_bytes(content)
        (problem,) = files.check_digests(tmp_path)
        assert message in str(problem)


def test_digests_are_sha256_and_json_is_canonical(tmp_path: Path) -> None:
    content = b"a" * ((1 << 20) + 1)  # more than one block
    (tmp_path / "file").write_bytes(content)
    assert files.sha256_file(tmp_path / "file") == hashlib.sha256(content).hexdigest()
    canonical = hashlib.sha256('{"a":"é","b":1}'.encode()).hexdigest()
    assert files.hash_json({"b": 1, "a": "é"}) == files.hash_json({"a": "é", "b": 1}) == canonical
    write_json(tmp_path / "file", {"b": 1, "a": "é"})
    assert (tmp_path / "file").read_text("utf-8") == '{\n  "b": 1,\n  "a": "é"\n}\n'
    for write in (files.hash_json, lambda value: write_json(tmp_path / "file", value)):
        with pytest.raises(ValueError, match="not JSON compliant"):
            write(math.nan)


def test_sizes_use_largest_fitting_unit() -> None:
    sizes = {0: "0 B", 999: "999 B", 1000: "1 kB", 10**6: "1.0 MB", 2.5e9: "2.5 GB", 1e15: "1000.0 TB"}
    assert {number: files.size(number) for number in sizes} == sizes


def test_failed_write_keeps_old_file(tmp_path: Path) -> None:
    path = tmp_path / "part.parquet"
    path.write_text("old")
    with (
        pytest.raises(OSError, match="No space left"),
        files.scratch_directory(tmp_path / "scratch") as scratch,
        files.temporary_directory() as elsewhere,
        files.atomic_path(path) as temporary,
    ):
        temporary.write_text("half")
        assert scratch.is_dir() and {temporary, scratch, elsewhere} <= files.unfinished_paths
        raise OSError(errno.ENOSPC, "full")
    assert [*tmp_path.iterdir()] == [path] and path.read_text() == "old"
    assert not {temporary, scratch, elsewhere} & files.unfinished_paths and not elsewhere.exists()


def test_unfinished_files_are_removed_at_immediate_exit(tmp_path: Path) -> None:
    with files.scratch_directory(tmp_path / "scratch"), files.atomic_path(tmp_path / "file") as temporary:
        temporary.touch()
        files.remove_unfinished()
        assert not [*tmp_path.iterdir()]
        temporary.touch()


def test_standard_output_stays_open(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    with text_output(None) as file:
        file.write("é\n")
    sys.stdout.write("more")
    assert capsysbinary.readouterr().out == "é\nmore".encode()


def test_compressed_text_has_no_time_or_name(tmp_path: Path) -> None:
    for name in ("one.gz", "two.gz"):
        with text_output(tmp_path / name) as file:
            file.write("text\n")
    content = (tmp_path / "one.gz").read_bytes()
    assert content == (tmp_path / "two.gz").read_bytes() and content[3:8] == bytes(5)
    assert gzip.decompress(content) == b"text\n"
