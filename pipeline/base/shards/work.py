"""The work directory, which keeps the finished shards of a step for later runs: each is named by the hash of
all that decides it. One process writes at a time. Also publishes directories, in one piece."""

import json
import os
import shutil
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock, Timeout

from paraforge.base.errors import InputError, Interrupted, WorkLockedError, naming
from paraforge.base.files import (
    hash_json,
    make_directory,
    remove,
    remove_directory,
    scratch_directory,
    sha256_file,
    sweep,
    sync_directory,
    sync_tree,
    write_json,
)
from paraforge.base.shards.store import ShardRecord, shard_name, write_index, write_shard

WORK = Path("work")
LOCK_NAME = "lock"
HOLDER_NAME = "holder.json"
# Steps whose results take only minutes to make. Translations, models and scores of models may have taken
# days.
_QUICK = ("ingest", "translate", "translation", "select", "publish", "statistics", "lexicon", "triplets")
# A subdirectory of a step's directory that also holds results by key.
_FILES = "files"
_KEY = b"paraforge.key"
_LIBRARIES = b"paraforge.libraries"
# Suffixes of large files that nobody edits; outputs have hard links to them.
_LINKED = (".parquet", ".npy", ".bin", ".pt", ".safetensors", ".model")


class WorkDirectory:
    """Finished shards of one step, ``work/STEP/KEY.parquet``.

    A key is the hash of everything that the shard depends on (see :func:`shard_key`). A changed parameter
    gives other keys, so nothing here becomes stale.
    """

    def __init__(self, step: str, root: Path = WORK) -> None:
        self.step = step
        self.path = root / step

    def file(self, key: str) -> Path:
        """Return the path of the shard with this key, whether or not it is finished."""
        return self.path / f"{key}.parquet"

    def find(self, key: str) -> ShardRecord | None:
        """Find the finished shard with this key; None if its footer cannot be read or has another key."""
        path = self.file(key)
        try:
            footer = _footer(path)
            return None if footer is None else ShardRecord(path.name, footer.num_rows, sha256_file(path))
        except OSError:
            return None

    def finished(self) -> Iterator[tuple[Path, pq.FileMetaData]]:
        """Yield the path and the footer of every finished shard, in the order of their keys."""
        for path in sorted(self.path.glob("*.parquet")):
            if (footer := _footer(path)) is not None:
                yield path, footer

    def commit(self, key: str, table: pa.Table, libraries: Mapping[str, str] | None = None) -> ShardRecord:
        """Write a finished shard.

        libraries: versions of the libraries that decide its bytes, by name.
        """
        # The key is in the footer, so that swapped files are detected.
        footer = {
            _KEY: key.encode(),
            _LIBRARIES: json.dumps(dict(sorted((libraries or {}).items()))).encode(),
        }
        marked = table.replace_schema_metadata({**(table.schema.metadata or {}), **footer})
        return write_shard(marked, self.file(key))

    def find_or_make(
        self, key: str, make: Callable[[], pa.Table], libraries: Mapping[str, str]
    ) -> tuple[Path, str]:
        """Take the lock, and find the finished shard with this key, or make and commit it.

        libraries: see :meth:`commit`.

        Returns the file and its SHA-256. Raises WorkLockedError if another process holds the lock.
        """
        with self.lock():
            record = self.find(key) or self.commit(key, make(), libraries)
        return self.file(key).resolve(), record.sha256

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the step's work directory for this process while the block runs, and remove what a killed one
        left unfinished. Raises WorkLockedError, which names host and process, if another one holds it."""
        make_directory(self.path)
        holder = self.path / HOLDER_NAME
        lock = FileLock(self.path / LOCK_NAME)
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            raise WorkLockedError(f"{self.path} is in use by {_describe(holder)}") from error
        try:
            sweep(self.path, alone=True)
            write_json(holder, {"host": socket.gethostname(), "pid": os.getpid(), "step": self.step})
            yield
        except Interrupted as error:
            if error.args:
                raise
            raise Interrupted(
                f"interrupted: finished work is kept in {self.path}; run the same command again"
            ) from None
        finally:
            holder.unlink(missing_ok=True)
            lock.release()

    def keep_only(self, names: Iterable[str]) -> None:
        """Remove the results of earlier parameters or input, if the step is one of those that take only
        minutes; the results of other steps stay.

        names: what the finished run used: keys of shards and names of subdirectories. ``files/KEY`` keeps
            that entry of the directory ``files``.
        """
        if self.step not in _QUICK:
            return
        kept = set(names)
        files = self.path / _FILES
        for path in [*self.path.iterdir(), *(files.iterdir() if files.is_dir() else ())]:
            if path == files or path.name in (LOCK_NAME, HOLDER_NAME) or path.name.startswith("."):
                continue
            name = path.name if path.is_dir() else path.stem
            if (f"{_FILES}/{name}" if path.parent == files else name) not in kept:
                remove_directory(path) if path.is_dir() else path.unlink(missing_ok=True)

    def publish(
        self, keys: Sequence[str], records: Sequence[ShardRecord], output: Path, description: dict[str, Any]
    ) -> None:
        """Publish the finished shards in ``output`` as ``shard-00000.parquet`` ... with ``_shards.json``.

        Files are hard-linked if the file system allows it, otherwise copied. ``output`` is replaced as a
        whole.
        """
        with replaced_directory(output) as temporary:
            published = []
            for index, (key, record) in enumerate(zip(keys, records, strict=True)):
                target = temporary / shard_name(index)
                link_or_copy(self.file(key), target)
                published.append(ShardRecord(target.name, record.rows, record.sha256))
            write_index(temporary, published, description)


def _footer(path: Path) -> pq.FileMetaData | None:
    """Read the footer of a finished shard; None if it cannot be read or has another key than the name."""
    try:
        footer = pq.read_metadata(path)
    except (OSError, pa.ArrowInvalid):
        return None
    return footer if (footer.metadata or {}).get(_KEY) == path.stem.encode() else None


def _describe(holder: Path) -> str:
    try:
        who = json.loads(holder.read_text(encoding="utf-8"))
        return f"process {who['pid']} on {who['host']}: wait for it, or stop it"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process: wait for it, or stop it"


def link_or_copy(source: Path, target: Path) -> None:
    """Hard-link ``source`` as ``target``, or copy it if links are not possible. Files that people edit (JSON
    and other text) are always copied, so that an edit does not change the original."""
    if source.suffix in _LINKED:
        try:
            os.link(source, target)
            return
        except OSError:
            pass
    shutil.copyfile(source, target)


def copy_files(source: Path, target: Path) -> None:
    """Link or copy the files of a directory into another one, but not directories in it, such as the
    ``.cache`` of a download."""
    for file in sorted(source.iterdir()):
        if file.is_file():
            link_or_copy(file, target / file.name)


@contextmanager
def replaced_directory(output: Path) -> Iterator[Path]:
    """Provide an empty directory next to ``output`` that replaces it when the block succeeds."""
    with replaced_directories(output) as (temporary,):
        yield temporary


@contextmanager
def replaced_directories(*outputs: Path) -> Iterator[list[Path]]:
    """Provide an empty directory next to each output; they replace the outputs when the block succeeds.

    All new directories are complete on disk before the first replaces its output. For a moment neither the
    old nor the new directory has the final name; if the process is killed then, the next writer restores the
    old one.

    Raises InputError if an output is a plain file, which this project never writes there.
    """
    for output in outputs:
        if output.is_file() and not output.is_symlink():
            raise InputError(f"{output}: is a file, but must be a directory. Move the file first")
    with ExitStack() as scratch:
        temporaries = [scratch.enter_context(scratch_directory(output)) for output in outputs]
        with naming(outputs[0], "written"):
            yield temporaries
            for temporary in temporaries:
                sync_tree(temporary)
        for output, temporary in zip(outputs, temporaries, strict=True):
            _put_in_place(temporary, output)


def _put_in_place(new: Path, output: Path) -> None:
    """Rename ``new`` to ``output``, and remove the previous directory; of a link, the target stays."""
    old = new.with_name(f"{new.name.removesuffix('.tmp')}-old.tmp")
    with suppress(FileNotFoundError):
        output.rename(old)
    try:
        new.rename(output)
    except BaseException:
        if old.exists() and not output.exists():
            old.rename(output)
        raise
    sync_directory(output.parent)
    remove(old)


def libraries_of(path: Path) -> dict[str, str]:
    """Read the versions of the libraries that made a file of :meth:`WorkDirectory.commit` from its footer;
    empty where it names none."""
    try:
        metadata = pq.read_metadata(path).metadata or {}
        recorded = json.loads(metadata.get(_LIBRARIES, b"{}"))
        return {str(name): str(version) for name, version in recorded.items()}
    except (OSError, pa.ArrowInvalid, ValueError, AttributeError):
        return {}


def shard_key(description: dict[str, Any], inputs: Sequence[str]) -> str:
    """Return the key of a shard: the hash of the step's identity and the SHA-256 of its input shards."""
    return hash_json([description, list(inputs)])[:40]
