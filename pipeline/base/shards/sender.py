"""Files sent to workers that do not see this disk, in pieces, over Dask's connections."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from paraforge.base.files import sha256_file
from paraforge.base.shards import copies
from paraforge.base.shards.copies import TOPIC, receive
from paraforge.base.shards.disk import Disk, JobFiles

if TYPE_CHECKING:
    from distributed import Client

logger = logging.getLogger(__name__)

_PIECE = 4 << 20


class Sender:
    """Sends workers the files that they ask for."""

    def __init__(self, client: Client, disk: Disk, files: Sequence[JobFiles]) -> None:
        self._client = client
        self._disk = disk
        self._files = files
        self._digests: dict[Path, str] = {}
        self._sending: dict[str, asyncio.Future[None]] = {}
        self._named = False

    def asked(self, event: tuple[float, tuple[str, int, str, str, str, bool, int]]) -> None:
        """Handler of :data:`TOPIC`; runs in the client's event loop."""
        run, job, request, worker, path, is_list, offset = event[1]
        if run != self._disk.run or request in self._sending:
            return
        if not self._named:
            self._named = True
            logger.info("the worker at %s does not see %s: files travel to it", worker, self._disk.project)
        sending = self._send(job, request, worker, Path(path), is_list, offset)
        self._sending[request] = asyncio.ensure_future(sending)

    def stop(self) -> None:
        """Send nothing more."""
        for sending in list(self._sending.values()):
            self._client.loop.add_callback(sending.cancel)

    async def _send(
        self, job: int, request: str, worker: str, path: Path, is_list: bool, offset: int
    ) -> None:
        """Send what is left of a file, piece by piece, as long as the worker takes them."""
        try:
            while True:
                piece, digest, problem = await asyncio.to_thread(self._piece, job, path, is_list, offset)
                given = (request, offset, piece, digest, problem)
                sent = self._client.run(receive, *given, workers=[worker])
                taken = await asyncio.wait_for(sent, copies.PATIENCE_SECONDS)
                offset += len(piece)
                if digest or problem or not taken.get(worker):
                    return
        except Exception as error:  # whatever it is, the worker asks again if it is still there
            logger.debug("%s was not sent to %s: %r", path, worker, error)
        finally:
            del self._sending[request]

    def _piece(self, job: int, path: Path, is_list: bool, offset: int) -> tuple[bytes, str, str]:
        """A piece of a file; with the last one its SHA-256, and what is wrong instead if something is."""
        files = self._files[job]
        kept = any(root == path or root in path.parents for root in files.kept)
        if ".." in path.parts or not (kept or path in files.read):
            return b"", "", "is not a file of this job"
        try:
            if is_list:
                content = json.dumps(self._listed(path)).encode()
                return content[offset:], hashlib.sha256(content).hexdigest(), ""
            with path.open("rb") as file:
                file.seek(offset)
                piece = file.read(_PIECE)
                if offset + len(piece) < path.stat().st_size:
                    return piece, "", ""
            return piece, self._digest(path) if kept else sha256_file(path), ""
        except OSError as error:
            return b"", "", f"cannot be read: {error.strerror}"

    def _listed(self, root: Path) -> list[tuple[str, str]]:
        """Name and SHA-256 of each file of a directory; of a file, an empty name."""
        paths = sorted(path for path in root.rglob("*") if path.is_file()) if root.is_dir() else [root]
        return [
            (path.relative_to(root).as_posix() if path != root else "", self._digest(path)) for path in paths
        ]

    def _digest(self, path: Path) -> str:
        if path not in self._digests:
            self._digests[path] = sha256_file(path)
        return self._digests[path]


@contextmanager
def sending(client: Client, disk: Disk | None, files: Sequence[JobFiles] | None) -> Iterator[None]:
    """While the block runs, workers get the files of jobs that they ask for."""
    if disk is None or files is None:
        yield
        return
    sender = Sender(client, disk, files)
    client.subscribe_topic(TOPIC, sender.asked)
    try:
        yield
    finally:
        sender.stop()
        with suppress(Exception):  # where the connection is lost there is nobody to inform
            client.unsubscribe_topic(TOPIC)
