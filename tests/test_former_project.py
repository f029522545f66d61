"""A project that version 0.1.0 made, brought up to date."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from paraforge import versions
from paraforge.base.errors import InputError
from paraforge.interface.project import files
from paraforge.interface.project.files import VERSIONS, installed_versions
from paraforge.interface.project.upgrade import reasons, upgrade, what_runs
from tests.project import ROOT
from tests.test_projects import FORMER


@pytest.mark.parametrize("place", ["clone", "nothing"])
def test_what_is_no_project_is_not_upgraded(place: str, tmp_path: Path) -> None:
    message = "this is the clone itself.*git pull" if place == "clone" else "no project.*paraforge init DIR"
    with pytest.raises(InputError, match=message):
        upgrade(ROOT if place == "clone" else tmp_path)


def test_a_project_of_0_1_0(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What doctor says of it, what an upgrade writes, and that only steps with other numbers run again."""
    former = shutil.copytree(FORMER, tmp_path / "former", symlinks=True)
    monkeypatch.chdir(former)
    users = {name: (former / name).read_bytes() for name in ("params.yaml", files.MY_BITEXT)}
    done = upgrade(former)
    assert {"dvc.yaml", "configs/publish/default.yaml"} <= {*done.updated}
    assert {"configs/score/default.yaml", files.MY_BITEXT} == {*done.kept}
    assert "configs/select/quality.yaml" in done.new
    assert {name: (former / name).read_bytes() for name in users} == users
    assert "'paraforge configure' first" in next(what_runs(former))  # what DVC would stop for
    lock = yaml.safe_load((former / "dvc.lock").read_text(encoding="utf-8"))["stages"]
    ran = {key: number for stage in lock.values() for key, number in stage["params"][str(VERSIONS)].items()}
    raised = {key for key, number in ran.items() if installed_versions()[key] != number}
    for name, reason in ran_before(former, lock).items():
        of_step = re.findall(r"([A-Z]+) \d+ -> \d+", reason)
        assert set(of_step) <= raised and (of_step or reason.startswith("it reads what")), (name, reason)
    # Were no number another, only what has read the sources' licences since would run.
    for key, number in ran.items():
        monkeypatch.setattr(versions, key, number)
    assert ran_before(former, lock) == {"publish": "its parameters changed: ingest.sources"}
    assert {reasons(former)[name] for name in reasons(former)} >= {"it has not run yet"}
    monkeypatch.setattr(versions, "SELECT", ran["SELECT"] + 1)
    assert list(ran_before(former, lock)) == ["select", "publish"]
    assert reasons(former)["select"].endswith(f"step SELECT {ran['SELECT']} -> {ran['SELECT'] + 1}")


def ran_before(project: Path, lock: dict[str, Any]) -> dict[str, str]:
    """Why the stages of a lock run again."""
    return {name: reason for name, reason in reasons(project).items() if name in lock}
