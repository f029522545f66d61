"""Ingest killed at random moments: what it finished is reused, and the result has the same bytes."""

import multiprocessing
import os
import random
import time
from pathlib import Path

import pytest

from paraforge.base.shards.resources import Resources
from paraforge.intake.bitext.ingest import ingest
from paraforge.intake.bitext.parameters import IngestParameters
from tests.intake.bitext.helpers import content, write

pytestmark = pytest.mark.skipif(
    "forkserver" not in multiprocessing.get_all_start_methods(), reason="needs a server that forks"
)


def parameters(data: Path) -> IngestParameters:
    for name, step in (("a", 3), ("b", 5), ("c", 7), ("d", 11)):
        lines = [f"sentence {n * step % 900} of {n % 2}\tvěta {n * step % 450}\n" for n in range(3000)]
        write(data / f"{name}.tsv.gz", "".join(lines))
    source = {"format": "tsv", "columns": {"source_text": 1, "reference": 0}}
    return IngestParameters.model_validate(
        {
            "sources": [
                source | {"name": "a", "path": str(data / "a.tsv.gz")},
                source | {"name": "bcd", "path": str(data / "[bcd].tsv.gz")},
            ],
            "rows_per_shard": 1000,
        }
    )


def ingest_quietly(section: IngestParameters, base: Path) -> None:
    """What the child does."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    ingest(section, base / "ingested", Resources(work=base / "work", workers=1))


def run_in_child(section: IngestParameters, base: Path, kill_after: float | None) -> bool:
    """Run ingest in a process that dies after so many seconds; whether it ended well."""
    # Forked from a server that has one thread: a fork of this process could inherit a lock that is held.
    context = multiprocessing.get_context("forkserver")
    child = context.Process(target=ingest_quietly, args=(section, base))
    child.start()
    if kill_after is not None:
        time.sleep(kill_after)
        child.kill()
    child.join()
    return child.exitcode == 0


@pytest.mark.slow
def test_killed_twenty_times(tmp_path: Path) -> None:
    section = parameters(tmp_path)
    started = time.monotonic()
    assert run_in_child(section, tmp_path / "whole", None)
    seconds = time.monotonic() - started
    expected = content(tmp_path / "whole" / "ingested")
    moments = random.Random(7)
    for trial in range(5):
        base = tmp_path / str(trial)
        for _ in range(4):
            run_in_child(section, base, moments.uniform(0, seconds * 0.6))
        assert run_in_child(section, base, None)
        assert content(base / "ingested") == expected
        left = [path.name for path in base.rglob("*") if path.name.endswith(".tmp")]
        assert not left


def test_killed_while_publishing_over_an_older_result(tmp_path: Path) -> None:
    section = parameters(tmp_path)
    older = section.model_copy(update={"sources": section.sources[:1]})
    assert run_in_child(older, tmp_path, None)
    old = content(tmp_path / "ingested")
    assert run_in_child(section, tmp_path / "whole", None)
    new = content(tmp_path / "whole" / "ingested")
    for kill_after in (0.05, 0.2):
        if run_in_child(section, tmp_path, kill_after):
            break
        if (tmp_path / "ingested").exists():  # there is a moment between the old and the new
            assert content(tmp_path / "ingested") in (old, new)
    assert run_in_child(section, tmp_path, None)
    assert content(tmp_path / "ingested") == new
