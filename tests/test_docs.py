"""The generated pages are up to date, links lead somewhere, and the stages are those that the code has."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from paraforge import versions
from paraforge.base.documentation import page
from paraforge.base.errors import ConfigurationError
from paraforge.interface.configuration import Parameters, check_parameters
from tests import documentation
from tests.project import ROOT

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "experiments/README.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]


def test_the_generated_reference_is_up_to_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["generate_docs.py", "--check"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / "scripts" / "generate_docs.py"), run_name="__main__")
    assert ended.value.code == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_paths_that_pages_name_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    folders = "pipeline|tests|benchmarks|experiments|scripts|stages|results"
    for name in re.findall(rf"`((?:{folders})/[\w/.]*)`", text):
        assert (ROOT / name).exists(), name
    for name in re.findall(r"\bTABLE=(\w+)", text):
        assert (ROOT / "experiments" / "tables" / f"{name}.yaml").is_file(), name


def test_a_page_is_found_where_errors_say_it_is() -> None:
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


def test_keys_of_the_configuration_page_exist() -> None:
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
            check_parameters(
                documentation.merged(yaml.safe_load((ROOT / "params.yaml").read_text()), nested), "page"
            )
        except ConfigurationError as error:
            unknown += [key] if "no such parameter" in str(error) else []
    assert unknown == []


def test_every_page_is_in_the_site() -> None:
    pages = {page.name for page in PAGES if page.parent.name == "docs"}
    assert {page.name for page in documentation.PAGES if page.parent.name == "docs"} == pages


@pytest.mark.full
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    assert "own bitext" in (tmp_path / "search" / "search_index.json").read_text(encoding="utf-8")


def test_every_stage_has_a_file_a_section_and_a_version() -> None:
    stages = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]
    for name, stage in stages.items():
        assert stage.get("cmd", stage.get("do", {}).get("cmd", "")).startswith(
            f"python -m paraforge.stages.{name}"
        )
        assert (ROOT / "stages" / f"{name}.py").is_file()
        assert name in Parameters.model_fields
        assert isinstance(getattr(versions, name.upper()), int)
