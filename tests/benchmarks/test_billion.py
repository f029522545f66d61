"""The run that nobody has made, against arithmetic."""

import math
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import billion
from benchmarks.results import ROOT, Measurement, read


@given(st.floats(0, 1e6), st.floats(0, 1e6))
def test_what_two_processes_did_together_is_shared(alone: float, shared: float) -> None:
    cost = billion.cost_of(alone + shared / 2, alone + shared)
    assert cost == pytest.approx((alone, shared), abs=1e-9 + 1e-6 * (alone + shared))
    assert cost.seconds(2) == pytest.approx(alone + shared / 2)


@given(st.floats(0, 1e6), st.floats(0, 1e6))
def test_a_cost_is_never_negative_and_never_more_than_the_processors(seconds: float, cpu: float) -> None:
    cost = billion.cost_of(seconds, cpu)
    assert min(cost) >= 0 and sum(cost) == pytest.approx(cpu)


def _run(place: Path, rows: int, monkeypatch: pytest.MonkeyPatch) -> dict[str, Measurement]:
    shutil.copytree(ROOT / "results", place, ignore=shutil.ignore_patterns("billion.jsonl", "examples"))
    monkeypatch.setenv("PARAFORGE_RESULTS", str(place))
    billion.main(rows, 64, 8, 16, rates="1000", gigabits=1, preemption_hours=math.inf)
    return {str(line.configuration["name"]): line for line in read(place / "billion.jsonl")}


def test_twice_the_rows_take_the_head_twice_as_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = _run(tmp_path / "one", 10**9, monkeypatch)
    two = _run(tmp_path / "two", 2 * 10**9, monkeypatch)
    parts = (*billion.HEAD, "translate, the head's part", "memory", "score")
    assert set(one) == set(two) and {*parts, "embeddings"} <= set(one)
    for name in (*parts, "embeddings"):
        assert two[name].figures["hours"] == pytest.approx(2 * one[name].figures["hours"], rel=1e-4)
    rest = sum(one[name].figures["hours"] for name in parts)
    translated = one["translate, 1,000 sentences/s a device"]
    whole = one["all but models, 1,000 sentences/s a device"].figures["hours"]
    assert whole == pytest.approx(rest + translated.figures["hours"], rel=1e-3)
    trained = one["all, 1,000 sentences/s a device"].figures["hours"] - whole
    assert trained == pytest.approx(one["embeddings"].figures["hours"], rel=1e-2)
    # 64 devices of 1,000 a second, some of them slower, and what is lost at the end.
    ideal = 1e9 / 64e3 / 3600
    assert ideal < translated.figures["hours"] < 1.15 * ideal
    devices = translated.figures["devices_as_long_as_the_rest"]
    assert 1e9 / 1000 / 3600 / devices == pytest.approx(rest, rel=1e-3)
