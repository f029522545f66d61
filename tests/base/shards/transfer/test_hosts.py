"""A run over hosts without a shared disk, some of which are cut off, killed or late."""

import signal
from pathlib import Path

import pytest

from tests.base.shards.transfer.head import OUTPUTS, corpus_of
from tests.base.shards.transfer.hosts import ADDRESS, Hosts, needs_namespaces, waited
from tests.project import digests


@needs_namespaces
@pytest.mark.full
def test_lost_hosts_without_shared_disk_give_same_bytes(tmp_path: Path) -> None:
    place = tmp_path / "place"
    corpus_of(tmp_path / "wanted")
    with Hosts(place, tmp_path / "logs") as hosts:
        for name in ("good", "cut", "killed"):
            hosts.add(name)
        head = ("-m", "tests.base.shards.transfer.head", str(place), ADDRESS, "60")

        def finished(tasks: int) -> None:
            work = place / "work" / "translate-sentences"
            waited(lambda: len(list(work.glob("*.parquet"))) >= tasks, f"{tasks} tasks")

        hosts.head(*head)
        finished(3)
        hosts.link("cut", "down")
        hosts.processes["killed"].kill()
        finished(6)
        hosts.processes["head"].send_signal(signal.SIGKILL)
        hosts.processes["head"].wait()
        hosts.add("late")
        again = hosts.head(*head)
        finished(10)
        hosts.link("cut", "up")
        assert again.wait(60) == 0, hosts.said("head")
        said = hosts.said("head")
        for name in ("good", "late"):
            seen = {path.name for path in hosts.files(name)}
            assert "translated" not in seen and "scorer.json" in seen
    for name in OUTPUTS:
        assert digests(place / name) == digests(tmp_path / "wanted" / name)
    assert "sending files to it" in said
