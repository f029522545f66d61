"""The translation memory on a disk that damages, fills up or refuses: what is lost, and what is said. Two
hosts that use one translation memory at the same time, each with a work directory of its own."""

import json
import multiprocessing
import os
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


@pytest.mark.parametrize("damage", ["flipped", "cut", "gone", "entry cut"])
def test_a_damaged_file_is_named_and_costs_its_own_sentences(
    tmp_path: Path, seen: list[str], monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    monkeypatch.setattr(memory, "SEGMENT_SENTENCES", 20)
    monkeypatch.setattr(memory, "_PAUSE", 0)
    corpus = corpus_of(tmp_path / "in", MANY)
    _, expected = run(tmp_path, corpus, CHOSEN)
    (directory,) = (tmp_path / "work" / "memory").iterdir()
    segments = sorted(directory.glob("*.parquet"))
    assert len(segments) == 5
    path = directory / "00000001.json" if damage.startswith("entry") else segments[2]
    content = bytearray(path.read_bytes())
    if damage == "flipped":
        column = pq.read_metadata(path).row_group(0).column(2)
        content[column.data_page_offset + column.total_compressed_size - 1] ^= 1
    path.write_bytes(content[: len(content) // 2] if damage.endswith("cut") else content)
    seen.clear()
    if damage != "gone":
        with pytest.raises(InputError, match=rf"{path}.*Delete it, and its .*sentences are translated again"):
            run(tmp_path, corpus, CHOSEN)
    path.unlink()
    report, published = run(tmp_path, corpus, CHOSEN)
    assert published.records == expected.records
    lost = 97 if damage.startswith("entry") else report.sentences_translated
    assert 0 < lost <= 24 or damage.startswith("entry")
    assert sorted(seen) == sorted(set(seen)) and len(seen) == lost


@pytest.fixture
def entry(tmp_path: Path) -> Path:
    """The only entry of a memory that has translated a corpus."""
    run(tmp_path, corpus_of(tmp_path / "in", MANY), CHOSEN)
    (path,) = (tmp_path / "work" / "memory").glob("*/0*.json")
    return path


@pytest.mark.parametrize("size", [0, 40])
def test_an_entry_that_is_being_written_is_read_when_it_is_whole(
    entry: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """Where there are no hard links, a host may find an entry of which a part is written."""
    content = entry.read_bytes()
    entry.write_bytes(content[:size])
    monkeypatch.setattr(
        "paraforge.translation.memory.memory.time.sleep", lambda seconds: entry.write_bytes(content)
    )
    assert sum(segment.sentences for segment in only_set(entry.parents[1]).segments()) == 97


def test_an_entry_of_a_newer_version_is_not_taken_for_a_damaged_one(
    entry: Path, tmp_path: Path, seen: list[str]
) -> None:
    entry.write_text(json.dumps({**json.loads(entry.read_text()), "format": 2}))
    seen.clear()
    with pytest.raises(InputError, match=r"00000001.json: written in format 2.*Upgrade"):
        run(tmp_path, tmp_path / "in", CHOSEN)
    assert not seen


def test_an_entry_names_files_of_its_own_set_only(entry: Path) -> None:
    (segment,) = json.loads(entry.read_text())["segments"]
    listed = [{**segment, "path": "../../../in/shard-00000.parquet", "later": 1}]
    entry.write_text(json.dumps({"format": 1, "segments": listed}))
    assert only_set(entry.parents[1]).segments() == []


def test_a_memory_that_cannot_be_written_is_found_out_before_anything_is_translated(
    tmp_path: Path, seen: list[str]
) -> None:
    shared = tmp_path / "shared"
    first, second = corpus_of(tmp_path / "a", MANY[:50]), corpus_of(tmp_path / "b", MANY)
    run(tmp_path / "one", first, CHOSEN, translation_memory=shared)
    seen.clear()
    # What is known can be had: nothing is to be added.
    (found,) = shared.iterdir()
    found.chmod(0o555)
    try:
        report, _ = run(tmp_path / "two", first, CHOSEN, translation_memory=shared)
        assert counts(report) == (50, 0, 0)
        if not os.access(found, os.W_OK):  # nobody keeps the administrator from writing
            with pytest.raises(InputError, match=r"nothing can be added to this translation memory: Perm"):
                run(tmp_path / "two", second, CHOSEN, translation_memory=shared)
    finally:
        found.chmod(0o755)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"nothing can be added .*resources.translation_memory"):
        run(tmp_path / "three", second, CHOSEN, translation_memory=tmp_path / "file")
    assert not seen


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


@pytest.mark.full
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
    for name in corpora:
        assert ShardDirectory(tmp_path / name / "translated").records == expected[name].records
    names = sorted(path.name for path in only_set(shared).path.glob("0*.json"))
    assert names == [f"{number:08d}.json" for number in range(1, len(names) + 1)]
    # Whoever comes next finds all of it.
    report, _ = run(tmp_path / "three", corpus_of(tmp_path / "c", MANY), CHANGED, translation_memory=shared)
    assert report.sentences_from_memory == len(set(MANY))
