"""Sends the files of jobs over Dask's connections to workers that do not see the submitting host's disk.

A worker requests them, and the host with the project sends them in pieces.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import json
import logging
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from paraforge.base.errors import InputError, RetryError
from paraforge.base.files import (
    at_home,
    cache_directory,
    files_below,
    hash_json,
    scratch_directory,
    sha256_file,
    write_whole,
)
from paraforge.base.shards.cluster import connect, wait_for_worker, watched_connection
from paraforge.base.shards.resources import Resources

if TYPE_CHECKING:
    from distributed import Client


logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Disk:
    """How a worker finds out whether it sees the submitting host's disk.

    project: directory there, for messages. token: a file there and its content; None if no worker sees it.
    cache: directory for copies on the worker; None for its user's cache. run: name of the run.
    """

    project: str
    token: tuple[Path, str] | None
    cache: Path | None
    run: str

    def is_seen(self) -> bool:
        """Return whether this process sees that disk."""
        if self.token is None:
            return False
        try:
            return self.token[0].read_text() == self.token[1]
        except (OSError, ValueError):
            return False


@contextmanager
def announced(resources: Resources) -> Iterator[Disk | None]:
    """Let workers find out whether they see this disk while the block runs; None if all of them do."""
    if resources.scheduler is None or resources.shared_disk:
        yield None
        return
    run = uuid.uuid4().hex
    project = f"{Path.cwd()} of {socket.gethostname()}"
    disk = Disk(project, None, resources.worker_cache, run)
    if resources.shared_disk is False:
        yield disk
        return
    with scratch_directory(resources.work.resolve() / "seen") as directory:
        (directory / "run").write_text(run)
        yield replace(disk, token=(directory / "run", run))


# The workers' answers by scheduler and work directory, so that a run asks only once.
_known: dict[tuple[str, Path], bool] = {}


def on_shared_disk(resources: Resources) -> bool:
    """Return whether all workers see this disk, asking only once per process; waits a while for a first
    worker."""
    if resources.scheduler is None or resources.shared_disk:
        return True
    if resources.shared_disk is None:
        asked = resources.scheduler, resources.work.resolve()
        if asked not in _known:
            _known[asked] = _is_seen(resources)
        if _known[asked]:
            return True
    logger.info("some workers do not see %s: steps that need all of it run here", Path.cwd())
    return False


def _is_seen(resources: Resources) -> bool:
    with announced(resources) as disk, connect(resources, 0) as client, watched_connection():
        assert disk is not None
        wait_for_worker(client)
        return all(seen is True for seen in client.run(disk.is_seen, on_error="return").values())


@dataclass(frozen=True)
class JobFiles:
    """The files that a job uses on the submitting host's disk, as absolute paths.

    kept: files and directories that many jobs read, such as models. A worker keeps copies in its cache.
    read: files that only this job reads.
    written: files that the job writes, in the order in which they must appear on the submitting host. One
        that does not exist when the job is done is removed there.
    """

    kept: tuple[Path, ...] = ()
    read: tuple[Path, ...] = ()
    written: tuple[Path, ...] = ()

    def commit(self, contents: Sequence[bytes | None]) -> None:
        """Write a worker's files to the submitting host's disk."""
        for path, content in zip(self.written, contents, strict=True):
            path.unlink(missing_ok=True) if content is None else write_whole(path, content)


logger = logging.getLogger(__name__)

# A scheduler never forgets a topic, so all runs share one.
_TOPIC = "paraforge-files"
# After this many seconds of silence, a worker gives its job back and a sender forgets the worker.
PATIENCE_SECONDS = 60.0
_ASK_AGAIN_SECONDS = 5.0
_KEEP_ALIVE_SECONDS = 5.0
_SECONDS_AWAY = 60.0
_PIECE = 4 << 20
_CONTENT = "content"
# Errors of this worker's disk, which others need not have.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


class _Incoming:
    """A file that is being received: where it is written, bytes received so far, and how it ended."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bytes = 0
        self.digest = self.problem = ""
        self.error: OSError | None = None
        self.changed = threading.Event()


_incoming: dict[str, _Incoming] = {}
# The copies of models that this process has verified, by run and original path.
_places: dict[tuple[str, Path], Path] = {}
_placing = threading.Lock()


def receive(request: str, offset: int, piece: bytes, digest: str, problem: str) -> bool:
    """Receive a piece of a file that this process requested. Returns False if it is not the next piece."""
    coming = _incoming.get(request)
    if coming is None or offset != coming.bytes:
        return False
    try:
        with coming.path.open("ab") as file:
            file.write(piece)
    except OSError as error:
        coming.error, problem = error, "cannot be written"
    coming.bytes += len(piece)
    coming.digest, coming.problem = digest, problem
    coming.changed.set()
    return True


