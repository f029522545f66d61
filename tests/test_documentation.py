"""The commands of README and docs/ run, in order, in a project right after its corpus was rebuilt."""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from paraforge.interface.configuration import Parameters
from tests.documentation import LANGUAGES, PAGES, Block, blocks, merged, write_readers_files
from tests.project import ROOT, copy_code, environment, made_once, run

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
ALL = [block for page in PAGES for block in blocks(page)]


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
    return [one for one in blocks(page) if one.file or (is_run(one) and not one.not_run)]


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
@pytest.mark.parametrize("page", [page for page in PAGES if to_run(page)], ids=lambda page: page.name)
def test_commands_run(page: Path, rebuilt: Path, tmp_path: Path) -> None:
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
def test_blocks_name_their_language_and_hide_no_command(block: Block) -> None:
    assert block.language in LANGUAGES
    if block.language == "text":
        first = block.text.split(maxsplit=1)[0]
        commands = ("paraforge", "dvc", "make", "pip", "python", "import", "from")
        assert first not in commands, "name its language: sh or python"


def test_what_is_not_run_has_a_reason() -> None:
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
