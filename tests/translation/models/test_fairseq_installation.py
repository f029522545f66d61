"""Installing fairseq beside DVC: first what it needs, then itself without its pins; a failure says why."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest

from paraforge.translation.models import fairseq_installation
from paraforge.translation.models.fairseq_installation import NEEDS, install_fairseq
from tests.here import run_command
from tests.project import ROOT


def names(requirements: Any) -> set[str]:
    return {re.split(r"[<>=]", one)[0] for one in requirements}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The calls of pip, of which the one with a failing package fails; fairseq is not installed."""
    found: list[list[str]] = []

    def call(command: list[str], check: bool) -> SimpleNamespace:
        found.append(command)
        return SimpleNamespace(returncode=int("fails" in command))

    monkeypatch.setattr(fairseq_installation, "subprocess", SimpleNamespace(run=call))
    monkeypatch.setattr(fairseq_installation.importlib.util, "find_spec", lambda name: None)
    return found


def test_its_needs_are_those_of_the_extra() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    listed = re.search(r"^fairseq-needs = \[(.*)\]", project, re.MULTILINE)
    assert listed is not None
    assert names(NEEDS) == names(re.findall(r'"([^"]+)"', listed[1]))


def test_what_pip_is_asked_for(calls: list[list[str]]) -> None:
    run_command("doctor", "--install-fairseq")
    assert calls[0][-len(NEEDS) :] == list(NEEDS)
    assert calls[1][-2:] == ["--no-deps", "fairseq==0.12.2"] and len(calls) == 2


def test_a_failure_says_what_is_missing(
    calls: list[list[str]], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fairseq_installation, "NEEDS", ("fails",))
    assert not install_fairseq()
    assert "C++ compiler" in capfd.readouterr().err
    assert len(calls) == 1


def test_a_newer_python_is_not_tried(calls: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fairseq_installation, "NEWEST_PYTHON", (3, 9))
    run_command("doctor", "--install-fairseq", expect=1)
    assert calls == []


def test_an_installed_one_is_left_alone(calls: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fairseq_installation.importlib.util, "find_spec", lambda name: object())
    assert install_fairseq() and calls == []
