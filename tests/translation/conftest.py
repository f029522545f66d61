"""A tiny model for the tests of translation, made once a session."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.translation.tiny import write_ctranslate2, write_tiny_fairseq


@pytest.fixture(scope="session")
def tiny_fairseq(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with checkpoint, dictionaries and SentencePiece model."""
    if importlib.util.find_spec("fairseq") is None:
        pytest.skip("fairseq is not installed")
    return write_tiny_fairseq(tmp_path_factory.mktemp("fairseq"))


@pytest.fixture(scope="session")
def tiny_ctranslate2(tiny_fairseq: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same model for CTranslate2."""
    return write_ctranslate2(tiny_fairseq, tmp_path_factory.mktemp("ctranslate2"))
