"""Generated pages are up to date, links resolve, and the documented commands run."""

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from paraforge import versions
from paraforge.base.errors import ConfigurationError, page
from paraforge.interface.configuration import Parameters, check_parameters
from tests import documentation
from tests.documentation import LANGUAGES, Block, blocks, merged, write_readers_files
from tests.project import ROOT, copy_code, environment, made_once, run

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "experiments/README.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]


def test_generated_reference_is_up_to_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["generate_docs.py", "--check"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / "scripts" / "generate_docs.py"), run_name="__main__")
    assert ended.value.code == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_resolve(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), target
            assert page.parent.name != "docs" or ".." not in target, f"{target} is not part of the site"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_paths_named_in_pages_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    folders = "pipeline|tests|benchmarks|experiments|scripts|stages|results"
    for name in re.findall(rf"`((?:{folders})/[\w/.]*)`", text):
        assert (ROOT / name).exists(), name
    for name in re.findall(r"\bTABLE=(\w+)", text):
        assert (ROOT / "experiments" / "tables" / f"{name}.yaml").is_file(), name


def test_pages_named_in_errors_exist() -> None:
    assert Path(page("models")) == ROOT / "docs" / "models.md"
    named_page = re.compile(r"""page\(["']([\w-]+)["']\)|\b(?:docs/|[Ss]ee )([\w-]+)\.md""")
    named = {
        name
        for folder in ("pipeline", "stages", "configs")
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in (".py", ".yaml")
        for found in named_page.findall(path.read_text(encoding="utf-8"))
        for name in found
        if name
    }
    assert {"models", "scaling", "query"} <= named
    assert {name for name in named if not (ROOT / "docs" / f"{name}.md").is_file()} == set()


def test_configuration_page_keys_exist() -> None:
    text = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    rows = [line.split("|") for line in text.splitlines() if re.match(r"\| `[a-z]+\.", line)]
    keys = [key for row in rows for key in re.findall(r"`([\w.]+)`", row[1])]
    assert 25 <= len(keys) <= 40
    unknown = []
    for key in keys:
        nested: object = None
        for part in reversed(key.split(".")):
            nested = {part: nested}
        try:
            check_parameters(merged(yaml.safe_load((ROOT / "params.yaml").read_text()), nested), "page")
        except ConfigurationError as error:
            unknown += [key] if "no such parameter" in str(error) else []
    assert unknown == []


def test_site_contains_every_page() -> None:
    pages = {page.name for page in PAGES if page.parent.name == "docs"}
    assert {page.name for page in documentation.PAGES if page.parent.name == "docs"} == pages


@pytest.mark.full
def test_site_builds_without_warnings(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    assert "own bitext" in (tmp_path / "search" / "search_index.json").read_text(encoding="utf-8")


def test_stages_have_file_section_and_version() -> None:
    stages = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]
    for name, stage in stages.items():
        assert stage.get("cmd", stage.get("do", {}).get("cmd", "")).startswith(
            f"python -m paraforge.stages.{name}"
        )
        assert (ROOT / "stages" / f"{name}.py").is_file()
        assert name in Parameters.model_fields
        assert isinstance(getattr(versions, name.upper()), int)


# The sample corpus with fewer pairs, translated by the engine that needs no model, so that enough are kept
# for every command; next to it a small model that is trained for a second, for the commands that want one.
SMALL = [
    "ingest.sources=[{name: sample, format: sample, pairs: 1500}]",
    "translate.engine=fake",
    "paragram=corpus",
    "embeddings.models.word.training.epochs=1",
    "nmt.architecture={encoder_layers: 1, decoder_layers: 1, width: 32, feed_forward: 64, heads: 2}",
    "nmt.training.maximum_updates=20",
    "nmt.training.warmup_updates=5",
    "nmt.training.accumulate=1",
    "nmt.validation.every_updates=10",
    "nmt.validation.held_out=20",
    "nmt.validation.final_beam=4",
    "nmt.vocabulary.size=800",
]
ALL = [block for page in documentation.PAGES for block in blocks(page)]


@pytest.fixture(scope="session")
def rebuilt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project as 'make corpus' leaves it, made once for all processes of the tests."""

    def make(root: Path) -> None:
        copy_code(root)
        shutil.copytree(ROOT / "scripts", root / "scripts")
        shutil.copy(ROOT / "Makefile", root)
        (root / ".venv" / "bin").mkdir(parents=True)
        (root / ".venv" / "bin" / "activate").touch()
        write_readers_files(root)
        run("paraforge", "configure", *SMALL, cwd=root)
        run("dvc", "repro", cwd=root)

    return made_once(tmp_path_factory, "rebuilt", make)


def to_run(page: Path) -> list[Block]:
    """Blocks that are run or written, in order."""
    return [block for block in blocks(page) if block.file or (is_run(block) and not block.not_run)]


def is_run(block: Block) -> bool:
    return block.language in ("sh", "python", "sql") or bool(asked(block))


def asked(block: Block) -> list[str]:
    """The commands of a block that shows what they print, each after ``$``."""
    lines = block.text.splitlines() if block.language == "text" else []
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]


def command_of(block: Block) -> list[str]:
    """What runs a block; a query is read from standard input."""
    if block.language == "python":
        return ["python", "-c", block.text]
    if block.language == "sql":
        return ["paraforge", "query", "data/corpus", "-"]
    return ["bash", "-euo", "pipefail", "-c", "\n".join(asked(block)) or block.text]


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "page", [page for page in documentation.PAGES if to_run(page)], ids=lambda page: page.name
)
def test_documented_commands_run(page: Path, rebuilt: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(rebuilt, project, symlinks=True)
    for block in to_run(page):
        if block.file:
            path = project / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
            continue
        place = f"{page.relative_to(ROOT)}:{block.line}"
        done = subprocess.run(
            command_of(block),
            cwd=project,
            # Pages say where a clone is needed: there 'experiments' can be imported.
            env={
                **environment(),
                "HF_HUB_OFFLINE": "1",
                "HF_HOME": str(tmp_path / "hub"),
                "PYTHONPATH": str(ROOT),
            },
            capture_output=True,
            text=True,
            check=False,
            input=block.text if block.language == "sql" else "",
        )
        assert done.returncode == 0, f"{place}\n{block.text}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"


@pytest.mark.parametrize("block", ALL, ids=lambda block: f"{block.page.name}:{block.line}")
def test_code_blocks_name_their_language(block: Block) -> None:
    assert block.language in LANGUAGES
    if block.language == "text":
        first = block.text.split(maxsplit=1)[0]
        commands = ("paraforge", "dvc", "make", "pip", "python", "import", "from")
        assert first not in commands, "name its language: sh or python"


def test_unrun_blocks_have_a_reason() -> None:
    skipped = [block for block in ALL if block.not_run]
    assert all(len(block.not_run.split()) >= 3 for block in skipped)
    assert all(is_run(block) for block in skipped)
    marks = sum(page.read_text(encoding="utf-8").count("<!-- not run:") for page in PAGES)
    assert marks == len(skipped), "a mark stands on the line before its block"


@pytest.mark.parametrize(
    "block",
    [block for block in ALL if block.language == "yaml" and not block.file],
    ids=lambda block: f"{block.page.name}:{block.line}",
)
def test_excerpts_of_params_are_accepted(block: Block, tmp_path: Path) -> None:
    parameters = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    Parameters.model_validate(merged(parameters, yaml.safe_load(block.text)))
