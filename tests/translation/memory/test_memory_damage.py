"""The translation memory on damaged, full or read-only disks, and shared by two hosts."""

import multiprocessing
import os
import shutil
import signal
import socket
import traceback
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from paraforge.base.errors import InputError
from paraforge.base.shards.store import ShardDirectory
from paraforge.translation.memory import memory
from tests.translation.memory.test_memory import CHOSEN, MANY, corpus_of, counts, only_set
from tests.translation.stage.test_translate import run

CHANGED = CHOSEN.model_copy(update={"sentences_per_task": 20})


@pytest.mark.parametrize("damage", ["flipped", "cut", "gone", "another file"])
def test_damaged_memory_file_loses_only_its_sentences(
    tmp_path: Path, seen: list[str], monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    monkeypatch.setattr(memory, "SEGMENT_SENTENCES", 20)
    corpus = corpus_of(tmp_path / "in", MANY)
    _, expected = run(tmp_path, corpus, CHOSEN)
    (directory,) = (tmp_path / "work" / "memory").iterdir()
    segments = sorted(directory.glob("*.parquet"))
    assert len(segments) == 5
    path = segments[2]
    content = bytearray(path.read_bytes())
    if damage == "flipped":
        column = pq.read_metadata(path).row_group(0).column(2)
        content[column.data_page_offset + column.total_compressed_size - 1] ^= 1
    path.write_bytes(content[: len(content) // 2] if damage == "cut" else content)
    if damage == "another file":
        shutil.copyfile(corpus / "shard-00000.parquet", path)
    seen.clear()
    if damage != "gone":
        with pytest.raises(InputError, match=rf"{path}.*Delete it if it exists, and run .*again"):
            run(tmp_path, corpus, CHOSEN)
    path.unlink()
    report, published = run(tmp_path, corpus, CHOSEN)
    assert published.records == expected.records
    assert 0 < report.sentences_translated <= 24
    assert sorted(seen) == sorted(set(seen)) and len(seen) == report.sentences_translated


def test_newer_segment_is_not_called_damaged(
    tmp_path: Path, seen: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = corpus_of(tmp_path / "in", MANY)
    with monkeypatch.context() as patch:
        patch.setattr(memory, "_FORMAT", 3)
        run(tmp_path, corpus, CHOSEN)
    seen.clear()
    with pytest.raises(InputError, match=r"00000001-\w+.parquet: written in format 3.*Upgrade"):
        run(tmp_path, corpus, CHOSEN)
    assert not seen


def test_unwritable_memory_is_found_before_translation(
    tmp_path: Path, seen: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    first, second = corpus_of(tmp_path / "a", MANY[:50]), corpus_of(tmp_path / "b", MANY)
    run(tmp_path / "one", first, CHOSEN, translation_memory=shared)
    seen.clear()
    # What is known can be had: nothing is to be added.
    with monkeypatch.context() as patched:
        patched.setattr(os, "access", lambda path, mode: (path.parent, mode) != (shared, os.W_OK))
        report, _ = run(tmp_path / "two", first, CHOSEN, translation_memory=shared)
        assert counts(report) == (50, 0, 0)
        with pytest.raises(InputError, match=r"nothing can be added to this translation memory: Perm"):
            run(tmp_path / "two", second, CHOSEN, translation_memory=shared)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"nothing can be added .*resources.translation_memory"):
        run(tmp_path / "three", second, CHOSEN, translation_memory=tmp_path / "file")
    assert not seen


def translate_on(host: str, root: Path, corpus: Path, shared: Path, dies_in: str | None) -> None:
    """Run the stage as on a host of this name, and kill it when this function has written to the disk."""
    fsync = os.fsync

    def killing(descriptor: int) -> None:
        fsync(descriptor)
        if dies_in in {frame.name for frame in traceback.extract_stack()}:
            os.kill(os.getpid(), signal.SIGKILL)

    os.fsync = killing
    socket.gethostname = lambda: host
    run(root, corpus, CHANGED, translation_memory=shared)


@pytest.mark.full
def test_two_killed_hosts_lose_nothing(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    corpora = {"one": corpus_of(tmp_path / "a", MANY[:110]), "two": corpus_of(tmp_path / "b", MANY[:20:-1])}
    expected = {name: run(tmp_path / f"{name} alone", corpus, CHANGED)[1] for name, corpus in corpora.items()}
    start = multiprocessing.get_context("forkserver")
    # A task is finished, a segment is written; it has its name, the rows are there; and then to the end.
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
    for name in corpora:
        assert ShardDirectory(tmp_path / name / "translated").records == expected[name].records
    assert not list(only_set(shared).path.glob(".*"))
    # Whoever comes next finds all of it.
    report, _ = run(tmp_path / "three", corpus_of(tmp_path / "c", MANY), CHANGED, translation_memory=shared)
    assert report.sentences_from_memory == len(set(MANY))
