"""Resource parameters: where a run computes and how much it may use. They never change a result."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from paraforge.base.files import at_home
from paraforge.base.section import Section

# The translation memory's directory in the work directory. It belongs to no step and is never pruned
# automatically.
MEMORY_NAME = "memory"
MOST_JOB_MEMORY = 1 << 30
LEAST_JOB_MEMORY = 64 << 20
_Device = Annotated[str, Field(pattern=r"^(auto|(cpu|cuda)(:[0-9]+)?)$")]

_Directory = Annotated[Path, AfterValidator(at_home)]


class Resources(Section):
    """Section ``resources`` of params.yaml. Its values change no result, so no stage runs again."""

    workers: int = Field(0, ge=0, description="cores that CPU steps use; 0: all")
    scheduler: str | None = Field(
        None,
        pattern=r"^(tcp|tls|ucx|ws|wss)://.+",
        description="address of a running Dask scheduler; null for a local cluster",
    )
    devices: list[_Device] = Field(
        default_factory=lambda: ["auto"],
        min_length=1,
        description="where translation runs: auto, cpu, or cuda:0, cuda:1, ...",
    )
    threads: int = Field(0, ge=0, description="threads of a translation or training process; 0: one per core")
    batch_tokens: int = Field(
        0, ge=0, description="source tokens in a translation batch; 0: the engine chooses"
    )
    memory_limit: str = Field(
        "auto",
        pattern=r"^(auto|[0-9]+(\.[0-9]+)? ?([kKMGTP]i?)?B?)$",
        description="memory of a local Dask worker, e.g. 4GB; auto shares the machine's",
    )
    in_process_rows: int = Field(30_000, ge=0, description="start no cluster for this many rows or fewer")
    translation_memory: _Directory | None = Field(
        None,
        description="directory of the translation memory, which projects and hosts can share; null: memory/ "
        "in the work directory",
    )
    work: _Directory = Field(Path("work"), description="work directory")
    shared_disk: bool | None = Field(
        None,
        description="whether the workers of a scheduler see the project's files; null: each worker finds out."
        " Workers that do not see them get files over Dask's connections",
    )
    worker_cache: Path | None = Field(
        None,
        description="directory for models on such workers; null: ~/.cache/paraforge/worker",
    )

    def memory_directory(self) -> Path:
        """Return the directory of the translation memory."""
        return self.translation_memory or self.work / MEMORY_NAME

    def worker_count(self) -> int:
        """Return the number of processes to use on this machine."""
        return self.workers or available_cores()

    def thread_count(self) -> int:
        """Return the number of threads to use in a process that does its own threading."""
        return self.threads or available_cores()


def available_cores() -> int:
    """Return the cores that this process may use, limited by its CPU affinity and its container."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        cores = os.cpu_count() or 1
    return min([cores, *(math.ceil(share) for share in _shares() if share > 0)])


def _shares() -> Iterator[float]:
    """Yield the cores that this process's control groups allow; 0 or -1 means no limit. Dask also reads them,
    but takes a tenth of a second to import."""
    with suppress(OSError, ValueError):
        groups = Path("/sys/fs/cgroup")
        own = groups / Path("/proc/self/cgroup").read_text().rpartition(":")[2].strip().strip("/")
        for place in (own, *own.parents):
            limit = place / "cpu.max"
            if place.is_relative_to(groups) and limit.is_file():
                quota, period = limit.read_text().split()
                yield 0 if quota == "max" else int(quota) / int(period)
    with suppress(OSError, ValueError):  # control groups of Linux until about 2020
        quota, period = (
            Path(f"/sys/fs/cgroup/cpu/cpu.cfs_{field}_us").read_text() for field in ("quota", "period")
        )
        yield int(quota) / int(period)


def available_memory() -> int:
    """Return the bytes of memory that this process may use: the machine's or its container's."""
    from distributed.system import memory_limit

    return int(memory_limit())


def job_memory(resources: Resources) -> int:
    """Return the bytes that a job may use for its own tables: half of a worker's memory, at most 1 GiB."""
    if resources.memory_limit == "auto":
        worker = available_memory() // resources.worker_count()
    else:
        from dask.utils import parse_bytes

        worker = parse_bytes(resources.memory_limit)
    return max(LEAST_JOB_MEMORY, min(MOST_JOB_MEMORY, worker // 2))
