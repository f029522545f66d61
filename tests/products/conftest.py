"""Fixtures for the tests of products."""

from pathlib import Path

import pytest

from tests.corpus.selection.published import publish_pairs
from tests.products.triplets.corpora import publish


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A published corpus of pairs that triplets are mined in."""
    return publish(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the published corpus of 400 rows that paraphrasers are trained on."""
    root = tmp_path_factory.mktemp("published")
    publish_pairs(root, rows=400)
    return root