@dataclass(frozen=True)
class Copies:
    """Copies of a job's files on its worker.

    disk: the submitting host's disk. files: the job's files. job: its number.
    ask: sends a message to the submitting host. directory: for files that only this job uses.
    cache: for the others, as ``KEY/content/NAME``. A process compares them once a run.
    """

    disk: Disk
    files: JobFiles
    job: int
    worker: str
    ask: Callable[[str, Any], None]
    directory: Path
    cache: Path

    def fetch(self) -> None:
        """Copy this job's own files, and the shared ones that are not here yet."""
        for path in self.files.kept:
            with _placing:
                known = _places.get((self.disk.run, path))
                if known is None or not known.exists():
                    _places[self.disk.run, path] = self._keep(path)
        for path in self.files.read:
            self._receive(path, self.place(path))
        for path in self.files.written:
            self.place(path).parent.mkdir(parents=True, exist_ok=True)

    def _keep(self, root: Path) -> Path:
        """Return the verified copy of a file or directory."""
        listing = self.directory / f"{uuid.uuid4().hex}.json"
        self._receive(root, listing, is_list=True)
        listed = json.loads(listing.read_text())
        copy = self.cache / hash_json([root.name, listed]) / _CONTENT / root.name
        copy.parent.mkdir(parents=True, exist_ok=True)
        # If a host has several workers, the first requests the files and the others find them.
        with FileLock(copy.parents[1] / "lock"):
            for name, digest in listed:
                target = copy / name if name else copy
                if not target.is_file() or sha256_file(target) != digest:
                    self._receive(root / name if name else root, target)
        return copy

    def _receive(self, path: Path, target: Path, is_list: bool = False) -> None:
        """Copy a file. Raises RetryError if it does not arrive, or is damaged; InputError if it cannot be
        read there; OSError if it cannot be written here."""
        request = uuid.uuid4().hex
        coming = _incoming[request] = _Incoming(self.directory / f"{request}.part")
        heard = time.monotonic()
        try:
            while not (coming.digest or coming.problem):
                asked = (self.disk.run, self.job, request, self.worker, str(path), is_list, coming.bytes)
                self.ask(_TOPIC, asked)
                # The submitting host also says that it is still alive, e.g. while it hashes a large file.
                while coming.changed.wait(_ASK_AGAIN_SECONDS) and not (coming.digest or coming.problem):
                    coming.changed.clear()
                    heard = time.monotonic()
                if time.monotonic() - heard > PATIENCE_SECONDS:
                    raise RetryError(f"{path} has not reached {self.worker}")
        finally:
            del _incoming[request]
        if coming.error is not None:
            raise coming.error
        if coming.problem:
            raise InputError(coming.problem, path)
        if sha256_file(coming.path) != coming.digest:
            raise RetryError(f"{path} reached {self.worker} with other bytes")
        target.parent.mkdir(parents=True, exist_ok=True)
        coming.path.replace(target)

    def place(self, path: Path) -> Path:
        """Return the local path of one of the submitting host's paths; unchanged if it neither is a file of
        the job nor leads to one."""
        for root in self.files.kept:
            if root == path or root in path.parents:
                return _places[self.disk.run, root] / path.relative_to(root)
        if any(path == own or path in own.parents for own in (*self.files.read, *self.files.written)):
            return self.directory / path.relative_to(path.anchor)
        return path

    def placed(self, value: Any) -> Any:
        """Return a value in which all paths are local ones, also inside containers and dataclasses."""
        if isinstance(value, Path):
            return self.place(value)
        if type(value) in (list, tuple):
            return type(value)(map(self.placed, value))
        if type(value) is dict:
            return {key: self.placed(item) for key, item in value.items()}
        if is_dataclass(value) and not isinstance(value, type):
            before = {item.name: getattr(value, item.name) for item in fields(value) if item.init}
            after = {name: self.placed(item) for name, item in before.items()}
            changed = {name: item for name, item in after.items() if item is not before[name]}
            return replace(value, **changed) if changed else value
        return value

    def left(self) -> list[bytes | None]:
        """Return the content of each file that the job may write."""
        paths = map(self.place, self.files.written)
        return [path.read_bytes() if path.is_file() else None for path in paths]


@contextmanager
def copied(
    disk: Disk, files: JobFiles, job: int, worker: str, ask: Callable[[str, Any], None]
) -> Iterator[Copies]:
    """Provide copies of a job's files for the block; see :class:`Copies`.

    Raises:
        RetryError: a file does not arrive, or cannot be written here now.
        InputError: a file cannot be read on the submitting host. Errors of the block name that host's paths.
    """
    cache = at_home(disk.cache or cache_directory("worker"))
    directory = None
    try:
        with scratch_directory(cache / "job") as directory:
            copies = Copies(disk, files, job, worker, ask, directory, cache)
            copies.fetch()
            yield copies
    except InputError as error:
        raise error if directory is None else error.renamed(directory, "") from error
    except OSError as error:
        if directory is not None and error.errno not in _FULL:
            raise
        raise given_back(f"{worker} cannot write to {cache}: {error.strerror}") from error


