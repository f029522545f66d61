"""What is in the work directory, what of it the last runs used, and removing the rest."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout

from paraforge.base.errors import InputError
from paraforge.base.files import read_json, remove_directory, remove_leftovers
from paraforge.base.shards.resources import MEMORY_NAME
from paraforge.base.shards.store import INDEX_NAME
from paraforge.base.shards.work import CURRENT_NAME, LOCK_NAME

# Directories of a project below which the stages' outputs are.
PUBLISHED = (
    "data",
    "data/ingested/pivots",
    "data/scored",
    "models",
    "models/decoders",
    "models/embeddings",
    "models/nmt/pivots",
)
State = Literal["current", "unfinished", "old"]
# A directory of a step that holds results by key, as the step's own directory does.
_CONTAINER = "files"
# What a step keeps beside its results.
_BOOKS = (LOCK_NAME, CURRENT_NAME, "holder.json")
_SMALL = 1 << 20


@dataclass(frozen=True)
class Entry:
    """One result in the work directory: a shard with its record, or a directory.

    name: its key, below the step's directory. paths: its files and directories.
    bytes: what they take on the disk and nothing else would: a file that is linked elsewhere takes none.
    state: ``current``: the last finished run used it; ``unfinished``: it is of a later run, which can resume
        from it; ``old``: of earlier parameters or input.
    """

    name: str
    paths: tuple[Path, ...]
    bytes: int
    state: State


@dataclass(frozen=True)
class StepWork:
    """What is in a step's directory; ``holder`` gives the process that holds it."""

    name: str
    path: Path
    holder: str | None = None
    entries: list[Entry] = field(default_factory=list)

    def of(self, *states: State) -> list[Entry]:
        """Entries in one of these states."""
        return [entry for entry in self.entries if entry.state in states]

    def size(self, *states: State) -> int:
        """Their bytes."""
        return sum(entry.bytes for entry in self.of(*states))


def list_work(root: Path, published: Sequence[Path]) -> list[StepWork]:
    """Look through a work directory.

    root: the work directory.
    published: directories below which the stages' outputs lie: what a step made and published before it noted
        what it uses is known by its bytes there.

    Raises InputError: there is no such directory.
    """
    if not root.is_dir():
        raise InputError("there is no such work directory", root)
    known = _Published.below(root, published)
    return [_look_at(root, path, known, _holder(path)) for path in _step_directories(root)]


def prune(root: Path, published: Sequence[Path], step: StepWork, states: Sequence[State]) -> int:
    """Remove a step's entries in these states; nothing where another process holds the step.

    root, published: see :func:`list_work`. step: the step; it is looked at again under its lock.
    states: what is removed.

    Returns bytes freed.
    """
    freed = 0
    with contextlib.suppress(Timeout), FileLock(step.path / LOCK_NAME, timeout=0):
        remove_leftovers(step.path)
        for entry in _look_at(root, step.path, _Published.below(root, published), None).of(*states):
            # The record first: a shard without one is not believed.
            for path in sorted(entry.paths, key=lambda path: path.suffix != ".json"):
                if path.is_dir():
                    remove_directory(path)
                else:
                    path.unlink(missing_ok=True)
            freed += entry.bytes
    return freed


def _step_directories(root: Path) -> Iterator[Path]:
    for path in sorted(root.iterdir()):
        if path.name.startswith("."):
            continue  # is being removed
        if path.is_dir() and not path.is_symlink() and path.name != MEMORY_NAME:
            nested = [child for child in sorted(path.iterdir()) if (child / LOCK_NAME).exists()]
            yield from [path] if not nested or (path / LOCK_NAME).exists() else nested


@dataclass(frozen=True)
class _Published:
    """SHA-256 of what is published: every shard that an index names, and the JSON files of models."""

    shards: set[str]
    documents: set[str]

    @classmethod
    def below(cls, root: Path, published: Sequence[Path]) -> _Published:
        directories = [path for place in published for path in place.glob("*/")]
        indices = [path / INDEX_NAME for path in [*directories, *root.glob("*/published/*/")]]
        shards: set[str] = set()
        for index in filter(Path.is_file, indices):
            value = _json(index)
            listed = value.get("shards", []) if isinstance(value, dict) else []
            shards |= {str(shard.get("sha256")) for shard in listed if isinstance(shard, dict)}
        documents = {_digest(path) for place in published for path in place.glob("*/*.json")}
        return cls(shards, documents - {""})

    def has(self, paths: Sequence[Path]) -> bool:
        for path in paths:
            if path.is_dir():
                if any(_digest(one) in self.documents for one in path.glob("**/*.json")):
                    return True
            elif path.suffix == ".json":
                record = _json(path)
                if isinstance(record, dict) and record.get("sha256") in self.shards:
                    return True
        return False


def _look_at(root: Path, path: Path, published: _Published, holder: str | None) -> StepWork:
    name = str(path.relative_to(root))
    grouped = _grouped(path)
    newest = {key: max(map(_newest, paths)) for key, paths in grouped.items()}
    noted = path / CURRENT_NAME
    names = _json(noted)
    if isinstance(names, list):
        used = set(map(str, names))
        since = noted.stat().st_mtime
    else:
        used = {key for key, paths in grouped.items() if published.has(paths)}
        since = max((newest[key] for key in used), default=0.0)
    entries = []
    for key, paths in sorted(grouped.items()):
        # What is newer than the last finished run may be half of the next one.
        state: State = "current" if key in used else "unfinished" if newest[key] > since else "old"
        entries.append(Entry(key, tuple(paths), sum(map(_bytes, paths)), state))
    return StepWork(name, path, holder, entries)


def _grouped(path: Path) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for child in path.iterdir():
        if child.name in _BOOKS or child.name.startswith("."):
            continue
        if child.is_dir() and child.name == _CONTAINER:
            for inner in child.iterdir():
                found.setdefault(f"{child.name}/{inner.name}", []).append(inner)
        elif child.is_dir():
            found.setdefault(child.name, []).append(child)
        else:
            found.setdefault(child.stem, []).append(child)
    return found


def _json(path: Path) -> Any:
    try:
        return read_json(path)
    except (InputError, OSError):
        return None


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.stat().st_size < _SMALL else ""


def _files(path: Path) -> Iterator[Path]:
    yield from (one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path]


def _bytes(path: Path) -> int:
    statuses = [one.lstat() for one in _files(path)]
    return sum(status.st_blocks * 512 for status in statuses if status.st_nlink == 1)


def _newest(path: Path) -> float:
    return max((one.lstat().st_mtime for one in _files(path)), default=path.stat().st_mtime)


def _holder(path: Path) -> str | None:
    if not (path / LOCK_NAME).exists():
        return None
    with contextlib.suppress(Timeout), FileLock(path / LOCK_NAME, timeout=0):
        return None
    who = _json(path / "holder.json") or {}
    return f"process {who.get('pid', '?')} on {who.get('host', '?')}"
