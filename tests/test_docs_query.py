"""Every recipe of docs/query.md is run against a small published corpus."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from paraforge.cli import app
from tests.selection.published import publish_pairs

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "query.md"
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
PACKAGES = {
    "pandas": "pandas",
    "duckdb": "duckdb",
    "polars": "polars",
    "dask": "dask.dataframe",
    "datasets": "datasets",
}


def blocks(language: str) -> list[str]:
    return [text for name, text in BLOCKS if name == language]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory with ``data/corpus`` and ``yesterday/corpus``."""
    root = tmp_path_factory.mktemp("project")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        patch.setenv("HF_HOME", str(root / "huggingface"))
        patch.setenv("HF_HUB_OFFLINE", "1")
        publish_pairs(root / "data", rows=600)
        publish_pairs(root / "yesterday", rows=600, filters={"filters": [{"kind": "length", "maximum": 9}]})
        patch.chdir(root)
        yield root


def test_there_are_recipes() -> None:
    assert len(blocks("python")) == 6 and len(blocks("sql")) == 4 and len(blocks("")) == 3


@pytest.mark.parametrize("recipe", blocks("python"), ids=lambda text: text.split()[1].partition(".")[0])
def test_recipes(project: Path, recipe: str, capsys: pytest.CaptureFixture[str]) -> None:
    for word, package in PACKAGES.items():
        used = re.search(rf"^(import|from) {word}\b", recipe, re.MULTILINE)
        if used and importlib.util.find_spec(package.partition(".")[0]) is None:
            pytest.skip(f"{package} is not installed")
    exec(compile(recipe, str(DOCUMENT), "exec"), {"__name__": "recipe"})
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("query", blocks("sql"))
def test_queries(project: Path, query: str) -> None:
    result = CliRunner().invoke(app, ["query", "data/corpus", "-", "-f", "json"], input=query)
    assert result.exit_code == 0, result.exception
    rows = json.loads(result.stdout)
    assert rows or "SEMI JOIN" in query


@pytest.mark.parametrize(
    "command", [line for block in blocks("") for line in block.splitlines()], ids=lambda line: line[:30]
)
def test_commands(project: Path, command: str) -> None:
    name, *arguments = shlex.split(command)
    assert name == "paraforge"
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.exception
    assert result.stdout.strip()
