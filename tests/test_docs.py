"""The generated pages are up to date, links lead somewhere, and the stages are those that the code has."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import yaml

from paraforge import versions
from paraforge.configuration import Parameters
from tests.project import ROOT, run

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_generated_reference_is_up_to_date() -> None:
    run(sys.executable, "scripts/generate_docs.py", "--check", cwd=ROOT)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_every_stage_has_a_file_a_section_and_a_version() -> None:
    stages = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]
    for name, stage in stages.items():
        assert stage.get("cmd", stage.get("do", {}).get("cmd", "")).startswith(f"python -m stages.{name}")
        assert (ROOT / "stages" / f"{name}.py").is_file()
        assert name in Parameters.model_fields
        assert isinstance(getattr(versions, name.upper()), int)
