"""Closed forms of what preemptions cost, against the simulation and arithmetic."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.simulation import SimulatedCluster
from benchmarks.simulation import expected as simulated
from paraforge.interface.planning.preemption import (
    TASK_SIZES,
    Cluster,
    best_task_size,
    compare_task_sizes,
    expected,
)


@pytest.mark.parametrize(
    ("devices", "rate", "sentences", "life", "size", "within"),
    [
        (1, 100, 300_000, 0.2, 4000, 0.04),
        (8, 50, 3_000_000, 0.2, 4000, 0.02),
        (8, 50, 3_000_000, 0.2, 32_000, 0.05),
        (8, 50, 3_000_000, 3.0, 32_000, 0.03),
        (64, 100, 5_140_000, 1.0, 4000, 0.03),
        (100, 1000, 10_000_000, 1.0, 4000, 0.03),
        # Few tasks for each device, or fewer than devices.
        (64, 100, 5_140_000, 1.0, 32_000, 0.15),
        (64, 100, 5_140_000, 3.0, 256_000, 0.2),
        (20, 20, 50_000, 1.0, 4000, 0.15),
        (4, 10, 5000, 3.0, 4000, 0.15),
    ],
)
def test_agrees_with_the_simulation(
    devices: int, rate: float, sentences: int, life: float, size: int, within: float
) -> None:
    common = {
        "task_seconds": 0.06, "start_seconds": 24.0, "slow_share": 0.05, "slow_factor": 1.2,
        "preemption_hours": life, "return_seconds": 120.0,
    }  # fmt: skip
    found = expected(sentences, size, Cluster(devices, rate, **common))
    model = SimulatedCluster(devices, rate, **common, spread=0.02)
    seen = simulated(sentences, size, model, runs=min(60, 10 + 30_000 * size // sentences))
    assert found.tasks == seen.tasks
    assert found.device_hours == pytest.approx(seen.device_hours, rel=within)
    assert found.hours == pytest.approx(seen.hours, rel=within + 0.02)
    for part in ("lost_hours", "task_hours", "start_hours", "idle_hours"):
        here, there = getattr(found, part), getattr(seen, part)
        assert here == pytest.approx(there, abs=2 * within * seen.device_hours), part


@given(
    st.integers(1, 300),
    st.floats(0.5, 10_000),
    st.floats(0, 3),
    st.floats(0, 100),
    st.sampled_from([0.05, 0.5, 3.0, math.inf]),
    st.integers(1, 100),
    st.floats(0, 1),
)
def test_what_devices_are_paid_for_is_all_accounted_for(
    devices: int, rate: float, task: float, start: float, life: float, tasks: int, share: float
) -> None:
    """Translation is what is left; it takes longer on slow devices, and at most 1.5 times as long."""
    cluster = Cluster(devices, rate, task, start, share, 1.5, life, 50)
    size = math.ceil(rate * min(life, 1.0) * 1800)  # half of a life
    found = expected(tasks * size, size, cluster)
    rest = (
        found.device_hours - found.lost_hours - found.task_hours - found.start_hours - found.idle_hours
    ) / (tasks * size / rate / 3600)
    assert 1 - 1e-6 <= rest <= 1.5 + 1e-6
    assert min(vars(found).values()) >= 0
    assert found.cost(2.5) == 2.5 * found.device_hours


@pytest.mark.parametrize("hours", [0.05, 0.2, 1.0])
def test_a_task_that_begins_anew_takes_what_theory_says(hours: float) -> None:
    """Time to finish work T with failures at rate f and a restart R after each: (1/f + R)(exp(fT) - 1)."""
    cluster = Cluster(1, 10, 0, 7, preemption_hours=hours, return_seconds=0)
    rate, tasks = 1 / (hours * 3600), 100_000
    # The device may also die while it starts: R itself takes (1/f)(exp(fR) - 1).
    theory = tasks * (1 / rate + (math.exp(rate * 7) - 1) / rate) * (math.exp(rate * 60) - 1)
    assert expected(tasks * 600, 600, cluster).hours * 3600 == pytest.approx(theory, rel=1e-4)


def test_without_preemptions_it_is_arithmetic() -> None:
    # 1000 tasks of 100 sentences at 10 a second, 1 s beside each: 11 s; the first begins after 5 s.
    found = expected(100_000, 100, Cluster(1, 10, task_seconds=1, start_seconds=5))
    assert found.hours * 3600 == pytest.approx(5 + 1000 * 11)
    assert (found.lost_hours, found.interruptions, found.idle_hours) == (0, 0, 0)


def test_lost_work_grows_with_the_task_and_overhead_shrinks() -> None:
    cluster = Cluster(64, 100, 0.2, 20, preemption_hours=1.0)
    compared = compare_task_sizes(51_400_000, cluster, (500, 4000, 32_000))
    lost = [one.lost_hours for _, one in compared]
    overhead = [one.task_hours for _, one in compared]
    assert lost == sorted(lost) and overhead == sorted(overhead, reverse=True)
    # On average half of a task is lost with each preemption.
    _, middle = compared[1]
    assert middle.lost_hours * 3600 == pytest.approx(middle.interruptions * 20, rel=0.15)


def test_the_best_size_follows_young() -> None:
    """Young's rule: with a cost c for each task and a mean life M, the best task takes sqrt(2 c M)."""
    cluster = Cluster(8, 100, 0.5, 0, preemption_hours=1.0, return_seconds=0)
    sizes = tuple(500 * 2**power for power in range(9))
    best = best_task_size(compare_task_sizes(20_000_000, cluster, sizes), tolerance=0.0)
    assert math.sqrt(2 * 0.5 * 3600) * 100 / 2.1 <= best <= math.sqrt(2 * 0.5 * 3600) * 100 * 2.1


def test_tasks_longer_than_a_life_are_left_out() -> None:
    assert compare_task_sizes(10**6, Cluster(1, 1, preemption_hours=0.5), (1000, 4000))[-1][0] == 1000


@pytest.mark.parametrize("sentences", [1, 249, 10**9])
@pytest.mark.parametrize("rate", [0.001, 0.02, 1.0, 7000.0])
def test_there_is_a_best_size_for_every_corpus_and_rate(sentences: int, rate: float) -> None:
    cluster = Cluster(1, rate, preemption_hours=3.0)
    assert best_task_size(compare_task_sizes(sentences, cluster)) in TASK_SIZES
