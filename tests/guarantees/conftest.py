"""The finished project, which all test processes share."""

from pathlib import Path

import pytest

from tests.guarantees.stages import make_finished
from tests.project import made_once


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project after all stages have run. Tests only read or copy it."""
    return made_once(tmp_path_factory, "guarantees", make_finished)
