"""What translation costs on devices that are taken away at random times: closed forms, by size of a task.

A device lives for an exponential time: where f devices a second are taken away, a task of T seconds is done
after (exp(fT) - 1)/f seconds of work. ``benchmarks.simulation`` has the same event by event.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_HOUR = 3600.0
# Sentences of a task that are compared: from far too few to far too many.
TASK_SIZES = (250, 500, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000, 256_000, 512_000, 1_000_000)
MOST_DEVICES = 100_000


@dataclass(frozen=True)
class Cluster:
    """Devices and what happens to them.

    devices: workers, one per device. rate: sentences per second of an ordinary device.
    task_seconds: what a task costs beside its sentences: sending, reading, an engine that runs empty,
        writing.
    start_seconds: from a device's beginning to its first task: process, model.
    slow_share, slow_factor: share of devices that are slower, and how much slower they are.
    preemption_hours: mean time after which a device is taken away; infinite where none is.
    return_seconds: mean time until another takes its place.
    """

    devices: int
    rate: float
    task_seconds: float = 0.05
    start_seconds: float = 20.0
    slow_share: float = 0.0
    slow_factor: float = 1.0
    preemption_hours: float = math.inf
    return_seconds: float = 120.0


@dataclass(frozen=True)
class Outcome:
    """What becomes of a run; hours of devices, but for ``hours``.

    hours: from the beginning to the last task. device_hours: while devices are there, and are paid for.
    lost_hours: work of tasks that are cut off. task_hours: what tasks cost beside their sentences.
    start_hours: starting processes and loading models.
    idle_hours: devices that are there and have nothing to do. interruptions: devices that are taken away.
    tasks: tasks done.
    """

    hours: float
    device_hours: float
    lost_hours: float
    task_hours: float
    start_hours: float
    idle_hours: float
    interruptions: float
    tasks: float

    def cost(self, price: float) -> float:
        """Price of the device hours, at ``price`` an hour of a device."""
        return self.device_hours * price


def expected(sentences: int, sentences_per_task: int, cluster: Cluster) -> Outcome:
    """The mean outcome of a run; a task that is cut off begins anew.

    sentences: distinct sentences to translate, at least 1. sentences_per_task: of a task.
    """
    ends = 1 / (cluster.preemption_hours * _HOUR)  # a second and device; 0 where none is taken away
    absent = 1 + ends * cluster.return_seconds  # seconds on the clock for each that a device is there
    tasks = sentences / sentences_per_task
    started = math.exp(-ends * cluster.start_seconds)  # share of devices that live to their first task
    task = sentences_per_task / cluster.rate
    done = lost = 0.0  # tasks, and seconds of work that is cut off, per second of a device's life
    for share, factor in ((1 - cluster.slow_share, 1.0), (cluster.slow_share, cluster.slow_factor)):
        seconds = task * factor + cluster.task_seconds
        whole = _seconds_until(seconds, ends)
        done += share * started / whole
        lost += share * started * (1 - seconds / whole)
    busy = tasks / done
    first = cluster.devices * _seconds_until(cluster.start_seconds, ends)
    idle = cluster.devices * _last_tasks(tasks, task, busy / cluster.devices, 1 / done, ends, cluster)
    paid = busy + first + idle
    return Outcome(
        hours=paid * absent / cluster.devices / _HOUR,
        device_hours=paid / _HOUR,
        lost_hours=busy * lost / _HOUR,
        task_hours=tasks * cluster.task_seconds / _HOUR,
        start_hours=(first + busy * (1 - started)) / _HOUR,
        idle_hours=idle / _HOUR,
        interruptions=paid * ends,
        tasks=math.ceil(tasks),
    )


def _last_tasks(tasks: float, task: float, busy: float, mean: float, ends: float, cluster: Cluster) -> float:
    """Seconds that a device waits on average until the last task is done.

    tasks, task: number, and seconds of one. busy: of a device. mean: of a task that may begin anew.
    """
    running = min(cluster.devices, math.ceil(tasks))
    # The last tasks end one after the other; where there are fewer tasks than devices, with the slowest.
    in_turn = mean * (cluster.devices - 1) / (cluster.devices + 1) / 2
    slow = 1 - (1 - cluster.slow_share) ** running
    alone = task * (1 + slow * (cluster.slow_factor - 1)) + cluster.task_seconds - busy
    # Others are cut off meanwhile: the latest of a random number of such moments within a task.
    cuts = (running - 1) * ends * task
    return max(in_turn, alone) + (task * (1 + math.expm1(-cuts) / cuts) if cuts else 0.0)


def _seconds_until(seconds: float, ends: float) -> float:
    """Mean seconds until that many have passed without an end, at ``ends`` a second."""
    return math.expm1(ends * seconds) / ends if ends else seconds


def undisturbed_seconds(sentences: int, sentences_per_task: int, cluster: Cluster) -> float:
    """Seconds on the clock where nothing happens and all devices are alike, exactly."""
    tasks = math.ceil(sentences / sentences_per_task)
    if not tasks:
        return 0.0
    whole = sentences_per_task / cluster.rate + cluster.task_seconds
    rest = (sentences - (tasks - 1) * sentences_per_task) / cluster.rate + cluster.task_seconds
    # All but the last task are alike, so that the last one begins when all rounds before it are over.
    rounds, over = divmod(tasks - 1, cluster.devices)
    return cluster.start_seconds + max(rounds * whole + rest, (rounds + (over > 0)) * whole)


def compare_task_sizes(
    sentences: int, cluster: Cluster, sizes: Sequence[int] = TASK_SIZES
) -> list[tuple[int, Outcome]]:
    """Outcome of each size of a task. Tasks that take longer than a device lives on average are left out."""
    longest = cluster.preemption_hours * _HOUR  # hardly any longer task would ever be done
    possible = [size for size in sizes if size <= sentences and size / cluster.rate <= longest]
    return [(size, expected(sentences, size, cluster)) for size in possible]


def best_task_size(compared: Sequence[tuple[int, Outcome]], tolerance: float = 0.01) -> int:
    """The smallest size whose device hours are within ``tolerance`` of the least: small tasks lose least. The
    smallest of all where devices are too slow for any to be compared."""
    if not compared:
        return TASK_SIZES[0]
    least = min(outcome.device_hours for _, outcome in compared)
    return next(size for size, outcome in compared if outcome.device_hours <= (1 + tolerance) * least)
