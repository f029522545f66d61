"""Ingest run again: what it finished is reused or made again, and the bytes are those of a fresh run."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paraforge.base.errors import InputError
from paraforge.intake.bitext import ingest
from paraforge.intake.bitext.sources import SourceFile, read_file
from tests.intake.bitext.helpers import content, run, tsv, write


def corpus(base: Path) -> list[dict[str, Any]]:
    base.mkdir(exist_ok=True)
    for name, step in (("a", 3), ("b", 5), ("c", 7)):
        lines = [f"sentence {n * step % 300} of {n % 2}\tvěta {n * step % 150}\n" for n in range(500)]
        write(base / f"{name}.tsv.gz", "".join(lines))
    return [tsv(base / "a.tsv.gz", "a"), tsv(base / "[bc].tsv.gz", "bc")]


def test_running_again_changes_nothing_and_reads_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = corpus(tmp_path)
    report, _ = run(tmp_path, *sources)
    before = content(tmp_path / "ingested")
    monkeypatch.setattr("paraforge.intake.bitext.parts.read_file", None)
    again, _ = run(tmp_path, *sources)
    assert content(tmp_path / "ingested") == before
    assert (again.rows, again.rejected, again.sources) == (report.rows, report.rejected, report.sources)


def lines_of(number: int) -> str:
    """Content of a file: some of its pairs are other files', too."""
    return "".join(f"sentence {number * n % 37}\tvěta {number * n % 23}\n" for n in range(60 + number))


@given(st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=4), min_size=2, max_size=4))
@settings(max_examples=5)
@pytest.mark.full
def test_after_edits_of_the_files_only_new_content_is_read_and_the_bytes_are_those_of_a_fresh_run(
    tmp_path_factory: pytest.TempPathFactory, states: list[list[int]]
) -> None:
    """Files added, removed, moved, renamed, changed, and changed back; a file has its content's number.

    What a run does not use is removed at its end, so a file that is changed back is read again.
    """
    base = tmp_path_factory.mktemp("edits")
    known: set[int] = set()
    for step, state in enumerate(states):
        sources = [
            tsv(write(base / f"{step}-{place}.tsv", lines_of(number)), f"source{place}")
            for place, number in enumerate(state)
        ]
        read: list[str] = []

        def counted(file: SourceFile, *arguments: Any, read: list[str] = read) -> Any:
            read.append(file.main_path.name)
            return read_file(file, *arguments)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("paraforge.intake.bitext.parts.read_file", counted)
            run(base, *sources)
        assert len(read) == len(set(state) - known), (state, known, read)
        known = set(state)
        run(fresh := base / f"fresh{step}", *sources)
        assert content(base / "ingested") == content(fresh / "ingested")


def test_a_changed_file_or_parameter_is_not_taken_from_the_last_run(tmp_path: Path) -> None:
    sources = corpus(tmp_path)
    first, _ = run(tmp_path, *sources)
    limited, _ = run(tmp_path, *sources, cleaning={"max_characters": 15})
    assert limited.rejected.get("too_long", 0) > first.rejected.get("too_long", 0)
    kept, _ = run(tmp_path, *sources, cleaning={"duplicates": False})
    assert "duplicate" not in kept.rejected
    write(tmp_path / "a.tsv.gz", "another\tjiná\n")
    changed, _ = run(tmp_path, *sources)
    assert changed.rows == first.rows - 499


@pytest.mark.parametrize("damage", ["deleted", "truncated", "flipped"])
def test_damaged_parts_are_read_again_or_named(tmp_path: Path, damage: str) -> None:
    sources = corpus(tmp_path)
    run(tmp_path, *sources)
    before = content(tmp_path / "ingested")
    for part in sorted((tmp_path / "work" / "ingest").rglob("*.parquet")):
        data = bytearray(part.read_bytes())
        data[len(data) // 3] ^= 1
        part.write_bytes({"deleted": b"", "truncated": data[:-20], "flipped": data}[damage])
        if damage == "deleted":
            part.unlink()
        elif damage == "flipped":
            with pytest.raises(InputError, match=r"files/.*parquet.* Delete it if it exists") as caught:
                run(tmp_path, *sources)
            assert str(part) in str(caught.value)
            part.unlink()
        run(tmp_path, *sources)
        assert content(tmp_path / "ingested") == before


def test_what_a_killed_run_was_removing_is_removed(tmp_path: Path) -> None:
    """At any depth, a file or a directory with files."""
    for parent in ("", "groups-pair_high/", "files/x/"):
        place = tmp_path / "work/ingest" / parent
        (place / ".spilled.host-1-0123abcd.tmp/inner").mkdir(parents=True)
        (place / ".spilled.host-1-0123abcd.tmp/inner/.result.host-1-0123abcd.tmp").touch()
        (place / ".keys.host-1-0123abcd.tmp").touch()
    run(tmp_path, *corpus(tmp_path))
    assert not [*tmp_path.rglob("*.tmp"), *tmp_path.rglob("groups-*")]


def test_killed_while_it_writes_it_leaves_the_older_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = corpus(tmp_path)
    run(tmp_path, *sources[:1])
    older = content(tmp_path / "ingested")

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(ingest, "add_up", killed)
        run(tmp_path, *sources)
    assert content(tmp_path / "ingested") == older
    run(tmp_path, *sources)
    run(tmp_path / "fresh", *sources)
    assert content(tmp_path / "ingested") == content(tmp_path / "fresh" / "ingested")
