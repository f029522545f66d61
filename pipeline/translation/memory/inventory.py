"""What a translation memory holds, which corpora use it, and removing what none uses."""

import contextlib
import socket
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paraforge.base.files import hash_json, read_json_or_none, remove_directory, write_json
from paraforge.translation.engines.imported import NAME as IMPORTED
from paraforge.translation.memory.memory import SET_NAME, MemorySet, Segment, sets_of

_USES = "uses"
# Files that a running process may be about to enter are left alone.
_ABANDONED_SECONDS = 86_400.0
# A run that began so long ago and has not finished will not be resumed.
_RUN_SECONDS = 30 * 86_400.0


@dataclass(frozen=True)
class SetContent:
    """A set of a memory.

    name: of its directory; model, options: as people read them.
    sentences, unused_sentences: in all, and those in segments that no corpus uses.
    bytes, unused_bytes: on the disk. corpora: work directories whose last finished run used it.
    days: since something was added.
    busy: a work directory whose run has begun and not finished; then nothing is ``unused``.
    """

    memory: MemorySet
    sentences: int
    unused: tuple[Segment, ...]
    bytes: int
    corpora: tuple[str, ...]
    days: float
    busy: str | None = None

    @property
    def title(self) -> str:
        """Model and options in a few words."""
        described = self.memory.description
        model, engine = str(described.get("model", "?"))[:8], described.get("engine", "?")
        kind, beam, nbest = (described.get(key, "?") for key in ("compute_type", "beam", "nbest"))
        title = f"model {model}, {engine}, {kind}, beam {beam}, {nbest} kept"
        if IMPORTED in described:
            title = f"imported as {described[IMPORTED]}"
        # A file that was imported may say anything.
        return "".join(letter if letter.isprintable() else "?" for letter in title)

    @property
    def use(self) -> str:
        """How much no corpus uses, or that a run has not finished."""
        if self.busy:
            return f"a run of {self.busy} has not finished"
        return f"{sum(segment.sentences for segment in self.unused):,} used by no corpus"

    @property
    def unused_bytes(self) -> int:
        """Bytes of what no corpus uses."""
        return sum(_size(segment.path) for segment in self.unused)


def note_use(memory: MemorySet, work: Path, segments: Iterable[Segment]) -> None:
    """Note which segments the corpus of a work directory uses, in place of those that it used before."""
    _note(memory, work, sorted(segment.path.name for segment in segments))


def note_run(memory: MemorySet, work: Path) -> None:
    """Note that a run has begun, which needs what it finds and what it adds, until :func:`note_use`."""
    _note(memory, work, None)


def _note(memory: MemorySet, work: Path, names: list[str] | None) -> None:
    host = socket.gethostname()
    path = memory.path / _USES / f"{hash_json([host, str(work)])[:20]}.json"
    before = read_json_or_none(path) or {}
    note = {"host": host, "work": str(work), "segments": before.get("segments", [])}
    note |= {"running": True} if names is None else {"segments": names}
    with contextlib.suppress(OSError):  # a memory that may only be read
        write_json(path, note)


def _running(memory: MemorySet) -> str | None:
    """A run that has begun and has not finished."""
    for path in sorted((memory.path / _USES).glob("*.json")):
        note = read_json_or_none(path) or {}
        gone = note.get("host") == socket.gethostname() and not Path(str(note.get("work"))).is_dir()
        if note.get("running") and not gone and time.time() - _changed(path) < _RUN_SECONDS:
            return _described(note)
    return None


def _described(note: dict[str, Any]) -> str:
    return f"{note.get('work', '?')} on {note.get('host', '?')}"


def _changed(path: Path) -> float:
    with contextlib.suppress(OSError):  # it has just gone
        return path.stat().st_mtime
    return 0.0


def _size(path: Path) -> int:
    with contextlib.suppress(OSError):
        return path.stat().st_size
    return 0


def contents(root: Path) -> list[SetContent]:
    """What a memory holds, set by set."""
    found = []
    for memory in sets_of(root):
        notes = [read_json_or_none(path) or {} for path in sorted((memory.path / _USES).glob("*.json"))]
        used = {name for note in notes for name in note.get("segments", [])}
        segments = memory.segments()
        busy = _running(memory)
        # What was imported waits for a corpus that names it.
        kept = busy or IMPORTED in memory.description
        unused = [] if kept else [segment for segment in segments if segment.path.name not in used]
        newest = max((_changed(segment.path) for segment in segments), default=time.time())
        found.append(
            SetContent(
                memory,
                sum(segment.sentences for segment in segments),
                tuple(unused),
                sum(_size(segment.path) for segment in segments),
                tuple(map(_described, notes)),
                (time.time() - newest) / 86_400,
                busy,
            )
        )
    return found


def prune(content: SetContent) -> int:
    """Remove the segments that no corpus uses, and what killed processes left; gives the bytes freed. Nothing
    is removed while a run is under way."""
    memory = content.memory
    if _running(memory):
        return 0
    freed = content.unused_bytes
    for segment in content.unused:
        segment.path.unlink(missing_ok=True)
    entered = {segment.path for segment in memory.segments()}
    for path in [*memory.path.glob("*.parquet"), *memory.path.glob(".*.tmp"), *memory.path.glob("*.damaged")]:
        if path not in entered and time.time() - _changed(path) > _ABANDONED_SECONDS:
            freed += _size(path)
            path.unlink(missing_ok=True)
    begun = _changed(memory.path / SET_NAME)
    if not list(memory.path.glob("*.parquet")) and time.time() - begun > _ABANDONED_SECONDS:
        remove_directory(memory.path)
    return freed
