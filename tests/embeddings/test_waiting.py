"""Idle threads of a training sleep."""

import os
import subprocess
import sys

import pytest

SHOW = """
import os, sys
import paraforge.interface.cli.embeddings, paraforge.stages
assert "torch" not in sys.modules
import paraforge.embeddings
assert "torch" not in sys.modules  # which reads the variable when it is imported
print(os.environ["OMP_WAIT_POLICY"])
"""


@pytest.mark.parametrize(("given", "expected"), [(None, "passive"), ("active", "active")])
def test_idle_threads_sleep(given: str | None, expected: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    if given is not None:
        environment["OMP_WAIT_POLICY"] = given
    done = subprocess.run(
        [sys.executable, "-c", SHOW], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == expected
