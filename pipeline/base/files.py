"""Files written whole or not at all, and their SHA-256."""

import csv
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import socket
import sys
import tempfile
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from paraforge.base.errors import InputError, naming


def plain_name(value: object) -> str:
    """Return a file name from a manifest or an index. Raises ValueError if it is not a plain name, so that no
    description can point outside its own directory."""
    name = str(value)
    if not name or name in (".", "..") or any(character in name for character in "/\\\0\n"):
        raise ValueError(f"{name!r} is not a plain file name")
    return name


def at_home(path: str | os.PathLike[str]) -> Path:
    """Replace ``~`` at the beginning of a path by the home directory. ``~old`` is an ordinary name unless
    there is a user ``old``."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - Path's raises for an unknown user


def sync_file(path: Path) -> None:
    """Make a file's content survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_directory(path: Path) -> None:
    """Make the names in a directory survive a power cut, where the system can."""
    with suppress(OSError):  # some network file systems refuse to sync a directory
        sync_file(path)


def sync_tree(directory: Path) -> None:
    """Make a directory with all files and directories in it survive a power cut."""
    for path in directory.rglob("*"):
        if path.is_dir():
            sync_directory(path)
        elif not path.is_symlink():
            sync_file(path)
    sync_directory(directory)


def make_directory(path: Path) -> None:
    """Make a directory, and those above it, so that it survives a power cut; it may exist."""
    if not path.is_dir():
        make_directory(path.parent)
        path.mkdir(exist_ok=True)
        sync_directory(path.parent)


# This process's temporary files and directories.
unfinished_paths: set[Path] = set()
# Directories that this process has already swept of leftovers from killed processes.
_swept: set[Path] = set()
_WEEK_SECONDS = 7 * 24 * 3600.0
_TEMPORARY = re.compile(r"\.(?P<name>.+)\.(?P<host>[^.]+)-(?P<pid>\d+)-[0-9a-f]{8}(?P<old>-old)?\.tmp")


def remove_unfinished() -> None:
    """Remove this process's temporary files and directories, before it exits at once."""
    for path in list(unfinished_paths):
        remove(path)


def remove(path: Path) -> None:
    """Remove a temporary file, or a directory with its content, if it exists. If it is a link, only the link
    is removed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def remove_directory(path: Path) -> None:
    """Remove a directory, or a link to one, if it exists. Other processes never see a partly removed one.

    Raises OSError if it cannot be renamed; it is then unchanged.
    """
    hidden = temporary_name(path)
    try:
        path.rename(hidden)
    except FileNotFoundError:
        return
    sync_directory(path.parent)
    remove(hidden)


def temporary_name(path: Path) -> Path:
    """Return a new name next to a path; it contains the writing process's ID."""
    writer = f"{_host()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    return path.with_name(f".{path.name}.{writer}.tmp")


def _host() -> str:
    """Return this host's name without dots, because a dot separates it from the name before it."""
    return socket.gethostname().replace(".", "-")


def sweep(directory: Path, alone: bool = False) -> None:
    """Remove what killed processes on this host left in a directory, and what those on other hosts, or in
    other containers, left there a week ago.

    If the process was killed while replacing a directory, the old directory gets its name back.

    alone: no other process on any host writes there or in directories below, so everything temporary is
        removed at any depth.
    """
    leftovers = directory.rglob(".*.tmp") if alone else directory.glob(".*.tmp")
    for left in sorted(leftovers, reverse=True):  # what is inside a directory before the directory
        match = _TEMPORARY.fullmatch(left.name)
        if alone or (match and _is_abandoned(left, match["host"], int(match["pid"]))):
            if match and match["old"] and not left.with_name(match["name"]).exists():
                left.rename(left.with_name(match["name"]))
            else:
                remove(left)


def sweep_once(directory: Path) -> None:
    """Sweep a directory the first time this process writes there."""
    if directory not in _swept:
        _swept.add(directory)
        sweep(directory)


def _is_abandoned(path: Path, host: str, process: int) -> bool:
    """Return whether the process that made a temporary path has ended. A process of another host counts as
    ended if the path has not changed for a week."""
    if host == _host():
        return not _is_running(process)
    with suppress(FileNotFoundError):  # another process was faster
        return time.time() - path.lstat().st_mtime > _WEEK_SECONDS
    return False


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True


@contextmanager
def scratch_directory(path: Path) -> Iterator[Path]:
    """Provide an empty directory with a temporary name next to ``path``, and remove it after the block. If
    the process is killed, the next one that writes there removes it."""
    make_directory(path.parent)
    sweep(path.parent)
    scratch = temporary_name(path)
    unfinished_paths.add(scratch)
    try:
        scratch.mkdir()
        yield scratch
    finally:
        remove(scratch)
        unfinished_paths.discard(scratch)


@contextmanager
def temporary_directory() -> Iterator[Path]:
    """Provide an empty directory in the system's temporary directory; it is removed after the block, and by
    SIGTERM."""
    with tempfile.TemporaryDirectory(prefix="paraforge-") as name:
        path = Path(name)
        unfinished_paths.add(path)
        try:
            yield path
        finally:
            unfinished_paths.discard(path)


