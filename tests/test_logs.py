"""What people see, and what the log file keeps."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from paraforge.logs import configure_logging


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


def test_a_library_that_sets_its_level_anew_is_kept_from_sight(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging("score", tmp_path)
    library = logging.getLogger("distributed.scheduler")
    library.setLevel(logging.INFO)
    try:
        library.info("closing comms")
        library.warning("memory is short")
        logging.getLogger("paraforge.scoring.score").info("20,000 pairs")
    finally:
        library.setLevel(logging.NOTSET)
    assert capsys.readouterr().err == "score: memory is short\nscore: 20,000 pairs\n"
    kept = (tmp_path / "score.log").read_text()
    assert all(text in kept for text in ("closing comms", "memory is short", "20,000 pairs"))
