"""A project runs without the calls and files that only Linux has."""

import subprocess
from pathlib import Path

import pytest

import paraforge
from paraforge.base.files import read_json
from paraforge.intake.sample_bitext import write_sample
from tests.project import environment

PAIRS = 120
# Python imports this first in every process of the run. Libraries keep what they use of Linux.
HIDING = """
import os, sys
from pathlib import Path

SEEN = {seen!r}
del os.sched_getaffinity  # available_cores() then counts all cores


def of_paraforge():
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_filename.startswith({package!r}):
            return True
        if "site-packages" in frame.f_code.co_filename:
            return False
        frame = frame.f_back
    return False


def hide(event, arguments):
    if event == "open" and str(arguments[0]).startswith(("/proc/", "/sys/")):
        hidden, error = str(arguments[0]), FileNotFoundError(2, "hidden", arguments[0])
    elif event == "ctypes.dlsym" and arguments[1] in ("malloc_trim", "renameat2"):
        hidden, error = arguments[1], AttributeError(arguments[1])
    else:
        return
    if of_paraforge():
        descriptor = os.open(SEEN, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(descriptor, (hidden + "\\n").encode())
        os.close(descriptor)
        raise error


sys.addaudithook(hide)
"""


@pytest.mark.full
@pytest.mark.timeout(600)
def test_project_runs_without_linux_features(tmp_path: Path) -> None:
    seen = tmp_path / "seen.txt"
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    package = str(Path(str(paraforge.__file__)).parent)
    (hidden / "sitecustomize.py").write_text(HIDING.format(seen=str(seen), package=package))
    texts = [path.read_text(encoding="utf-8") for path in write_sample(tmp_path / "bitext", pairs=PAIRS)]
    (tmp_path / "pairs.tsv").write_text("".join(texts), encoding="utf-8")

    def run(*command: str, cwd: Path) -> None:
        variables = {**environment(), "PYTHONPATH": str(hidden)}
        done = subprocess.run(command, cwd=cwd, env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}: {done.stdout}\n{done.stderr}"

    run("paraforge", "init", "project", "--table", "pairs.tsv", cwd=tmp_path)
    project = tmp_path / "project"
    run(
        "paraforge", "configure", "translation=fake", "select.filters.paraphrase_score.minimum=0",
        "resources.workers=2", "resources.in_process_rows=0", cwd=project,
    )  # fmt: skip
    run("dvc", "repro", "publish", cwd=project)
    counts = read_json(project / "data/corpus/_manifest.json")["counts"]
    assert counts["rows_in"] == PAIRS and counts["kept"] > 0
    assert counts["kept"] + sum(counts["rejected"].values()) + sum(counts["failed"].values()) == PAIRS
    # The test hides something: the stages asked for it.
    assert "/proc/self/cgroup" in seen.read_text()
