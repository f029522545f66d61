"""DVC's own commands keep parameters, work directory and corpus."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from paraforge.corpus.publication.manifest import read_manifest
from tests.project import digests, read_parameters, run, write_parameters

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]
CHOICES = "# choices: translation=fake corpus=sample\n"
OVERLAP = "select.filters.trigram_overlap.maximum"


def git(project: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=project, check=True, capture_output=True)


def maximum(project: Path) -> float:
    return float(read_parameters(project)["select"]["filters"]["trigram_overlap"]["maximum"])


def choices_are_kept(project: Path) -> bool:
    pairs = read_parameters(project)["ingest"]["sources"][0]["pairs"]
    return (project / "params.yaml").read_text().startswith(CHOICES) and pairs == 1500


@pytest.fixture(scope="module")
def project(finished_project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished project under git, with an experiment of another threshold."""
    project = tmp_path_factory.mktemp("dvc") / "project"
    shutil.copytree(finished_project, project, symlinks=True)
    settings = project / ".dvc" / "config"
    settings.write_text(settings.read_text().replace("no_scm = True", ""))
    (project / ".gitignore").write_text("/data\n/models\n/work\n/logs\n/.dvc/cache\n/.dvc/tmp\n*.pyc\n")
    # DVC's checkout and apply want every stage to have run: the project ends with the last one that has.
    stages = yaml.safe_load((project / "dvc.yaml").read_text(encoding="utf-8"))
    have_run = yaml.safe_load((project / "dvc.lock").read_text(encoding="utf-8"))["stages"]
    stages["stages"] = {name: stage for name, stage in stages["stages"].items() if name in have_run}
    (project / "dvc.yaml").write_text(yaml.safe_dump(stages, sort_keys=False), encoding="utf-8")
    (project / "params.yaml").write_text(CHOICES + (project / "params.yaml").read_text())
    # 'dvc exp apply' asks for both, and a fresh machine has none.
    name = ["config", "user.name", "a"], ["config", "user.email", "a@b.c"]
    for command in (["init", "-q", "-b", "main"], *name, ["add", "-A"], ["commit", "-qm", "first"]):
        git(project, *command)
    run("dvc", "exp", "run", "-n", "closer", "-S", f"{OVERLAP}=0.5", "publish", cwd=project)
    assert maximum(project) == 0.5 and choices_are_kept(project)
    return project


@pytest.fixture(autouse=True)
def _nothing_is_lost(project: Path) -> None:
    """Begin with the first commit's parameters and its corpus."""
    git(project, "checkout", "-q", "-f", "main")
    run("dvc", "checkout", cwd=project)


def corpus(project: Path) -> dict[str, str]:
    return digests(project / "data/corpus")


def test_exp_run_without_options_keeps_the_parameters(project: Path, finished_project: Path) -> None:
    before = (project / "params.yaml").read_bytes()
    work = digests(project / "work" / "translate")
    run("dvc", "exp", "run", "publish", cwd=project)
    assert (project / "params.yaml").read_bytes() == before
    assert corpus(project) == corpus(finished_project)
    assert digests(project / "work" / "translate") == work


def test_exp_show_and_diff_name_the_threshold_and_change_nothing(project: Path) -> None:
    before = (project / "params.yaml").read_bytes()
    shown = run("dvc", "exp", "show", "--csv", cwd=project).stdout
    assert "closer" in shown and OVERLAP in shown
    differs = json.loads(run("dvc", "exp", "diff", "main", "closer", "--json", cwd=project).stdout)
    assert differs["params"]["params.yaml"][OVERLAP]["new"] == 0.5
    assert (project / "params.yaml").read_bytes() == before


def test_exp_apply_restores_experiment_corpus(project: Path, finished_project: Path) -> None:
    run("dvc", "exp", "apply", "closer", cwd=project)
    assert maximum(project) == 0.5 and choices_are_kept(project)
    assert corpus(project) != corpus(finished_project)
    run("paraforge", "verify", "data/corpus", cwd=project)


