"""Publication with groups and splits, killed wherever a file or directory is put in place."""

import multiprocessing
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from paraforge.base.shards.store import ShardDirectory
from paraforge.corpus.publication.manifest import read_manifest
from paraforge.corpus.publication.parameters import PublishParameters
from paraforge.corpus.publication.publication import publish
from paraforge.corpus.publication.verification import verify
from tests.corpus.selection.corpora import resources
from tests.corpus.selection.published import publish_pairs
from tests.project import digests

ROWS = 600
PLACES = ("corpus", "rejected", "held_out")
SPLITS = ({"validation": 30, "test": 50}, {"test": 70})

Digests = dict[str, dict[str, str]]

pytestmark = pytest.mark.skipif(
    "forkserver" not in multiprocessing.get_all_start_methods(), reason="needs a server that forks"
)


def publish_again(root: Path, splits: dict[str, int]) -> None:
    publish(
        PublishParameters(splits=splits, rows_per_file=250),
        [root / "translated", root / "scored"],
        root / "selected",
        root / "corpus",
        root / "rejected",
        resources(root),
        root / "held_out",
    )


def killed_at(root: Path, splits: dict[str, int], at: int) -> None:
    """What the child does: it dies at the n-th time that it would rename something."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    left = at

    def count() -> None:
        nonlocal left
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    def look(event: str, arguments: Any) -> None:
        if event == "os.rename":
            count()

    sys.addaudithook(look)
    publish_again(root, splits)


def run_killed(root: Path, splits: dict[str, int], at: int) -> bool:
    """Publish in a process that is killed at the n-th place; whether it was."""
    child = multiprocessing.get_context("forkserver").Process(target=killed_at, args=(root, splits, at))
    child.start()
    child.join()
    assert child.exitcode in (0, -signal.SIGKILL)
    return child.exitcode != 0


@pytest.mark.full
@pytest.mark.timeout(600)
def test_killed_wherever_something_is_put_in_place(tmp_path: Path) -> None:
    from tests.corpus.publication.test_groups import related_pairs  # the child imports this module, too

    publish_pairs(tmp_path, table=related_pairs(ROWS), shard_rows=200)
    wanted = []
    for splits in SPLITS:
        publish_again(tmp_path, splits)
        wanted.append({place: digests(tmp_path / place) for place in PLACES})
    kills = 0
    # Over another publication, each time; and where there is none, as the directories come into place.
    while run_killed(tmp_path, SPLITS[kills % 2], kills + 1):
        check(tmp_path, SPLITS[kills % 2], wanted[kills % 2], wanted[1 - kills % 2])
        kills += 1
    assert kills > 12
    for at in range(kills - len(PLACES), kills + 1):
        for place in PLACES:
            shutil.rmtree(tmp_path / place)
        assert run_killed(tmp_path, SPLITS[0], at)
        check(tmp_path, SPLITS[0], wanted[0], {place: {} for place in PLACES})


def check(root: Path, splits: dict[str, int], wanted: Digests, before: Digests) -> None:
    """Each directory is whole, as it was or will be, or has no name for a moment; the same call gives all."""
    for place in PLACES:
        assert digests(root / place) in (wanted[place], before[place], {})
    publish_again(root, splits)
    assert {place: digests(root / place) for place in PLACES} == wanted
    kept, rejected = (read_manifest(root / place) for place in PLACES[:2])
    assert kept.counts.rows_in == kept.rows + rejected.rows == ROWS
    assert ShardDirectory(root / "held_out").total_rows == sum(splits.values())
    assert verify(root / "corpus").problems == verify(root / "rejected").problems == []
    assert not [path.name for path in root.rglob("*") if path.name.endswith(".tmp")]
    assert not (root / "work" / "publish" / "groups").exists()
