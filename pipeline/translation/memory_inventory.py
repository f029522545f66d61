"""What a translation memory holds, which corpora use it, and removing what none uses."""

from __future__ import annotations

import contextlib
import shutil
import socket
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from paraforge.engines.imported import NAME as IMPORTED
from paraforge.files import hash_json, read_json_or_none, write_json
from paraforge.translation.memory import MemorySet, Segment, sets_of

_USES = "uses"
# Files that a running process may be about to enter are left alone.
_ABANDONED_SECONDS = 86_400.0


@dataclass(frozen=True)
class SetContent:
    """A set of a memory.

    name: of its directory; model, options: as people read them.
    sentences, unused_sentences: in all, and those in segments that no corpus uses.
    bytes, unused_bytes: on the disk. corpora: work directories whose last finished run used it.
    days: since something was added.
    """

    memory: MemorySet
    sentences: int
    unused: tuple[Segment, ...]
    bytes: int
    corpora: tuple[str, ...]
    days: float

    @property
    def title(self) -> str:
        """Model and options in a few words."""
        described = self.memory.description
        if IMPORTED in described:
            return f"imported as {described[IMPORTED]}"
        model, engine = str(described.get("model", "?"))[:8], described.get("engine", "?")
        kind, beam, nbest = (described.get(key, "?") for key in ("compute_type", "beam", "nbest"))
        return f"model {model}, {engine}, {kind}, beam {beam}, {nbest} kept"

    @property
    def unused_bytes(self) -> int:
        """Bytes of what no corpus uses."""
        return sum(segment.path.stat().st_size for segment in self.unused)


def note_use(memory: MemorySet, work: Path, segments: Iterable[Segment]) -> None:
    """Note which segments the corpus of a work directory uses, in place of those that it used before."""
    host = socket.gethostname()
    path = memory.path / _USES / f"{hash_json([host, str(work)])[:20]}.json"
    names = sorted(segment.path.name for segment in segments)
    with contextlib.suppress(OSError):  # a memory that may only be read
        write_json(path, {"host": host, "work": str(work), "segments": names})


def contents(root: Path) -> list[SetContent]:
    """What a memory holds, set by set."""
    found = []
    for memory in sets_of(root):
        notes = [read_json_or_none(path) or {} for path in sorted((memory.path / _USES).glob("*.json"))]
        used = {name for note in notes for name in note.get("segments", [])}
        segments = memory.segments()
        # What was imported waits for a corpus that names it.
        unused = [] if IMPORTED in memory.description else [s for s in segments if s.path.name not in used]
        newest = max((segment.path.stat().st_mtime for segment in segments), default=time.time())
        found.append(
            SetContent(
                memory,
                sum(segment.sentences for segment in segments),
                tuple(unused),
                sum(segment.path.stat().st_size for segment in segments),
                tuple(f"{note.get('work', '?')} on {note.get('host', '?')}" for note in notes),
                (time.time() - newest) / 86_400,
            )
        )
    return found


def prune(content: SetContent) -> int:
    """Remove the segments that no corpus uses, and what killed processes left; gives the bytes freed."""
    freed = content.unused_bytes
    for segment in content.unused:
        segment.path.unlink(missing_ok=True)
    memory = content.memory
    if not memory.segments():
        shutil.rmtree(memory.path)
        return freed
    entered = {segment.path for segment in memory.segments()}
    for path in [*memory.path.glob("*.parquet"), *memory.path.glob(".*.tmp"), *memory.path.glob("*.damaged")]:
        status = path.stat()
        if path not in entered and time.time() - status.st_mtime > _ABANDONED_SECONDS:
            path.unlink(missing_ok=True)
            freed += status.st_size
    return freed
