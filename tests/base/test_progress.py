"""Progress where nobody watches a terminal: whole lines."""

from __future__ import annotations

import sys

import pytest

from paraforge.base.progress import progress


def test_what_is_over_at_once_needs_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(total=4, unit="pairs", description="train") as bar:
        bar.update(4)
    assert capsys.readouterr().err == ""


def test_each_pass_counts_the_same_units(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paraforge.base.progress.SECONDS_BETWEEN_LINES", 0.0)
    with progress(total=20_000, unit="rows", description="select") as bar:
        for phase in ("deciles", "sample", "writing"):
            bar.begin(phase)
            bar.update(20_000)
    *_, last = capsys.readouterr().err.splitlines()
    assert last.startswith("select: writing: 100 %") and "20.0k of 20.0k rows" in last


def test_lines_elsewhere_than_on_a_terminal(
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
    assert first.startswith("train:  25 %") and "left" in first
    assert between == "between"
    assert last.startswith("train: 100 %") and "4.00 of 4.00 pairs" in last
    assert last.endswith("loss 0.5")
