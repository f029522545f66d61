"""What tests of products share."""

from pathlib import Path

import pytest

from tests.products.triplets.corpora import publish


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A published corpus of pairs that triplets are mined in."""
    return publish(tmp_path_factory.mktemp("corpus"))
