"""Describes the machine, measures memory, finds data, and runs parts of benchmarks in their own processes."""

import json
import os
import platform
import resource
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import typer

from paraforge.base.shards.resources import available_cores


def hardware() -> str:
    """Return processor, cores, memory and Python on one line."""
    name = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.is_file():
        names = [line for line in information.read_text().splitlines() if line.startswith("model name")]
        name = names[0].partition(":")[2].strip() if names else name
    memory = Path("/proc/meminfo")
    total = ""
    if memory.is_file():
        total = f", {int(memory.read_text().split()[1]) / 2**20:.0f} GiB"
    return f"{name}, {available_cores()} cores{total}, Python {platform.python_version()}"


def peak_memory() -> float:
    """Return the peak memory of this process, in MiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if platform.system() == "Darwin" else peak / 2**10


def data_directory() -> Path:
    """Return PARAFORGE_DATA, or exit with a message."""
    directory = os.environ.get("PARAFORGE_DATA")
    if not directory or not Path(directory).is_dir():
        raise typer.BadParameter("set the environment variable PARAFORGE_DATA to the directory of real data")
    return Path(directory)


def answer_of(module: str, given: Any, limit: float | None = None) -> dict[str, Any]:
    """Pass JSON to a module's ``worker`` in a fresh interpreter. Returns the JSON that it prints last.

    The answer is ``failed`` and why if it fails or takes more than ``limit`` seconds. What it started ends
    with it.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", f"from {module} import worker; worker()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[1],
        env={**os.environ, "OMP_WAIT_POLICY": "passive"},
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(json.dumps(given), timeout=limit)
    except subprocess.TimeoutExpired:
        return {"failed": f"not finished after {limit:.0f} s"}
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    if process.returncode:
        reason = (errors.strip().splitlines() or [f"exit code {process.returncode}"])[-1]
        return {"failed": reason[-300:]}
    found: dict[str, Any] = json.loads(output.splitlines()[-1])
    return found
