"""Small evaluations for tests: samples without a corpus, and a server in a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from http.cookiejar import CookieJar
from pathlib import Path
from types import TracebackType
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener

from paraforge.annotation.draw import BandFigures, Draw, DrawnPair, Origin
from paraforge.statistics.counts import Moments

NASTY = "<script>document.title = 'owned'</script> & \"quoted\" <b>bold</b>"


def small_draw(bands: Sequence[int] = (0, 0, 1, 2, 3, 4, 4, 4), population: int = 1_000) -> Draw:
    """A sample of one pair a given band; of each band ``population`` pairs, half of them with overlap 1."""
    pairs = [
        DrawnPair(
            band=band,
            source="tatoeba",
            line=number + 1,
            rank=0,
            rejected="paraphrase_score" if band < 2 else None,
            reference=f"Reference {number}.",
            translation=f"Translation {number}: {NASTY}",
            paraphrase_score=0.1 + 0.2 * band,
            overlap_3=0.25,
        )
        for number, band in enumerate(bands)
    ]
    figures = [BandFigures(population, Moments(population, population / 2, population / 2)) for _ in range(5)]
    origin = Origin("data/corpus", "A <corpus>", "src:tatoeba|v:0.1", {"corpus": "00"})
    return Draw(origin, 1, 2, figures, pairs)


class ServerProcess:
    """``paraforge annotate serve`` in a process of its own, to be killed."""

    def __init__(self, database: Path, port: int = 0) -> None:
        code = "import sys; from paraforge.cli import main; sys.exit(main())"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, "annotate", "serve", "-d", str(database), "--port", str(port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        assert self.process.stdout is not None and self.process.stderr is not None
        # Nobody else reads it: a full pipe would stop the server.
        self.errors: list[str] = []
        self._reader = threading.Thread(target=self.errors.extend, args=(self.process.stderr,), daemon=True)
        self._reader.start()
        line = self.process.stdout.readline()
        found = re.search(r"http://[^/]+:(\d+)/", line)
        if found is None:
            self.process.kill()
            self._reader.join(5)
            raise AssertionError(f"the server did not start: {line}{''.join(self.errors)}")
        self.address, self.port = found[0], int(found[1])

    def kill(self) -> None:
        """SIGKILL: no handler runs, nothing is closed."""
        self.process.kill()
        self.process.wait(20)

    def terminate(self) -> int:
        """SIGTERM, as a service manager sends it; gives the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.kill()
        self._reader.join(5)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()


class PlainBrowser:
    """A browser without scripts: cookies, forms, redirects."""

    def __init__(self) -> None:
        self._opener = build_opener(HTTPCookieProcessor(CookieJar()))
        self.url = ""

    def get(self, url: str) -> str:
        """The page at an address."""
        return self._read(Request(url))

    def post(self, url: str, **fields: str | int) -> str:
        """Send a form whose token was on the page read last."""
        return self._read(Request(url, urlencode({"token": self.token, **fields}).encode()))

    def _read(self, request: Request) -> str:
        with self._opener.open(request, timeout=20) as reply:
            page = reply.read().decode()
            self.url = reply.url
        found = re.search(r'name="token" value="([^"]+)"', page)
        if found:
            self.token = found[1]
        return page