@contextmanager
def atomic_path(path: str | os.PathLike[str], keep: bool = False) -> Iterator[Path]:
    """Provide a temporary file name beside ``path``; on success sync it and rename it to ``path``. If the
    block raises, the temporary file is removed and ``path`` is unchanged.

    keep: the temporary file is ``PATH.part``, and is left if the block raises or the process is killed.
    """
    target = Path(path)
    make_directory(target.parent)
    sweep_once(target.parent)
    temporary = target.with_name(f"{target.name}.part") if keep else temporary_name(target)
    if not keep:
        unfinished_paths.add(temporary)
    try:
        with naming(target, "written"):
            yield temporary
            sync_file(temporary)
        temporary.replace(target)
    except BaseException:
        if not keep:
            temporary.unlink(missing_ok=True)
        raise
    finally:
        unfinished_paths.discard(temporary)
    sync_directory(target.parent)


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a file atomically; text is UTF-8."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)


@contextmanager
def text_output(path: Path | None, keep: bool = False) -> Iterator[TextIO]:
    """Open a UTF-8 text file with Unix line ends for writing (``.gz`` is compressed), atomically as in
    :func:`atomic_path`.

    path: None is standard output. keep: leave ``PATH.part`` if the block raises.
    """
    if path is None:
        stream = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8", newline="\n")
        try:
            yield stream
            stream.flush()
        finally:
            stream.detach()  # standard output must stay open
        return
    with atomic_path(path, keep) as temporary, temporary.open("wb") as raw:
        # No name and no time in the header: the same text gives the same bytes.
        binary = gzip.GzipFile("", "wb", 6, raw, 0) if path.suffix == ".gz" else raw
        with io.TextIOWrapper(binary, encoding="utf-8", newline="\n") as file:
            yield file


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a CSV file with a header atomically; a missing value is an empty field."""
    with text_output(path) as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def sha256_file(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file's bytes as 64 hexadecimal digits."""
    digest = hashlib.sha256()
    with naming(path, "read"), Path(path).open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def files_below(directory: Path) -> Iterator[Path]:
    """Yield the files in a directory and its subdirectories. Links to directories are followed, but each
    directory is visited once."""
    seen = {directory.resolve()}
    for place, inner, names in os.walk(directory, followlinks=True):
        folder = Path(place)
        inner[:] = sorted(name for name in inner if (folder / name).resolve() not in seen)
        seen.update((folder / name).resolve() for name in inner)
        yield from (folder / name for name in names if (folder / name).is_file())


def sha256_directory(directory: Path) -> str:
    """Return the SHA-256 over the names and contents of a directory's files, as hexadecimal digits."""
    digest = hashlib.sha256()
    for path in sorted(files_below(directory)):
        digest.update(f"{path.relative_to(directory).as_posix()} {sha256_file(path)}\n".encode())
    return digest.hexdigest()


DIGESTS = "sha256.json"
"""The file that records the SHA-256 of each file beside it, by name, so that changed files are not reused."""


def write_digests(directory: Path) -> None:
    """Write the SHA-256 of a directory's files to ``sha256.json`` in it; :func:`check_digests` compares."""
    names = sorted(path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file())
    digests = {name: sha256_file(directory / name) for name in names if name != DIGESTS}
    write_json(directory / DIGESTS, digests)


def check_digests(directory: Path) -> list[InputError]:
    """Return the problems of ``sha256.json`` in a directory and of the files that it names."""
    path = directory / DIGESTS
    try:
        content = read_json(path)
        if not isinstance(content, dict) or not content:
            raise InputError("not the SHA-256 of files", path)
    except InputError as error:
        return [error]
    problems = []
    for name, expected in content.items():
        try:
            if sha256_file(directory / name) != expected:
                problems.append(
                    InputError(f"differs from {DIGESTS}: it is damaged or was changed", directory / name)
                )
        except OSError as error:
            problems.append(InputError(f"cannot be read: {error.strerror}", directory / name))
    return problems


def hash_json(value: Any) -> str:
    """Return the SHA-256 of a JSON value in a canonical form: sorted keys, no spaces, no NaN."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write a JSON file atomically, readable by people (indented, in the order given)."""
    write_whole(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_json_or_none(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """Read a JSON object that can be rebuilt. Returns None if the file is missing or damaged."""
    try:
        return read_json_object(path)
    except (InputError, OSError):
        return None


def read_json_object(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a JSON object. Raises InputError if the file is missing or is not one."""
    content = read_json(path)
    if not isinstance(content, dict):
        raise InputError("not a JSON object", path)
    return content


def read_json(path: str | os.PathLike[str]) -> Any:
    """Read a JSON file. Raises InputError if the file is missing or is not JSON; with file and line."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError("no such file", path) from error
    except UnicodeDecodeError as error:
        raise InputError("not UTF-8 text", path) from error
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON: {error.msg}", path, error.lineno) from error
    except RecursionError as error:
        raise InputError("the JSON is nested too deeply", path) from error


def cache_directory(name: str) -> Path:
    """Return a cache directory of this user, shared by all projects: ``$XDG_CACHE_HOME/paraforge/NAME``."""
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "paraforge" / name


def size(amount: float) -> str:
    """Format a number of bytes in the largest unit that gives at least 1."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(amount) < 1000:
            return f"{amount:.0f} {unit}" if unit in ("B", "kB") else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"
