"""``paraforge init``: new projects, upgrades, and files of users that are kept."""

import configparser
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from paraforge import versions
from paraforge.base.errors import InputError, MissingPackageError, ParaforgeError
from paraforge.interface.cli.annotate import DATABASE
from paraforge.interface.cli.project import init
from paraforge.interface.configuration import load_parameters
from paraforge.interface.project import creation
from paraforge.interface.project.creation import VERSIONS, check_versions, read_versions
from paraforge.stages.common import parameters_of
from tests.here import run_command
from tests.interface.project.bitexts import bitext
from tests.project import ROOT, digests, run


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new project; it is only read or copied."""
    directory = tmp_path_factory.mktemp("projects") / "my"
    run("paraforge", "init", str(directory), cwd=directory.parent)
    return directory


@pytest.fixture
def project(new: Path, tmp_path: Path) -> Path:
    return shutil.copytree(new, tmp_path / "my", symlinks=True)


def test_new_project_matches_clone(new: Path) -> None:
    """Stages and choices are those of the clone, parameters those of the sample except for the name. git and
    DVC accept the project.
    """
    clone = (ROOT / "dvc.yaml").read_text(encoding="utf-8")
    assert (new / "dvc.yaml").read_text(encoding="utf-8") == clone.replace(
        "pipeline/versions.py", "versions.yaml"
    )
    sample = load_parameters(ROOT / "params.yaml")
    named = sample.model_copy(update={"publish": sample.publish.model_copy(update={"name": "my"})})
    assert load_parameters(new / "params.yaml") == named
    assert list(digests(new / "configs")) == ["corpus/my.yaml"]
    assert (new / ".git").is_dir()
    made = ["work/x", "data/corpus/x", "models/nmt", "inputs/nmt/x", str(DATABASE), f"{DATABASE}-wal"]
    settings = [configparser.ConfigParser(interpolation=None) for _ in range(2)]
    for place, one in zip((ROOT, new), settings, strict=True):
        one.read(place / ".dvc" / "config", encoding="utf-8")
    assert settings[0] == settings[1] and not settings[1].getboolean("hydra", "enabled")
    assert run("git", "check-ignore", *made, cwd=new).stdout.splitlines() == made
    untracked = run(
        "git", "ls-files", "--others", "--exclude-standard", "--cached", cwd=new
    ).stdout.splitlines()
    assert {"params.yaml", "inputs/ingest/.gitignore", "data/.gitignore", ".dvcignore"} <= set(untracked)
    assert "everything" not in run("dvc", "status", cwd=new).stderr
    first, *others = (new / "README.md").read_text(encoding="utf-8").splitlines()
    assert first == f"# {new.name}" and len(others) < 10
    assert read_versions(new) is not None


def test_bitext_placeholder_is_accepted_by_configure(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "data" / "raw").mkdir()
    bitext(project / "data" / "raw", "my.cs.gz", "my.en.gz")
    monkeypatch.chdir(project)
    said = run_command("configure", "corpus=my", "translation=small", "select=quality").output
    assert "nmt.training.maximum_updates: 540 -> 6000" in said
    names = (path.name for path in (project / "inputs" / "ingest").glob("0*"))
    assert {name.split("-", 1)[1] for name in names} == {"my.cs.gz", "my.en.gz"}


def test_user_files_are_not_overwritten(tmp_path: Path) -> None:
    for number in range(7):
        (tmp_path / f"thesis{number}.tex").touch()
    before = digests(tmp_path)
    with pytest.raises(InputError, match=r"not empty: it has thesis0\.tex, .*thesis4\.tex and 2 more"):
        run_command("init", tmp_path)
    with pytest.raises(InputError, match="DVC fails in paths with"):
        creation.make_project(tmp_path / "a{b}" / "c")
    with pytest.raises(InputError, match="this is a file"):
        run_command("init", tmp_path / "thesis0.tex")
    assert digests(tmp_path) == before


def test_init_without_dvc_makes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(creation, "importlib", type("None", (), {"util": type("", (), {"find_spec": print})}))
    with pytest.raises(MissingPackageError, match=r"\[pipeline\]"):
        run_command("init", tmp_path / "my")
    assert not (tmp_path / "my").exists()


@pytest.mark.parametrize("place", ["in a repository", pytest.param("no git", marks=pytest.mark.full)])
def test_repository_of_project(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if place == "no git":
        monkeypatch.setattr(creation.shutil, "which", lambda name: None)
    else:
        subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    run_command("init", tmp_path / "my")
    assert not (tmp_path / "my" / ".git").exists()
    assert ("no_scm" in (tmp_path / "my" / ".dvc" / "config").read_text()) == (place == "no git")
    assert run("dvc", "status", cwd=tmp_path / "my").returncode == 0


@pytest.mark.parametrize(
    "arguments", [[], ["my", "--english", "a", "--bitext", "a", "b"], ["my", "--upgrade", "--table", "a"]]
)
def test_conflicting_init_options(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParaforgeError):
        run_command("init", *arguments)
    assert not list(tmp_path.iterdir())
    assert init.__doc__


def test_git_or_dvc_failure_is_error(tmp_path: Path) -> None:
    with pytest.raises(ParaforgeError, match=f"failed in {tmp_path}: no room"):
        creation._run([sys.executable, "-c", "import sys; sys.exit('no room')"], tmp_path)


def test_repository_with_any_name_is_found(tmp_path: Path) -> None:
    for name in ("a ", "b\n", "c\udcff"):
        (tmp_path / name / "below").mkdir(parents=True)
        run("git", "init", "--quiet", cwd=tmp_path / name)
        assert creation._set_up_git(tmp_path / name) == []
        assert creation._set_up_git(tmp_path / name / "below") == ["--subdir"]


def test_project_with_other_steps_stops(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    check_versions()
    monkeypatch.setattr(versions, "SELECT", versions.SELECT + 1)
    with pytest.raises(InputError, match=r"versions\.yaml: written by paraforge .*paraforge init --upgrade"):
        parameters_of("publish")
    assert "paraforge init --upgrade" in run_command("doctor", expect=1).output
    run_command("init", "--upgrade")
    check_versions()
    assert yaml.safe_load(VERSIONS.read_text(encoding="utf-8"))["SELECT"] == versions.SELECT


@pytest.mark.parametrize(
    ("older", "command"),
    [("a step", ["configure"]), ("a file", ["configure", "score=none"]), ("a step", ["plan", "--rate", "1"])],
)
def test_commands_refuse_outdated_project_with_remedy(
    older: str, command: list[str], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    if older == "a file":
        VERSIONS.write_text("paraforge: 0.1.0\n", encoding="utf-8")
    elif older == "a step":
        monkeypatch.setattr(versions, "INGEST", versions.INGEST + 1)
    before = digests(project)
    with pytest.raises(InputError, match=r"versions\.yaml: .*paraforge init --upgrade"):
        run_command(*command)
    assert digests(project) == before
    run_command("init", "--upgrade")
    run_command("configure", "--no-files")
    check_versions()


@pytest.mark.parametrize("content", ["", "[", "a: 1\n", "paraforge: 1\n", "- stages", "\xff"])
def test_damaged_versions_file_is_rewritten(content: str, project: Path) -> None:
    (project / VERSIONS).write_text(content, encoding="latin-1")
    with pytest.raises(InputError, match=r"versions\.yaml: .*paraforge init --upgrade"):
        check_versions(project)
    creation.upgrade_project(project)
    check_versions(project)


@pytest.mark.parametrize("content", [None, "stages: {train: {cmd: python train.py}}\n"])
def test_other_directory_is_not_upgraded(content: str | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "dvc.yaml").write_text(content)
    with pytest.raises(InputError, match="'paraforge init DIR' creates"):
        run_command("init", tmp_path, "--upgrade")
    assert len(list(tmp_path.iterdir())) == (content is not None)


@pytest.mark.parametrize("mine", ["", "# mine\n"])
def test_upgrade_replaces_unchanged_dvc_yaml(
    mine: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only versions change besides, and files that the user deleted stay deleted."""
    wanted = creation.project_files("my")
    for name in ("README.md", "configs/corpus/my.yaml"):
        (project / name).unlink()
    (project / "configs" / "select").mkdir()
    (project / "configs" / "select" / "mine.yaml").write_text("select: {}\n")
    (project / "params.yaml").write_text("mine: 1\n")
    (project / "inputs" / "ingest" / ".gitignore").write_text("# mine\n")
    with (project / "dvc.yaml").open("a", encoding="utf-8") as file:
        file.write(mine)
    before = digests(project)
    older = (project / "dvc.yaml").read_text(encoding="utf-8")
    newer = {**wanted, "dvc.yaml": f"{wanted['dvc.yaml']}# newer\n", "inputs/novel/.gitignore": "*\n"}
    monkeypatch.setattr("paraforge.interface.project.creation.project_files", lambda name: newer)
    for _ in range(2):
        assert creation.upgrade_project(project) == (not mine)
        after = digests(project)
        assert before.keys() - after.keys() == set()
        differing = {name for name in after if before.get(name) != after[name]}
        assert differing == {"dvc.yaml.new" if mine else "dvc.yaml", "inputs/novel/.gitignore", str(VERSIONS)}
        texts = [
            (project / name).read_text(encoding="utf-8")
            for name in ("dvc.yaml", "dvc.yaml.new")[: 1 + bool(mine)]
        ]
        assert texts == ([older, newer["dvc.yaml"]] if mine else [newer["dvc.yaml"]])


