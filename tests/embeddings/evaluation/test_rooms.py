"""The evaluation knows no model: it gets whatever embeds or compares sentences."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import paraforge.embeddings.evaluation

MODELS = (
    *(
        f"embeddings.{room}"
        for room in ("encoders", "losses", "trainer", "inference", "fine_tuning", "unrolling")
    ),
    *("translation", "products", "interface"),
)
MODULES = sorted(Path(paraforge.embeddings.evaluation.__path__[0]).rglob("*.py"))


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
    assert "paraforge.embeddings.evaluation.similarity.comparing.SentenceEmbedder" in {
        name for path in MODULES for name in imported(path)
    }


def test_sentence_pairs_are_evaluated_without_torch(tmp_path: Path) -> None:
    """It takes seconds to import, and neither word vectors nor baselines need it."""
    (tmp_path / "set.tsv").write_text("5\ta dog\ta dog\n0\ta cat\ta dog\n2\ta cat\tdog\n")
    code = (
        "import sys; from paraforge.interface.cli import app; "
        f"app(['evaluate', 'jaccard', '--sts', {str(tmp_path)!r}], standalone_mode=False); "
        "print('torch' in sys.modules, 'sklearn' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False False"
