"""Resources: a container's cores and memory, threads, devices."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from pydantic import ValidationError

from paraforge.base.devices import torch_threads
from paraforge.base.shards.resources import Resources, job_memory
from tests.base.shards.transfer.hosts import mounts_missing

_LIMITED = """
set -e
mount -t tmpfs none /sys/fs/cgroup
if [ "$1" = new ]; then
    group=/sys/fs/cgroup$(tail -n 1 /proc/self/cgroup | sed 's/.*://')
    mkdir -p "$group"
    echo "$2 100000" > "$group/cpu.max"
    echo "$3" > /sys/fs/cgroup/memory.max
else
    mkdir /sys/fs/cgroup/cpu /sys/fs/cgroup/memory
    echo "$2" > /sys/fs/cgroup/cpu/cpu.cfs_quota_us
    echo 100000 > /sys/fs/cgroup/cpu/cpu.cfs_period_us
    echo "$3" > /sys/fs/cgroup/memory/memory.limit_in_bytes
fi
shift 3
exec "$@"
"""

_SHOWN = """
from paraforge.base.shards import resources
chosen = resources.Resources()
print(resources.available_cores(), chosen.worker_count(), chosen.thread_count())
print(resources.available_memory(), resources.job_memory(chosen))
"""


@pytest.mark.skipif(bool(mounts_missing()), reason=mounts_missing())
@pytest.mark.parametrize(
    "form, quota, cores",
    [
        ("new", "150000", 2),
        pytest.param("new", "50000", 1, marks=pytest.mark.full),
        pytest.param("new", "max", None, marks=pytest.mark.full),
        ("old", "100000", 1),
        pytest.param("old", "-1", None, marks=pytest.mark.full),
    ],
)
def test_a_containers_share(form: str, quota: str, cores: int | None) -> None:
    """In Docker and Kubernetes, the host shows more cores and memory than the container may use."""
    limits = [form, quota, str(1 << 30)]
    command = ["unshare", "--mount", "sh", "-c", _LIMITED, "sh", *limits, sys.executable, "-c", _SHOWN]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    expected = min(cores or sys.maxsize, len(os.sched_getaffinity(0)))
    assert shown[:3] == 3 * [str(expected)]
    assert shown[3:] == [str(1 << 30), str((1 << 30) // expected // 2)]


@pytest.mark.parametrize(
    "content",
    [
        *({"devices": [one]} for one in ("gpu0", "CPU", "cuda:", "cuda:x", "cuda:-1", "")),
        *({"memory_limit": one} for one in ("", "4 gigs", "50%", "-1", "none", "GB")),
    ],
)
def test_unusable_resources_are_refused_first(content: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match="should match pattern"):
        Resources.model_validate(content)


@pytest.mark.parametrize("size", ["auto", "4GB", "4 GiB", "0.5GB", "512MB", "4000000000", "4G", "800kB"])
def test_memory_sizes_are_parsed(size: str) -> None:
    assert job_memory(Resources(memory_limit=size)) > 0


def test_home_directory_is_expanded_in_directories(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    content = {"work": "~/work", "translation_memory": "~/memory", "worker_cache": "~/cache"}
    resources = Resources.model_validate(content)
    assert (resources.work, resources.memory_directory()) == (Path("/home/me/work"), Path("/home/me/memory"))
    assert resources.worker_cache == Path("~/cache")  # a worker has a home directory of its own
    assert Resources(work=Path("~nobody.here/work")).work == Path("~nobody.here/work")


def test_thread_count_is_limited_within_a_block() -> None:
    before = torch.get_num_threads()
    with torch_threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before
