"""A step whose output changes needs a new version."""

import copy
import json
from typing import Any

import pytest

from paraforge import versions
from tests.golden import GOLDEN, changes, current, made_otherwise

BEFORE: dict[str, dict[str, Any]] = json.loads(GOLDEN.read_text(encoding="utf-8"))


def test_corpus_outputs_match_step_versions() -> None:
    """These stages train nothing, so `make test` also notices a changed formula."""
    assert changes(current("publish"), BEFORE) == []


@pytest.mark.full
@pytest.mark.timeout(600)
def test_outputs_match_step_versions() -> None:
    now = current()
    assert changes(now, BEFORE) == []
    if made_otherwise(now["nmt"], BEFORE["nmt"]):
        libraries = [stages["nmt"]["libraries"] for stages in (BEFORE, now)]
        pytest.skip("nmt is not compared: {} trained what is known, {} this".format(*libraries))


def test_step_versions_have_golden_output() -> None:
    names = {name.lower() for name in vars(versions) if name.isupper()}
    # No stage trains decoders: see pipeline/papers.
    assert BEFORE.keys() == names - {"decoders"}, "run 'python -m tests.golden'"


@pytest.mark.parametrize("stage", BEFORE)
def test_unversioned_change_is_detected(stage: str) -> None:
    now = copy.deepcopy(BEFORE)
    name, output = next(iter(now[stage]["outputs"].items()))
    if output["floats"]:
        values = next(iter(output["floats"].values()))
        values[1] = 1.01 * values[1] + 0.1
    else:
        output["exact"] = "0" * 64
    assert any(line.startswith(f"{stage} ") and "raise" in line for line in changes(now, BEFORE)), name
    now[stage]["version"] += 1
    assert not any("raise" in line for line in changes(now, BEFORE) if line.startswith(f"{stage} "))
    now[stage] |= {"libraries": {"torch": "0"}, "version": BEFORE[stage]["version"]}
    assert not changes(now, BEFORE)
