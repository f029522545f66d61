"""The simulated cluster against arithmetic and closed forms."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraforge.interface.planning.simulation import (
    TASK_SIZES,
    Cluster,
    best_task_size,
    compare_task_sizes,
    expected,
    simulate,
    undisturbed_seconds,
)


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


def test_hours_add_up() -> None:
    cluster = Cluster(8, 50, 0.2, 30, preemption_hours=0.5, return_seconds=200, crash_hours=2)
    found = simulate(3_000_000, 4000, cluster, seed=4)
    work = found.device_hours - found.lost_hours - found.task_hours - found.start_hours - found.idle_hours
    # What is left is translation.
    assert work == pytest.approx(3_000_000 / 50 / 3600, rel=0.005)
    assert found.interruptions > 30


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


def test_lost_work_grows_with_the_task_and_overhead_shrinks() -> None:
    cluster = Cluster(64, 100, 0.2, 20, preemption_hours=1.0)
    compared = compare_task_sizes(51_400_000, cluster, (500, 4000, 32_000), runs=1)
    lost = [one.lost_hours for _, one in compared]
    overhead = [one.task_hours for _, one in compared]
    assert lost == sorted(lost) and overhead == sorted(overhead, reverse=True)
    # On average half of a task is lost with each preemption.
    _, middle = compared[1]
    assert middle.lost_hours * 3600 == pytest.approx(middle.interruptions * 20, rel=0.15)


def test_the_best_size_follows_young(capsys: pytest.CaptureFixture[str]) -> None:
    """Young's rule: with a cost c for each task and a mean life M, the best task takes sqrt(2 c M)."""
    cluster = Cluster(8, 100, 0.5, 0, preemption_hours=1.0, return_seconds=0)
    sizes = tuple(500 * 2**power for power in range(9))
    best = best_task_size(compare_task_sizes(20_000_000, cluster, sizes, runs=2), tolerance=0.0)
    assert math.sqrt(2 * 0.5 * 3600) * 100 / 2.1 <= best <= math.sqrt(2 * 0.5 * 3600) * 100 * 2.1


def test_large_corpora_are_simulated_in_part() -> None:
    cluster = Cluster(100, 1000, 0.1, 0)
    ((_, whole),) = compare_task_sizes(10**9, cluster, (500,), runs=1)
    assert whole.device_hours == pytest.approx(10**9 / 500 * 0.6 / 3600, rel=0.01)
    assert compare_task_sizes(10**6, Cluster(1, 1, preemption_hours=0.5), (1000, 4000), runs=1)[-1][0] == 1000


@given(st.integers(0, 2000), st.integers(1, 300), st.integers(1, 9), st.floats(0.5, 500), st.floats(0, 3))
def test_without_failures_there_is_a_formula(
    sentences: int, size: int, devices: int, rate: float, task_seconds: float
) -> None:
    cluster = Cluster(devices, rate, task_seconds, start_seconds=7)
    hours = simulate(sentences, size, cluster).hours
    assert undisturbed_seconds(sentences, size, cluster) == pytest.approx(hours * 3600)


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


@pytest.mark.parametrize("sentences", [1, 249, 10**9])
@pytest.mark.parametrize("rate", [0.001, 0.02, 1.0, 7000.0])
def test_there_is_a_best_size_for_every_corpus_and_rate(sentences: int, rate: float) -> None:
    cluster = Cluster(1, rate, preemption_hours=3.0)
    assert best_task_size(compare_task_sizes(sentences, cluster, TASK_SIZES[:2], runs=1)) in TASK_SIZES


@given(st.integers(1, 12), st.integers(1, 40), st.floats(0.01, 1), st.floats(0.01, 1), st.integers(1, 9))
def test_what_devices_are_paid_for_is_all_accounted_for(
    devices: int, tasks: int, preemption_hours: float, crash_hours: float, seed: int
) -> None:
    """Also where they are taken away while they start, and where the run ends before they are ready."""
    cluster = Cluster(
        devices, 100, 1, 20, preemption_hours=preemption_hours, return_seconds=50, crash_hours=crash_hours
    )
    found = simulate(100 * tasks, 100, cluster, seed)
    parts = [found.lost_hours, found.task_hours, found.start_hours, found.idle_hours, tasks / 3600]
    assert min(parts) >= 0
    assert sum(parts) == pytest.approx(found.device_hours)
