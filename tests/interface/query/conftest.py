"""Published corpora for the tests of queries."""

import shutil
from pathlib import Path

import pytest

from tests.corpus.selection.published import publish_pairs

STRICTER = {
    "filters": [
        {"kind": "length", "maximum": 8},
        {"kind": "bounds", "score": "paraphrase_score", "minimum": 0.1, "maximum": 1.0},
    ]
}
NOTHING = {"filters": [{"kind": "length", "minimum": 100, "maximum": 200}]}


@pytest.fixture(scope="package")
def projects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Directories ``first``, ``second`` (other filters) and ``empty``: ``corpus`` and ``rejected`` each."""
    roots = {name: tmp_path_factory.mktemp(name) for name in ("first", "second", "empty")}
    publish_pairs(roots["first"])
    publish_pairs(roots["second"], filters=STRICTER)
    publish_pairs(roots["empty"], filters=NOTHING)
    return roots


@pytest.fixture
def corpus(projects: dict[str, Path]) -> Path:
    """The corpus ``first``."""
    return projects["first"] / "corpus"


@pytest.fixture
def own_corpus(projects: dict[str, Path], tmp_path: Path) -> Path:
    """A copy of the corpus ``first`` alone, for a test to spoil."""
    return Path(shutil.copytree(projects["first"] / "corpus", tmp_path / "corpus"))
