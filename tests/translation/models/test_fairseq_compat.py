"""fairseq on current Pythons, and checkpoints that must not run code."""

import dataclasses
import io
import logging
import pickle
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from paraforge.base.errors import InputError
from paraforge.translation.models import fairseq_compat
from paraforge.translation.models.checkpoint import load_checkpoint
from paraforge.translation.models.fairseq_compat import NEEDS, import_fairseq, install_fairseq
from tests.here import run_command
from tests.project import ROOT


@pytest.mark.full
def test_fairseq_import_changes_no_global_state() -> None:
    program = """
import dataclasses, logging
before = dataclasses.dataclass
from paraforge.translation.models.fairseq_compat import import_fairseq
fairseq = import_fairseq()
assert import_fairseq() is fairseq
assert dataclasses.dataclass is before
assert logging.getLogger().handlers == [], logging.getLogger().handlers
assert (logging.getLogger().level, logging.root.manager.disable) == (logging.WARNING, 0)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_import_side_effects_are_undone() -> None:
    def state() -> tuple[object, ...]:
        return dataclasses.dataclass, root.level, [*root.handlers], root.manager.disable

    root = logging.root
    before = state()
    with fairseq_compat._hashable_dataclasses(), fairseq_compat._quiet_import():
        root.setLevel(1)
        assert not any(first == second for first, second in zip(state(), before, strict=True))
    assert state() == before


def test_encoder_fast_path_is_off() -> None:
    import_fairseq()
    from fairseq.modules.transformer_layer import TransformerEncoderLayerBase

    layer = TransformerEncoderLayerBase.__new__(TransformerEncoderLayerBase)
    torch.nn.Module.__init__(layer)
    layer.can_use_fastpath = True
    assert layer.can_use_fastpath is False


class _Malicious:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.write_text, (self.path, "run"))


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ("zip", "refused: it holds more than weights"),
        ("before torch 1.6", "refused: it holds more than weights"),
        ("pickle", r"refused|not weights"),
    ],
)
def test_pickle_with_code_is_refused(tmp_path: Path, form: str, message: str) -> None:
    victim, path = tmp_path / "victim", tmp_path / "checkpoint.pt"
    if form == "pickle":
        path.write_bytes(pickle.dumps(_Malicious(victim)))
    else:
        state = {"model": {}, "args": None, "extra_state": _Malicious(victim)}
        torch.save(state, path, _use_new_zipfile_serialization=form == "zip")
    import_fairseq()
    from fairseq import checkpoint_utils

    for load in (load_checkpoint, checkpoint_utils.load_checkpoint_to_cpu):
        with pytest.raises(InputError, match=message):
            load(str(path))
    assert not victim.exists()


def saved(state: dict[str, object]) -> bytes:
    file = io.BytesIO()
    torch.save(state, file)
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not weights"),
        (b"text, no weights", "refused|not weights"),
        (None, "no such file"),
        (saved({"model": {"weight": torch.zeros(1000)}})[:2000], "not weights, or damaged"),
        (saved({"weights": torch.zeros(2)}), "no model in this file"),
    ],
)
def test_invalid_checkpoint_files(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "checkpoint.pt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        load_checkpoint(path)


def names(requirements: Any) -> set[str]:
    return {re.split(r"[<>=]", requirement)[0] for requirement in requirements}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The calls of pip, of which the one with a failing package fails; fairseq is not installed."""
    found: list[list[str]] = []

    def call(command: list[str], check: bool) -> SimpleNamespace:
        found.append(command)
        return SimpleNamespace(returncode=int("fails" in command))

    monkeypatch.setattr(fairseq_compat, "subprocess", SimpleNamespace(run=call))
    monkeypatch.setattr(fairseq_compat.importlib.util, "find_spec", lambda name: None)
    return found


def test_fairseq_requirements_match_extra() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (listed,) = re.findall(r"^fairseq-needs = \[(.*)\]", project, re.MULTILINE)
    assert names(NEEDS) == names(re.findall(r'"([^"]+)"', listed))


def test_pip_command_of_fairseq_installation(calls: list[list[str]]) -> None:
    run_command("doctor", "--install-fairseq")
    assert calls[0][-len(NEEDS) :] == list(NEEDS)
    assert calls[1][-2:] == ["--no-deps", "fairseq==0.12.2"] and len(calls) == 2


def test_installation_failure_says_what_is_missing(
    calls: list[list[str]], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fairseq_compat, "NEEDS", ("fails",))
    assert not install_fairseq()
    assert "C++ compiler" in capfd.readouterr().err
    assert len(calls) == 1


def test_unsupported_python_and_installed_fairseq_are_skipped(
    calls: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fairseq_compat, "NEWEST_PYTHON", (3, 9))
    run_command("doctor", "--install-fairseq", expect=1)
    monkeypatch.setattr(fairseq_compat.importlib.util, "find_spec", lambda name: object())
    assert install_fairseq() and calls == []
