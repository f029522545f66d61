"""The work directory: finished shards under the hash of what made them, and one writer at a time."""

from __future__ import annotations

import json
import os
import shutil
import socket
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock, Timeout

from pipeline.errors import InputError, WorkLockedError
from pipeline.files import atomic_path, hash_json, read_json, sha256_file, sync_directory, write_json
from pipeline.shards.store import ShardRecord, shard_name, write_index, write_parquet

WORK = Path("work")
LOCK_NAME = "lock"
CURRENT_NAME = "current.json"
_KEY = b"paraforge.key"


class WorkDirectory:
    """Finished pieces of one step, ``work/STEP/KEY.parquet``, each with its SHA-256 beside it.

    A key is the hash of everything that the result depends on, so nothing here ever grows stale:
    a changed parameter asks for other keys.
    """

    def __init__(self, step: str, root: Path = WORK) -> None:
        self.step = step
        self.path = root / step

    def file(self, key: str) -> Path:
        """Where the shard with this key lies, if it is finished."""
        return self.path / f"{key}.parquet"

    def _record_file(self, key: str) -> Path:
        return self.path / f"{key}.json"

    def has(self, key: str) -> bool:
        """Whether a shard with this key is there, whole or not: a look at names alone."""
        return self._record_file(key).is_file() and self.file(key).is_file()

    def find(self, key: str) -> ShardRecord | None:
        """The finished shard with this key, or None if it is missing, damaged, truncated or another's.

        The whole file is read: its SHA-256, its footer's key and its row count have to be right.
        """
        path = self.file(key)
        try:
            record = read_json(self._record_file(key))
            if sha256_file(path) != record["sha256"]:
                return None
            metadata = pq.read_metadata(path)
            marked = (metadata.metadata or {}).get(_KEY, b"").decode()
            if marked != key or metadata.num_rows != record["rows"]:
                return None
            return ShardRecord(path.name, int(record["rows"]), str(record["sha256"]))
        except (InputError, OSError, pa.ArrowInvalid, KeyError, TypeError, AttributeError):
            return None

    def commit(self, key: str, table: pa.Table) -> ShardRecord:
        """Write a finished shard so that :meth:`find` believes it only when all of it is on disk."""
        path = self.file(key)
        # The key is in the footer, so that two shards whose names were swapped are found out.
        marked = table.replace_schema_metadata({**(table.schema.metadata or {}), _KEY: key.encode()})
        with atomic_path(path) as temporary:
            write_parquet(marked, temporary)
            digest = sha256_file(temporary)
        write_json(self._record_file(key), {"rows": table.num_rows, "sha256": digest})
        return ShardRecord(path.name, table.num_rows, digest)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the step's work directory for this process.

        Raises:
            WorkLockedError: another process holds it; the message names its host and pid.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        holder = self.path / "holder.json"
        lock = FileLock(self.path / LOCK_NAME)
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            raise WorkLockedError(f"{self.path} is in use by {_describe(holder)}") from error
        try:
            for left in self.path.glob(".*.tmp"):
                left.unlink(missing_ok=True)  # of a writer that was killed
            write_json(holder, {"host": socket.gethostname(), "pid": os.getpid(), "step": self.step})
            yield
        finally:
            holder.unlink(missing_ok=True)
            lock.release()

    def note_used(self, names: Iterable[str]) -> None:
        """Note what a finished run used: ``paraforge work prune`` removes what is of earlier runs.

        Args:
            names: keys of shards, and names of directories below the step's own.
        """
        write_json(self.path / CURRENT_NAME, sorted(set(names)))

    def publish(
        self, keys: Sequence[str], records: Sequence[ShardRecord], output: Path, description: dict[str, Any]
    ) -> None:
        """Give the finished shards to ``output`` as ``shard-00000.parquet`` ... with ``shards.json``.

        Files are hard-linked where the file system allows it, otherwise copied.
        ``output`` is replaced as a whole.
        """
        with replaced_directory(output) as temporary:
            published = []
            for index, (key, record) in enumerate(zip(keys, records, strict=True)):
                target = temporary / shard_name(index)
                link_or_copy(self.file(key), target)
                published.append(ShardRecord(target.name, record.rows, record.sha256))
            write_index(temporary, published, description)


def _describe(holder: Path) -> str:
    try:
        who = json.loads(holder.read_text(encoding="utf-8"))
        return f"process {who['pid']} on {who['host']}: wait for it, or stop it"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process: wait for it, or stop it"


def link_or_copy(source: Path, target: Path) -> None:
    """Hard-link ``source`` as ``target``, or copy it where links are not possible."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


@contextmanager
def replaced_directory(output: Path) -> Iterator[Path]:
    """Give an empty directory beside ``output`` that takes its place when the block ends well."""
    output.parent.mkdir(parents=True, exist_ok=True)
    for left in output.parent.glob(f".{output.name}.*.tmp"):
        shutil.rmtree(left, ignore_errors=True)  # of a writer that was killed
    temporary = output.with_name(f".{output.name}.{uuid.uuid4().hex[:8]}.tmp")
    temporary.mkdir()
    try:
        yield temporary
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    if output.is_symlink() or output.is_file():
        output.unlink()
    elif output.exists():
        shutil.rmtree(output)
    temporary.replace(output)
    sync_directory(output.parent)


def shard_key(description: dict[str, Any], inputs: Sequence[str]) -> str:
    """Key of a shard: hash of what the step is and of its input shards' SHA-256."""
    return hash_json([description, list(inputs)])[:40]
