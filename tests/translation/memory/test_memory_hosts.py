"""Two hosts that use one translation memory at the same time, each with a work directory of its own."""

import multiprocessing
import os
import signal
import socket
import traceback
from pathlib import Path

from paraforge.base.shards.store import ShardDirectory
from paraforge.translation.memory.inventory import contents, prune
from paraforge.translation.memory.memory import sets_of
from tests.translation.memory.test_memory import CHOSEN, MANY, corpus_of
from tests.translation.stage.test_translate import run

CHANGED = CHOSEN.model_copy(update={"sentences_per_task": 20})


def translate_on(host: str, root: Path, corpus: Path, shared: Path, dies_in: str | None) -> None:
    """Run the stage as on a host of this name; it is killed when this function has put something on disk."""
    fsync = os.fsync

    def killing(descriptor: int) -> None:
        fsync(descriptor)
        if dies_in in {frame.name for frame in traceback.extract_stack()}:
            os.kill(os.getpid(), signal.SIGKILL)

    os.fsync = killing
    socket.gethostname = lambda: host
    run(root, corpus, CHANGED, translation_memory=shared)


def test_two_hosts_are_killed_and_lose_nothing(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    corpora = {"one": corpus_of(tmp_path / "a", MANY[:110]), "two": corpus_of(tmp_path / "b", MANY[:20:-1])}
    expected = {name: run(tmp_path / f"{name} alone", corpus, CHANGED)[1] for name, corpus in corpora.items()}
    start = multiprocessing.get_context("forkserver")
    # A task is finished, a segment is written; an entry is there, the rows are; and then to the end.
    for kills in (("compute_shard", "_written"), ("_enter", "publish"), (None, None)):
        hosts = [
            start.Process(target=translate_on, args=(name, tmp_path / name, corpora[name], shared, kill))
            for name, kill in zip(corpora, kills, strict=True)
        ]
        for host in hosts:
            host.start()
        for host in hosts:
            host.join()
        assert [host.exitcode for host in hosts] == [0 if kill is None else -signal.SIGKILL for kill in kills]
        if kills[0]:  # nobody prunes what a killed run is to find again
            (content,) = contents(shared)
            assert content.busy and prune(content) == 0
    for name in corpora:
        assert ShardDirectory(tmp_path / name / "translated").records == expected[name].records
    (memory,) = sets_of(shared)
    names = sorted(path.name for path in memory.path.glob("0*.json"))
    assert names == [f"{number:08d}.json" for number in range(1, len(names) + 1)]
    (content,) = contents(shared)
    assert content.busy is None and len(content.corpora) == 2
    # Whoever comes next finds all of it.
    report, _ = run(tmp_path / "three", corpus_of(tmp_path / "c", MANY), CHANGED, translation_memory=shared)
    assert report.sentences_from_memory == len(set(MANY))