def given_back(problem: str) -> RetryError:
    """Return the error of a job that this worker cannot do, after a delay. Without the delay, it would take
    and give back jobs faster than the other workers do theirs."""
    time.sleep(_SECONDS_AWAY)
    return RetryError(problem)


class Sender:
    """Sends workers the files that they request."""

    def __init__(self, client: Client, disk: Disk, files: Sequence[JobFiles]) -> None:
        self._client = client
        self._disk = disk
        self._files = files
        self._digests: dict[Path, str] = {}
        self._hashing = threading.Lock()
        self._sending: dict[str, asyncio.Future[None]] = {}
        self._named = False

    def asked(self, event: tuple[float, tuple[str, int, str, str, str, bool, int]]) -> None:
        """Start to handle :data:`_TOPIC` in the client's event loop."""
        run, job, request, worker, path, is_list, offset = event[1]
        if run != self._disk.run or request in self._sending:
            return
        if not self._named:
            self._named = True
            logger.info("the worker at %s does not see %s: sending files to it", worker, self._disk.project)
        sending = self._send(job, request, worker, Path(path), is_list, offset)
        self._sending[request] = asyncio.ensure_future(sending)

    def stop(self) -> None:
        """Stop sending."""
        for sending in list(self._sending.values()):
            self._client.loop.add_callback(sending.cancel)

    async def _send(
        self, job: int, request: str, worker: str, path: Path, is_list: bool, offset: int
    ) -> None:
        """Send the rest of a file piece by piece, as long as the worker accepts them."""
        try:
            while True:
                reading = asyncio.ensure_future(asyncio.to_thread(self._piece, job, path, is_list, offset))
                # Hashing a large file takes longer than a worker waits in silence.
                while not (await asyncio.wait([reading], timeout=_KEEP_ALIVE_SECONDS))[0]:
                    await self._client.run(receive, request, offset, b"", "", "", workers=[worker])
                piece, digest, problem = reading.result()
                given = (request, offset, piece, digest, problem)
                sent = self._client.run(receive, *given, workers=[worker])
                taken = await asyncio.wait_for(sent, PATIENCE_SECONDS)
                offset += len(piece)
                if digest or problem or not taken.get(worker):
                    return
        except Exception as error:  # whatever happened, the worker asks again if it is still alive
            logger.debug("%s was not sent to %s: %r", path, worker, error)
        finally:
            del self._sending[request]

    def _piece(self, job: int, path: Path, is_list: bool, offset: int) -> tuple[bytes, str, str]:
        """Return a piece of a file, with its SHA-256 after the last piece, or an error message instead."""
        files = self._files[job]
        kept = any(root == path or root in path.parents for root in files.kept)
        if ".." in path.parts or not (kept or path in files.read):
            return b"", "", "is not a file of this job"
        try:
            if is_list:
                content = json.dumps(self._list_files(path)).encode()
                return content[offset:], hashlib.sha256(content).hexdigest(), ""
            with path.open("rb") as file:
                file.seek(offset)
                piece = file.read(_PIECE)
                if offset + len(piece) < path.stat().st_size:
                    return piece, "", ""
            return piece, self._digest(path) if kept else sha256_file(path), ""
        except OSError as error:
            return b"", "", f"cannot be read: {error.strerror}"

    def _list_files(self, root: Path) -> list[tuple[str, str]]:
        """Return the name and SHA-256 of each file in a directory; the name is empty for a single file."""
        paths = sorted(files_below(root)) if root.is_dir() else [root]
        return [
            (path.relative_to(root).as_posix() if path != root else "", self._digest(path)) for path in paths
        ]

    def _digest(self, path: Path) -> str:
        with self._hashing:  # only once, however many workers ask
            if path not in self._digests:
                self._digests[path] = sha256_file(path)
            return self._digests[path]


@contextmanager
def sending(client: Client, disk: Disk | None, files: Sequence[JobFiles] | None) -> Iterator[None]:
    """Send workers the files of jobs that they request while the block runs."""
    if disk is None or files is None:
        yield
        return
    sender = Sender(client, disk, files)
    client.subscribe_topic(_TOPIC, sender.asked)
    try:
        yield
    finally:
        sender.stop()
        with suppress(Exception):  # if the connection is lost, there is nobody to inform
            client.unsubscribe_topic(_TOPIC)
