"""What a stopped run has done of a shard, with the versions of libraries that it was done with."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paraforge.base.files import write_whole

# Format 1 kept failures of sentences that a lost engine had never looked at.
_FORMAT = 2
SUFFIX = ".unfinished"


@dataclass(frozen=True)
class Begun:
    """libraries: versions by name. content: what the step keeps of its shard, by a key of its own."""

    libraries: dict[str, str]
    content: dict[str, Any]


def read_begun(path: Path) -> Begun | None:
    """What is in a file; None if it is missing, damaged, or of an earlier format."""
    try:
        digest, _, content = path.read_bytes().partition(b"\n")
        if digest.decode() != hashlib.sha256(content).hexdigest():
            return None
        found = json.loads(content)
        return Begun(found["libraries"], found["content"]) if found["format"] == _FORMAT else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_begun(path: Path, begun: Begun) -> None:
    """Write a file, whole or not at all."""
    content = json.dumps({"format": _FORMAT, "libraries": begun.libraries, "content": begun.content}).encode()
    write_whole(path, hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
