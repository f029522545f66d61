"""The speed check compares with the last run of the same work on the same machine, and with no other."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from benchmarks import speed
from benchmarks.hardware import hardware
from benchmarks.results import append
from benchmarks.speed import TASK, judged, last_rate, used_mb


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PARAFORGE_RESULTS", str(tmp_path))
    return tmp_path / f"{TASK}.jsonl"


def record(rate: float, name: str = "score", rows: int = 10) -> None:
    append(TASK, name, {"rows_per_second": rate}, command="make bench", rows=rows)


def test_nothing_is_compared_on_a_new_machine(results: Path) -> None:
    assert last_rate("score", {"rows": 10}) is None
    record(5)
    line: dict[str, Any] = json.loads(results.read_text(encoding="utf-8"))
    results.write_text(json.dumps({**line, "hardware": "another machine"}) + "\n", encoding="utf-8")
    assert last_rate("score", {"rows": 10}) is None
    assert line["hardware"] == hardware()


def test_the_last_run_of_the_same_work_counts(results: Path) -> None:
    for rate in (5, 7):
        record(rate)
    record(8, rows=20)
    record(9, name="select")
    found = last_rate("score", {"rows": 10})
    assert found is not None and found[0] == 7


def test_translations_are_judged_with_their_rate() -> None:
    text = "The cat sat on the mat."
    figures = judged([text] * 4, 2.0, [text] * 4)
    assert figures["rows_per_second"] == 2
    assert figures["bleu"] == pytest.approx(100)


def test_without_a_corpus_it_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="make corpus"):
        speed.main(tmp_path)


def test_a_file_with_two_names_counts_once(tmp_path: Path) -> None:
    for folder in ("data", "work/deep"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "data" / "one").write_bytes(b"x" * 2**20)
    alone = used_mb(tmp_path, "data")
    os.link(tmp_path / "data" / "one", tmp_path / "work" / "deep" / "same")
    assert used_mb(tmp_path, "data", "work") == pytest.approx(alone, abs=0.1) and alone >= 1
    (tmp_path / "work" / "other").write_bytes(b"x" * 2**20)
    both = used_mb(tmp_path, "data", "work")
    assert both > 1.9 * alone
    with (tmp_path / "work" / "hole").open("wb") as file:  # which takes no place on the disk
        file.truncate(2**30)
    assert used_mb(tmp_path, "data", "work") == pytest.approx(both, abs=0.1)
