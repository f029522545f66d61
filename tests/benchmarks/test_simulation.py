"""The simulated cluster against arithmetic and closed forms."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchmarks.simulation import SimulatedCluster as Cluster
from benchmarks.simulation import expected, simulate
from paraforge.interface.planning.forecast import TASK_SECONDS, Facts, step_seconds


def test_without_failures_it_is_arithmetic() -> None:
    # 10 tasks of 100 sentences at 10 a second, 1 s beside each: 11 s; three workers do four rounds.
    cluster = Cluster(devices=3, rate=10, task_seconds=1, start_seconds=5)
    found = simulate(1000, 100, cluster)
    assert found.hours * 3600 == pytest.approx(5 + 4 * 11)
    assert found.device_hours * 3600 == pytest.approx(3 * 49)
    assert (found.lost_hours, found.interruptions, found.tasks) == (0, 0, 10)
    assert found.task_hours * 3600 == pytest.approx(10)
    assert found.start_hours * 3600 == pytest.approx(15)
    assert found.idle_hours * 3600 == pytest.approx(2 * 11)
    assert found.cost(2.5) == pytest.approx(2.5 * found.device_hours)


def test_the_last_task_is_shorter() -> None:
    cluster = Cluster(devices=1, rate=10, task_seconds=0, start_seconds=0)
    assert simulate(1050, 100, cluster).hours * 3600 == pytest.approx(105)
    assert simulate(0, 100, cluster).tasks == 0


@pytest.mark.parametrize("hours", [0.05, 0.2, 1.0])
def test_a_task_that_begins_anew_takes_what_theory_says(hours: float) -> None:
    """Time to finish work T with failures at rate f and a restart R after each: (1/f + R)(exp(fT) - 1)."""
    task, restart = 60.0, 7.0
    cluster = Cluster(1, 10, 0, restart, preemption_hours=hours, return_seconds=0)
    rate = 1 / (hours * 3600)
    tasks = 2000
    found = expected(tasks * 600, 600, cluster, runs=4)
    # The device may also die while it starts: R itself takes (1/f)(exp(fR) - 1).
    theory = tasks * (1 / rate + (math.exp(rate * restart) - 1) / rate) * (math.exp(rate * task) - 1)
    assert found.hours * 3600 == pytest.approx(theory, rel=0.04)


@given(st.integers(0, 2000), st.integers(1, 300), st.integers(1, 9), st.floats(0.5, 500))
def test_without_failures_it_is_the_forecast(sentences: int, size: int, devices: int, rate: float) -> None:
    cluster = Cluster(devices, rate, TASK_SECONDS, start_seconds=7)
    hours = simulate(sentences, size, cluster).hours if sentences else 0.0
    facts = Facts(0, sentences, 50.0, 1 / rate, 1 / rate, 1 / rate, load_seconds=7, sentences_per_task=size)
    assert step_seconds(facts, 1 / rate, devices, in_process=True) == pytest.approx(hours * 3600)


def test_devices_that_wait_are_taken_away_too() -> None:
    """Twenty devices for ten tasks: those that wait are taken, and paid for only while they are there."""
    cluster = Cluster(20, 20, 1, start_seconds=30, preemption_hours=0.2, return_seconds=60)
    one = expected(50_000, 5000, cluster, runs=100)
    work = 50_000 / 20 / 3600
    parts = one.lost_hours + one.task_hours + one.start_hours + one.idle_hours + work
    assert one.device_hours == pytest.approx(parts, rel=0.01)
    # Each device has a life of 0.2 hours, then 60 seconds of absence: so many ends in so many hours.
    ends = cluster.devices * one.hours / (0.2 + 60 / 3600)
    assert one.interruptions == pytest.approx(ends, rel=0.1)


@given(st.integers(1, 12), st.integers(1, 40), st.floats(0.01, 1), st.floats(0.01, 1), st.integers(1, 999))
@example(6, 23, 0.010006129741668722, 0.010006129741668722, 6)
def test_what_devices_are_paid_for_is_all_accounted_for(
    devices: int, tasks: int, preemption_hours: float, crash_hours: float, seed: int
) -> None:
    """Also if a device is taken away while it starts, is given work while it starts again, or is not ready
    when the run ends."""
    cluster = Cluster(
        devices, 100, 1, 20, preemption_hours=preemption_hours, return_seconds=50, crash_hours=crash_hours
    )
    found = simulate(100 * tasks, 100, cluster, seed)
    parts = [found.lost_hours, found.task_hours, found.start_hours, found.idle_hours, tasks / 3600]
    assert min(parts) >= 0
    assert sum(parts) == pytest.approx(found.device_hours)
