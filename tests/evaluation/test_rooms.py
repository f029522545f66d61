"""The evaluation knows no model: it gets whatever embeds or compares sentences."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import paraforge.evaluation

MODELS = ("embeddings", "unrolling", "models", "decoding", "lexicon", "loading")
MODULES = sorted(Path(paraforge.evaluation.__path__[0]).rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    """Names of all modules that a file imports, also inside functions and for types alone."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_the_evaluation_imports_no_model(path: Path) -> None:
    above = tuple(f"paraforge.{name}" for name in MODELS)
    assert [name for name in imported(path) if name.startswith(above)] == []


def test_its_modules_are_found() -> None:
    assert len(MODULES) > 15
    assert "paraforge.evaluation.similarity.comparing.SentenceEmbedder" in {
        name for path in MODULES for name in imported(path)
    }