def test_project_choices_take_precedence(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    (project / "configs" / "select").mkdir()
    (project / "configs" / "select" / "quality.yaml").write_text("select: {deciles: [overlap_3]}\n")
    (project / "configs" / "select" / "mine.yaml").write_text(
        "defaults: [quality]\nselect: {required: [overlap_3]}\n"
    )
    said = run_command("configure", "--groups").output
    assert "select: distinct, mine, paranmt, quality, " in said
    run_command("configure", "select=mine")
    found = yaml.safe_load((project / "params.yaml").read_text(encoding="utf-8"))["select"]
    assert (found["deciles"], found["required"]) == (["overlap_3"], ["overlap_3"])
    (project / "configs" / "select" / "quality.yaml").unlink()
    run_command("configure", "select=quality")
    found = yaml.safe_load((project / "params.yaml").read_text(encoding="utf-8"))["select"]
    assert found["deciles"] == ["paraphrase_score"]


@pytest.mark.full
@pytest.mark.parametrize("step", [1, 9, -1])
def test_killed_init_or_upgrade_continues(
    new: Path, step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command is killed before each command that it starts and each file that it writes. Running it again
    completes the project.
    """
    steps = 0

    def counted(function: Callable[..., None], last: int) -> Callable[..., None]:
        def call(*arguments: object) -> None:
            nonlocal steps
            if steps == last:
                raise KeyboardInterrupt
            steps += 1
            function(*arguments)

        return call

    real = {name: getattr(creation, name) for name in ("_run", "write_whole", "write_versions")}

    def make(last: int) -> None:
        for name, function in real.items():
            monkeypatch.setattr(creation, name, counted(function, last))
        creation.make_project(tmp_path / "my")

    if step < 0:
        make(1000)
        shutil.rmtree(tmp_path / "my")
        step, steps = steps + step, 0
    with pytest.raises(KeyboardInterrupt):
        make(step)
    steps = 0
    make(1000)

    def made(project: Path) -> dict[str, str]:
        kept = digests(project).items()
        return {name: one for name, one in kept if not name.startswith((".git/", ".dvc/tmp", ".dvc/cache"))}

    assert made(tmp_path / "my") == made(new)
    with pytest.raises(InputError, match="not empty"):
        creation.make_project(tmp_path / "my")
