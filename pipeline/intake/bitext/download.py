"""Downloads a file over HTTP: whole or not at all, resuming where a broken connection stopped."""

from __future__ import annotations

import http.client
import logging
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

from paraforge.base.errors import InputError
from paraforge.base.files import atomic_path
from paraforge.base.interrupts import check_interrupt
from paraforge.base.progress import Progress, progress

logger = logging.getLogger(__name__)

_ATTEMPTS = 5
_TIMEOUT_SECONDS = 60
_READ_BYTES = 1 << 18


def download(url: str, target: Path, wait_seconds: float = 2.0) -> None:
    """Fetch ``url`` into ``target``, unless it is there.

    The server's certificate is checked. A connection that breaks is tried again, from where it broke if the
    server can do that. What was fetched is measured against the length that the server names.

    url: ``http`` or ``https``. target: written atomically.
    wait_seconds: wait before the second attempt; twice as long before each further one.

    Raises:
        InputError: not HTTP, or it cannot be had.
        Interrupted: SIGTERM or Ctrl-C.
    """
    if target.exists():
        return
    if urlsplit(url).scheme not in ("http", "https"):
        raise InputError("only http and https addresses are fetched", url)
    logger.info("fetching %s", url)
    problem: Exception | None = None
    with (
        atomic_path(target) as temporary,
        progress(total=None, unit="bytes", description=target.name) as bar,
    ):
        for attempt in range(_ATTEMPTS):
            if attempt:
                logger.warning("%s: %s; trying again", url, problem)
                time.sleep(wait_seconds * 2 ** (attempt - 1))
            try:
                if _attempt(url, temporary, bar):
                    return
                problem = OSError("the connection ended early")
            except urllib.error.HTTPError as error:
                if error.code < 500 and error.code not in (408, 429):
                    raise InputError(f"the server answers {error.code} {error.reason}", url) from error
                problem = error
            except (OSError, http.client.HTTPException) as error:
                problem = error
        raise InputError(
            f"cannot be fetched: {problem}",
            url,
            remedy="Is there a network? Then run the same command again.",
        ) from problem


def _attempt(url: str, path: Path, bar: Progress) -> bool:
    """Fetch what is missing; whether the file is whole now."""
    have = path.stat().st_size if path.exists() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "paraforge"})  # noqa: S310 - scheme is checked
    if have:
        request.add_header("Range", f"bytes={have}-")
    with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:  # noqa: S310 - checked
        goes_on = answer.status == http.HTTPStatus.PARTIAL_CONTENT
        if not goes_on:
            have = 0
        length = answer.headers.get("Content-Length")
        expected = None if length is None else have + int(length)
        with path.open("ab" if goes_on else "wb") as file:
            while data := answer.read(_READ_BYTES):
                check_interrupt()
                file.write(data)
                have += len(data)
                bar.update(len(data))
    return expected is None or have == expected
