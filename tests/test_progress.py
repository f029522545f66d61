"""Progress where nobody watches a terminal: whole lines."""

from __future__ import annotations

import sys

import pytest

from paraforge.progress import progress


def test_lines_elsewhere_than_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(total=4, unit="pairs", description="train", done=1) as bar:
        bar.update(3)
        bar.status("loss 0.5")
        print("between", file=sys.stderr)
    text = capsys.readouterr().err
    assert "\r" not in text
    first, between, last = text.splitlines()
    assert first.startswith("train:  25%")
    assert between == "between"
    assert last.startswith("train: 100%")
    assert last.endswith("loss 0.5]")
