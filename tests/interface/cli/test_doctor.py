"""``paraforge doctor`` names mistakes with their line and a remedy."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from paraforge.interface.project import diagnosis
from tests.here import run_command
from tests.project import ROOT


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pipeline").mkdir()
    for name in ("dvc.yaml", "params.yaml", "pipeline/versions.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def findings() -> dict[str, dict[str, Any]]:
    """What is found in the project; packages and devices are looked at elsewhere."""
    return {one.name: vars(one) for one in diagnosis.project()}


def test_doctor_sound_and_missing_files(project: Path) -> None:
    assert findings()["params.yaml"]["state"] == "ok"
    Path("params.yaml").unlink()
    assert "Run 'paraforge configure'" in findings()["params.yaml"]["detail"]


def test_doctor_names_missing_environment(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, other = Path(sys.executable).parent, project / "bin"
    other.mkdir()
    (other / "python").symlink_to(sys.executable)
    (other / "dvc").symlink_to(sys.executable)
    for place, said in ((own, None), (other, f"{other / 'python'}; stages would"), (project, "not found; ")):
        monkeypatch.setenv("PATH", str(place))
        found = findings()
        assert ("dvc on PATH" in found) == (not (place / "dvc").exists())
        assert ("python on PATH" in found) == (said is not None)
        assert said is None or found["python on PATH"]["detail"].startswith(said)
    for data, named in ((None, False), (str(own), False), (str(project / "gone"), True)):
        monkeypatch.setenv("PARAFORGE_DATA", data) if data else monkeypatch.delenv(
            "PARAFORGE_DATA", raising=False
        )
        assert ("PARAFORGE_DATA" in findings()) == named


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  engine: ctranslate2", "  engin: ctranslate2", "translate.engin: there is no such parameter; did"),
        ("  dimension: 300", "  dimension: 0", "encoder.dimension: 0: should be greater than or equal to 1"),
        ("select:", "selct:", "selct: there is no such parameter; did you mean 'select'?"),
        ("  engine: ctranslate2", "  engine: ctranslate2\n  engine: fake", "duplicate key"),
        ("select:", "select", "not YAML"),
    ],
)
def test_doctor_names_typo_with_line(old: str, new: str, message: str, project: Path) -> None:
    lines = Path("params.yaml").read_text().splitlines()
    place = next(number for number, line in enumerate(lines) if line.endswith(old))
    lines[place] = lines[place].replace(old, new)
    Path("params.yaml").write_text("\n".join(lines))
    found = findings()["params.yaml"]
    assert found["state"] == "broken" and message in found["detail"]
    number = place + 1 + ("duplicate" in message or "YAML" in message)
    assert f"params.yaml:{number}: " in found["detail"]
    assert "configure" not in found["detail"] + found["remedy"]


@pytest.mark.timeout(30)
def test_doctor_does_not_wait_for_pipe(project: Path) -> None:
    Path("params.yaml").unlink()
    os.mkfifo("params.yaml")
    assert "not a regular file" in findings()["params.yaml"]["detail"]


def test_commands_do_not_touch_dvc_lock(project: Path) -> None:
    text = "<<<<<<< HEAD\nschema: '2.0'\n=======\n>>>>>>> theirs\n"
    Path("dvc.lock").write_text(text)
    for words in (["--help"], ["--version"], ["doctor"], ["configure", "--help"]):
        run_command(*words, expect=None)
    assert Path("dvc.lock").read_text() == text
    assert sorted(Path().glob("dvc.lock*")) == [Path("dvc.lock")]


def test_remedy_removes_leftovers_of_killed_dvc(project: Path) -> None:
    (project / ".dvc" / "tmp").mkdir(parents=True)
    (project / ".dvc" / "tmp" / "rwlock").write_text("{")
    links = project / "inputs" / "ingest"
    links.mkdir(parents=True, exist_ok=True)
    (links / "001-gone.yaml").symlink_to(project / "gone.yaml")
    (links / "002-here.yaml").symlink_to(project / "params.yaml")
    broken = {".dvc/tmp/rwlock", "inputs/ingest/001-gone.yaml"}
    found = findings()
    assert broken <= found.keys()
    for name in broken:
        subprocess.run(found[name]["remedy"].partition(";")[0].split(), check=True)
    assert not broken & findings().keys()
    assert (links / "002-here.yaml").is_symlink()


@pytest.mark.parametrize("missing", [["dvc.yaml", "params.yaml"], ["params.yaml"]])
def test_doctor_outside_a_project(project: Path, missing: list[str]) -> None:
    for name in missing:
        Path(name).unlink()
    told = run_command("doctor", expect=None).output
    assert "Errno" not in told and {"machine", "packages", "engines", "devices"} <= {*told.split("\n")}
    assert ("paraforge init DIR" in told) == (len(missing) == 2)


def test_package_of_several_extras_is_listed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    required = ["numpy>=2", 'numpy>=1; extra == "hub"', 'no-such>=1; extra == "hub"', 'ruff; extra == "test"']
    monkeypatch.setattr(diagnosis.importlib.metadata, "requires", lambda _: [*required, "not-there"])
    found = [(package.name, package.state, package.detail) for package in diagnosis.packages()]
    assert found[1:] == [
        ("no-such", "missing", "for the extra hub"),
        ("not-there", "broken", "not installed"),
    ]
    assert found[0][:2] == ("numpy", "ok")


@pytest.mark.parametrize("states", [("broken", "ok"), ("ok", "broken"), ("missing", "note")])
def test_doctor_exit_code(states: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    found = [("packages", [diagnosis.Finding(f"the {state}", state, "x", "do y") for state in states])]
    monkeypatch.setattr(diagnosis, "diagnose", lambda: found)
    said = run_command("doctor", expect=int("broken" in states)).output
    assert all(f"  the {state}: x\n           -> do y\n" in said for state in states)
