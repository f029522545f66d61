"""Whatever happens to a file of a translation model's training, the model and its curve are the same."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from paraforge.base.errors import Interrupted
from paraforge.base.shards.resources import Resources
from paraforge.translation.training import processes
from paraforge.translation.training.stage import build_nmt
from tests.damage import apply, flip, remove
from tests.project import digests
from tests.translation.models.tiny import bitext
from tests.translation.training.test_binarisation import write_shards
from tests.translation.training.test_training import parameters

# Written for people, or anew by each run.
_NOT_READ = {"lock", "holder.json", "trainer.log", "settings.json", "validation"}


def build(place: Path) -> tuple[dict[str, str], list[str]]:
    """The model's digests, and the curve without times."""
    resources = Resources(threads=1, devices=["cpu"], work=place / "work")
    build_nmt(parameters(), place.parent / "ingested", place / "model", place / "curve.csv", resources)
    lines = (place / "curve.csv").read_text(encoding="utf-8").splitlines()
    dropped = lines[0].split(",").index("seconds")
    curve = [",".join(v for n, v in enumerate(line.split(",")) if n != dropped) for line in lines]
    return digests(place / "model"), curve


def stopped_in_training(monkeypatch: pytest.MonkeyPatch) -> None:
    show = processes._show

    def stopping(messages: Any, *others: Any) -> Any:
        def until_the_second() -> Any:
            validations = 0
            for message in messages:
                validations += message["event"] == "validation"
                yield message
                if validations == 2:
                    raise Interrupted()

        return show(until_the_second(), *others)

    monkeypatch.setattr(processes, "_show", stopping)


def finished(monkeypatch: pytest.MonkeyPatch) -> None:
    pass


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("moment", [stopped_in_training, finished])
def test_any_file(moment: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_shards(tmp_path / "ingested", [(cs, en, None) for cs, en in bitext(300)])
    wanted = build(tmp_path / "whole")
    begun, place = tmp_path / "begun", tmp_path / "damaged"
    with monkeypatch.context() as patched, suppress(Interrupted):
        moment(patched)
        build(begun)
    # One of each kind; both languages have the same.
    names = {re.sub(r"\d|\.(cs|en)(?=\.)|source|target", "", name): name for name in digests(begun / "work")}
    names = {kind: name for kind, name in names.items() if not _NOT_READ.intersection(Path(name).parts)}
    assert any("history" in name or "checkpoint_last" in name for name in names.values()), names
    for name in names.values():
        for damage in (flip, remove) if name.endswith((".pt", "history.json")) else (flip,):
            shutil.copytree(begun, place)
            apply(damage, place / "work" / name)
            assert build(place) == wanted, (name, damage.__name__)
            shutil.rmtree(place)