def test_queued_experiment_leaves_workspace(project: Path, finished_project: Path) -> None:
    run("dvc", "exp", "run", "--queue", "-n", "later", "-S", f"{OVERLAP}=0.6", "publish", cwd=project)
    assert "later" in run("dvc", "queue", "status", cwd=project).stdout
    assert choices_are_kept(project) and maximum(project) == 0.9
    assert corpus(project) == corpus(finished_project)
    run("dvc", "queue", "remove", "--queued", cwd=project)


def test_params_diff_metrics_diff_and_plots(project: Path) -> None:
    run("dvc", "exp", "apply", "closer", cwd=project)
    params = json.loads(run("dvc", "params", "diff", "--json", cwd=project).stdout)
    assert params["params.yaml"][OVERLAP]["old"] == 0.9 and params["params.yaml"][OVERLAP]["new"] == 0.5
    metrics = json.loads(run("dvc", "metrics", "diff", "--json", cwd=project).stdout)
    assert any(name.endswith("publish.json") for name in metrics)
    run("dvc", "plots", "show", "plots/statistics_bands.csv", "-o", "shown", cwd=project)
    assert (project / "shown" / "index.html").is_file()
    assert choices_are_kept(project)


def test_changed_license_reruns_only_publication(project: Path) -> None:
    parameters = read_parameters(project)
    parameters["ingest"]["sources"][0]["license"] = "CC-BY-4.0"
    parameters["publish"]["licenses"] = {"sample-news": "CC0-1.0"}
    write_parameters(project, parameters)
    said = run("dvc", "repro", "publish", cwd=project).stdout
    assert set(re.findall("Running stage '(.*?)'", said)) == {"ingest", "publish"}
    manifest = read_manifest(project / "data/corpus")
    assert {manifest.licenses[name] for name in manifest.sources if name != "sample-news"} == {"CC-BY-4.0"}
    assert manifest.licenses["sample-news"] == "CC0-1.0"
    card = (project / "data/corpus/_README.md").read_text(encoding="utf-8")
    assert "| sample-captions | CC-BY-4.0 |" in card


def test_checkout_after_branch_switch(project: Path, finished_project: Path) -> None:
    git(project, "branch", "-f", "other")
    git(project, "checkout", "-q", "other")
    run("dvc", "exp", "apply", "closer", cwd=project)
    git(project, "add", "-A")
    git(project, "commit", "-qm", "closer")
    closer = corpus(project)
    git(project, "checkout", "-q", "main")
    run("dvc", "checkout", cwd=project)
    assert corpus(project) == corpus(finished_project) != closer
    assert choices_are_kept(project) and maximum(project) == 0.9


def test_push_pull_and_gc(project: Path, finished_project: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(project, copy, symlinks=True)
    run("dvc", "remote", "add", "-d", "store", str(tmp_path / "store"), cwd=copy)
    run("dvc", "push", cwd=copy)
    shutil.rmtree(copy / "data")
    shutil.rmtree(copy / ".dvc" / "cache")
    run("dvc", "pull", "publish", cwd=copy)
    assert corpus(copy) == corpus(finished_project)
    work = digests(copy / "work")
    run("dvc", "gc", "--workspace", "--force", cwd=copy)
    assert corpus(copy) == corpus(finished_project) and digests(copy / "work") == work
    assert choices_are_kept(copy)


def test_changed_test_sentences_rerun_select(finished_project: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(finished_project, project)

    def repro() -> list[str]:
        return re.findall("Running stage '(.*?)'", run("dvc", "repro", "publish", cwd=project).stdout)

    held_out = tmp_path / "held-out.txt"
    held_out.write_text("Nobody says this.\n")
    parameters = read_parameters(project)
    parameters["select"]["filters"] = [{"kind": "decontamination", "files": [{"path": str(held_out)}]}]
    write_parameters(project, parameters)
    assert repro() == ["select", "publish"]
    assert repro() == []
    held_out.write_text("Nobody says this.\nNor this.\n")
    assert repro()[0] == "select"
