"""The whole pipeline with the fake engine: killed anywhere it resumes to the same bytes."""

import random
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.project import (
    SECONDS,
    TRAINED,
    digests,
    environment,
    kill,
    make_project,
    read_parameters,
    run,
    start,
    write_parameters,
)

PLACES = ("data/corpus", "data/rejected", "models/paragram")
KILLS = 6


def stages_run(output: str) -> list[str]:
    """Names of the stages that ``dvc repro`` ran, from what it printed."""
    return [line.split("'")[1] for line in output.splitlines() if line.startswith("Running stage '")]


def published(project: Path) -> dict[str, dict[str, str]]:
    return {place: digests(project / place) for place in PLACES}


@pytest.mark.full
def test_the_summary_is_of_the_published_corpus(finished_project: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(finished_project, project)
    before = run("paraforge", "summary", cwd=project).stdout
    assert "ran again" not in before and "fake, beam 12" in before
    parameters = read_parameters(project)
    parameters["translate"]["fake"]["seed"] = 2
    write_parameters(project, parameters)
    run("dvc", "repro", "translate", cwd=project)
    unfinished = run("paraforge", "summary", cwd=project).stdout
    told = " ".join(unfinished.split())
    assert "translate. Their figures are left out. Run 'dvc repro'" in told
    assert "fake, beam" not in unfinished
    # Killed before DVC took note of what the stage wrote.
    shutil.copy(finished_project / "dvc.lock", project)
    assert run("paraforge", "summary", cwd=project).stdout == unfinished
    run("dvc", "repro", "publish", cwd=project)
    assert "ran again" not in run("paraforge", "summary", cwd=project).stdout


@pytest.mark.full
def test_a_changed_file_of_test_sentences_runs_select_again(finished_project: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(finished_project, project)
    held_out = tmp_path / "held-out.txt"
    held_out.write_text("Nobody says this.\n")
    parameters = read_parameters(project)
    parameters["select"]["filters"] = [{"kind": "decontamination", "files": [{"path": str(held_out)}]}]
    write_parameters(project, parameters)
    assert stages_run(run("dvc", "repro", "publish", cwd=project).stdout) == ["select", "publish"]
    assert stages_run(run("dvc", "repro", "publish", cwd=project).stdout) == []
    held_out.write_text("Nobody says this.\nNor this.\n")
    assert stages_run(run("dvc", "repro", "publish", cwd=project).stdout)[0] == "select"


@pytest.mark.full
def test_a_second_writer_names_the_first(finished_project: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(finished_project, project)
    shutil.rmtree(project / "work")
    parameters = read_parameters(project)
    parameters["translate"]["fake"]["sentences_per_second"] = 20
    write_parameters(project, parameters)
    first = subprocess.Popen(["python", "-m", "paraforge.stages.translate"], cwd=project, env=environment())
    try:
        holder = project / "work" / "translate-sentences" / "holder.json"
        while first.poll() is None and not holder.exists():
            time.sleep(0.1)
        second = run("python", "-m", "paraforge.stages.translate", cwd=project, expect=4)
        assert f"process {first.pid} on " in second.stderr
        first.terminate()  # SIGTERM finishes the batch in hand
        assert first.wait(60) == 130
    finally:
        first.kill()
        first.wait()


@pytest.mark.full
@pytest.mark.timeout(900)
def test_killed_at_random_times_the_corpus_has_the_same_bytes(finished_project: Path, tmp_path: Path) -> None:
    wanted = published(finished_project)
    whole = float((finished_project / SECONDS).read_text())
    dice = random.Random(20)
    killed = rounds = 0
    while killed < KILLS:
        rounds += 1
        project = make_project(tmp_path / f"round{rounds}", TRAINED)
        while True:
            process = start("dvc", "repro", "publish", cwd=project)
            # After enough kills the run may finish: killing continues with a fresh project if need be.
            patience = dice.uniform(0.02, 0.4) * whole if killed < KILLS else None
            try:
                words, _ = process.communicate(timeout=patience)
            except subprocess.TimeoutExpired:
                kill(process)
                killed += 1
                continue
            # dvc itself may have been killed while it wrote one of its own files, which it does in place.
            if process.returncode != 0 and "rwlock" in words:
                assert "removed" in run("paraforge", "doctor", "--repair", cwd=project).stdout, words
                continue
            if process.returncode != 0 and "dvc.lock" in words:
                (project / "dvc.lock").unlink()  # as docs/installation.md says
                continue
            assert process.returncode == 0, words[-3000:]
            break
        assert published(project) == wanted
        shutil.rmtree(project)
