"""What a benchmark prints about the machine, and the memory that it needed."""

import platform
import resource
from pathlib import Path

from paraforge.base.shards.resources import available_cores


def hardware() -> str:
    """Processor, cores, memory and Python in one line."""
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


def peak_memory(children: bool = False) -> float:
    """Most memory that this process has held, or that any one of its finished children has, in MiB."""
    who = resource.RUSAGE_CHILDREN if children else resource.RUSAGE_SELF
    peak = resource.getrusage(who).ru_maxrss
    return peak / 2**20 if platform.system() == "Darwin" else peak / 2**10
