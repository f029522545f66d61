"""Console output, progress, and the log file."""

import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from paraforge.base.logs import configure_logging, counted, remove_handlers, say_result
from paraforge.base.progress import JobCounter, _Bar, progress


@pytest.fixture(autouse=True)
def handlers_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    for handler in root.handlers:
        if handler not in handlers:
            handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.mark.parametrize("is_terminal", [True, False])
def test_library_resetting_its_log_level_stays_silent(
    is_terminal: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    configure_logging("score", tmp_path)
    library = logging.getLogger("distributed.scheduler")
    library.setLevel(logging.INFO)
    try:
        library.info("closing comms")
        library.warning("memory is short")
        logging.getLogger("paraforge.corpus.scoring.score").info("20,000 pairs")
    finally:
        library.setLevel(logging.NOTSET)
    assert capsys.readouterr().err == "score: memory is short\nscore: 20,000 pairs\n"
    kept = (tmp_path / "score.log").read_text()
    assert all(text in kept for text in ("closing comms", "memory is short", "20,000 pairs"))


def test_full_disk_does_not_break_logging(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "score.log").symlink_to("/dev/full")
    configure_logging("score", tmp_path)
    logging.getLogger("paraforge").error("No space left on device: work")
    assert capsys.readouterr().err == "score: No space left on device: work\n"


def test_slow_worker_shutdown_is_not_logged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("score", tmp_path)
    logging.getLogger("distributed.nanny").warning("Worker process still alive, killing")
    logging.getLogger("distributed.nanny.memory").warning("exceeded its memory. Restarting")
    assert capsys.readouterr().err == "score: exceeded its memory. Restarting\n"
    assert "still alive" in (tmp_path / "score.log").read_text()


@pytest.mark.parametrize("brief", [True, False])
def test_tracebacks_go_only_to_log_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], brief: bool
) -> None:
    """A lost scheduler causes two tracebacks and then one of our errors."""
    configure_logging("score", tmp_path, brief=brief)
    try:
        raise ConnectionError("gone")
    except ConnectionError:
        logging.getLogger("distributed.utils").exception("")
        logging.getLogger("paraforge.base.shards").debug("a job failed:", exc_info=True)
    logging.getLogger("paraforge.base.shards").error("the connection to the scheduler was lost")
    assert capsys.readouterr().err == "score: the connection to the scheduler was lost\n"
    assert (tmp_path / "score.log").read_text().count("ConnectionError: gone") == 2


def test_brief_console_shows_warnings_and_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("score", tmp_path, brief=True)
    logging.getLogger("paraforge.corpus.scoring.score").info("details")
    logging.getLogger("paraforge.corpus.scoring.score").warning("no score at all")
    say_result("5 of 7 pairs scored")
    assert capsys.readouterr().err == "score: no score at all\nscore: 5 of 7 pairs scored\n"
    assert "details" in (tmp_path / "score.log").read_text()


def test_second_logging_setup_replaces_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("score", "select"):
        configure_logging(name, tmp_path)
    logging.getLogger("paraforge").info("once")
    assert capsys.readouterr().err == "select: once\n"
    assert "once" not in (tmp_path / "score.log").read_text()
    remove_handlers()
    assert not logging.getLogger("paraforge").isEnabledFor(logging.INFO)


def test_counts_use_singular_or_plural() -> None:
    assert [counted(number, "pair") for number in (0, 1, 2000)] == ["0 pairs", "1 pair", "2,000 pairs"]


def test_instant_work_shows_no_progress(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(total=4, unit="pairs", description="train") as bar:
        bar.update(4)
    assert capsys.readouterr().err == ""


def test_progress_of_passes_counts_same_units(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paraforge.base.progress.SECONDS_BETWEEN_LINES", 0.0)
    with progress(total=20_000, unit="rows", description="select") as bar:
        for phase in ("deciles", "sample", "writing"):
            bar.begin(phase)
            bar.update(20_000)
    *_, last = capsys.readouterr().err.splitlines()
    assert last.startswith("select: writing: 100%") and "20.0k of 20.0k rows" in last


def test_progress_lines_without_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paraforge.base.progress.SECONDS_BETWEEN_LINES", 0.0)
    with progress(total=4, unit="pairs", description="train", done=1) as bar:
        bar.update(3)
        bar.status("loss 0.5")
        print("between", file=sys.stderr)
    text = capsys.readouterr().err
    assert "\r" not in text
    first, *_, between, last = text.splitlines()
    assert first.startswith("train:  25%") and "left" in first
    assert between == "between"
    assert last.startswith("train: 100%") and "4.00 of 4.00 pairs" in last
    assert last.endswith("loss 0.5")


def test_slow_rates_use_same_format() -> None:
    rates = [
        _Bar.format_meter(8, 80, elapsed, unit=" updates", unit_scale=True, bar_format="{rate_fmt}")
        for elapsed in (2, 32)
    ]
    assert rates == ["4.00 updates/s", "4.00 s/updates"]


def test_repeated_job_counts_once_in_progress() -> None:
    told: list[int] = []
    bar: Any = SimpleNamespace(update=told.append)
    counter = JobCounter([4, 2], bar)
    for rows in (1, 3, 1, 2, 3):  # on a second worker from the beginning
        counter.tell(0, rows)
    counter.finish(0, 3)
    counter.finish(1, 0)
    counter.finish(1, 0)
    assert told == [1, 2, 1, 2]
