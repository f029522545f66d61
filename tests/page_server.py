"""A command that serves pages, in a separate process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from types import TracebackType

PATIENCE = 60  # seconds; machines that run tests are busy


class PageServer:
    """A command that serves pages in a separate process, which tests can kill."""

    def __init__(self, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        code = "import sys; sys.argv[0] = 'paraforge'; from paraforge.interface.cli import main; main()"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})},
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
            self._reader.join(PATIENCE)
            raise AssertionError(f"the server did not start: {line}{''.join(self.errors)}")
        self.address, self.port = found[0], int(found[1])

    def kill(self) -> None:
        """Send SIGKILL: no handler runs, nothing is closed."""
        self.process.kill()
        self.process.wait(PATIENCE)

    def terminate(self) -> int:
        """Send SIGTERM, as a service manager does, and return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)

    def __enter__(self) -> PageServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.kill()
        self._reader.join(PATIENCE)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
