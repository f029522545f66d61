"""A cluster that translates, event by event: tasks, stragglers, preemptions, crashes, and what they cost."""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

_HOUR = 3600.0


@dataclass(frozen=True)
class Cluster:
    """Devices and what happens to them.

    devices: workers, one per device. rate: sentences per second of an ordinary device.
    task_seconds: what a task costs beside its sentences: sending, reading, an engine that runs empty,
        writing.
    start_seconds: from a device's beginning to its first task: process, model.
    spread: standard deviation of the logarithm of devices' speed.
    slow_share, slow_factor: share of devices that are slower, and how much slower they are.
    preemption_hours: mean time after which a device is taken away; infinite where none is.
    return_seconds: mean time until another takes its place.
    crash_hours: mean time after which a worker's process dies; its device stays.
    """

    devices: int
    rate: float
    task_seconds: float = 0.05
    start_seconds: float = 20.0
    spread: float = 0.0
    slow_share: float = 0.0
    slow_factor: float = 1.0
    preemption_hours: float = math.inf
    return_seconds: float = 120.0
    crash_hours: float = math.inf


@dataclass(frozen=True)
class Outcome:
    """What became of a run; hours of devices, but for ``hours``.

    hours: from the beginning to the last task. device_hours: while devices were there, and are paid for.
    lost_hours: work of tasks that were cut off. task_hours: what tasks cost beside their sentences.
    start_hours: starting processes and loading models.
    idle_hours: devices that were there and had nothing to do. interruptions: preemptions and crashes.
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


def simulate(sentences: int, sentences_per_task: int, cluster: Cluster, seed: int = 1) -> Outcome:
    """Run tasks on a cluster, first come, first served; a task that is cut off begins anew.

    sentences: distinct sentences to translate.
    sentences_per_task: sentences of a task; the last one has the rest.
    cluster: devices and their failures.
    """
    dice = random.Random(seed)
    tasks = math.ceil(sentences / sentences_per_task)
    rest = sentences - (tasks - 1) * sentences_per_task
    # Only the last task is shorter; tasks that come back are whole ones, but for it.
    waiting = [sentences_per_task] * (tasks - 1) + ([rest] if tasks else [])
    waiting.reverse()
    speeds = [_speed(cluster, dice) for _ in range(cluster.devices)]
    began = [0.0] * cluster.devices
    ends = [_life(cluster, dice) for _ in range(cluster.devices)]
    starts = [(0.0, 0.0)] * cluster.devices  # the last of each device
    lost = cost = start = idle = paid = 0.0
    interruptions = done = 0
    # (time, order, device, what): a device that is ready, or that has done a task of this many sentences.
    events: list[tuple[float, int, int, int]] = []
    order = 0
    asleep: dict[int, float] = {}
    finished = 0.0

    def schedule(time: float, device: int, task: int) -> None:
        nonlocal order
        order += 1
        heapq.heappush(events, (time, order, device, task))

    def interrupt(device: int) -> float:
        """The device's life ends; gives the time at which it, or another in its place, begins anew."""
        nonlocal interruptions, paid
        interruptions += 1
        at, preempted = ends[device]
        back = at
        if preempted:
            paid += at - began[device]
            back = at + dice.expovariate(1 / cluster.return_seconds) if cluster.return_seconds else at
            began[device] = back
            speeds[device] = _speed(cluster, dice)
        life, preempted = _life(cluster, dice)
        ends[device] = back + life, preempted
        return back

    def begin(device: int, now: float) -> None:
        nonlocal start
        ready = min(now + cluster.start_seconds, ends[device][0])
        start += ready - now
        starts[device] = (now, ready)
        schedule(ready, device, 0 if ready < ends[device][0] else -1)

    def rouse(device: int, now: float) -> float:
        """When a device that had nothing to do can continue; it may have been replaced while it waited."""
        nonlocal idle, start
        since = asleep.pop(device)
        while ends[device][0] <= now:
            idle += max(0.0, ends[device][0] - since)
            back = interrupt(device)
            since = min(back + cluster.start_seconds, ends[device][0])
            start += max(0.0, min(since, now) - back)
        idle += max(0.0, now - since)
        return max(now, since)

    for device in range(cluster.devices):
        begin(device, 0.0)
    while done < tasks:
        now, _, device, what = heapq.heappop(events)
        if what > 0:  # a task is done
            done += 1
            cost += cluster.task_seconds
            finished = now
        elif what == -1:
            begin(device, interrupt(device))
            continue
        elif what < -1:  # a task was cut off; it waits for whoever is free
            waiting.append(-what - 1)
            begin(device, interrupt(device))
            for sleeper in list(asleep)[:1]:
                schedule(rouse(sleeper, now), sleeper, 0)
            continue
        if not waiting:
            asleep[device] = now
            continue
        size = waiting.pop()
        seconds = size / cluster.rate * speeds[device] + cluster.task_seconds
        if now + seconds <= ends[device][0]:
            schedule(now + seconds, device, size)
        else:
            lost += max(0.0, ends[device][0] - now)
            schedule(max(now, ends[device][0]), device, -size - 1)
    for device in list(asleep):
        rouse(device, finished)
    start -= sum(max(0.0, ready - max(since, finished)) for since, ready in starts)
    paid += sum(max(0.0, finished - since) for since in began)
    return Outcome(
        finished / _HOUR, paid / _HOUR, lost / _HOUR, cost / _HOUR, start / _HOUR, idle / _HOUR,
        interruptions, tasks,
    )  # fmt: skip


def undisturbed_seconds(sentences: int, sentences_per_task: int, cluster: Cluster) -> float:
    """What :func:`simulate` gives where nothing happens and all devices are alike, without the events."""
    tasks = math.ceil(sentences / sentences_per_task)
    if not tasks:
        return 0.0
    whole = sentences_per_task / cluster.rate + cluster.task_seconds
    rest = (sentences - (tasks - 1) * sentences_per_task) / cluster.rate + cluster.task_seconds
    # All but the last task are alike, so that the last one begins when all rounds before it are over.
    rounds, over = divmod(tasks - 1, cluster.devices)
    return cluster.start_seconds + max(rounds * whole + rest, (rounds + (over > 0)) * whole)


def _speed(cluster: Cluster, dice: random.Random) -> float:
    """Seconds of a device for what takes an ordinary one a second; 1 on average but for the slow ones."""
    slow = cluster.slow_factor if dice.random() < cluster.slow_share else 1.0
    return slow * math.exp(dice.gauss(-(cluster.spread**2) / 2, cluster.spread))


def _life(cluster: Cluster, dice: random.Random) -> tuple[float, bool]:
    """Seconds until a device's next failure, and whether that takes the device away."""
    taken = dice.expovariate(1.0) * cluster.preemption_hours * _HOUR
    crashed = dice.expovariate(1.0) * cluster.crash_hours * _HOUR
    return (taken, True) if taken <= crashed else (crashed, False)


def expected(sentences: int, sentences_per_task: int, cluster: Cluster, runs: int = 5) -> Outcome:
    """Mean outcome of several runs with other failures."""
    outcomes = [simulate(sentences, sentences_per_task, cluster, seed) for seed in range(1, runs + 1)]
    return Outcome(*(fmean(values) for values in zip(*(vars(one).values() for one in outcomes), strict=True)))


# Sentences of a task that are compared: from far too few to far too many.
TASK_SIZES = (250, 500, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000, 256_000, 512_000, 1_000_000)
_MOST_TASKS = 100_000
# A simulation takes time and memory for each of them.
MOST_DEVICES = 100_000


def compare_task_sizes(
    sentences: int, cluster: Cluster, sizes: Sequence[int] = TASK_SIZES, runs: int = 3
) -> list[tuple[int, Outcome]]:
    """Outcome of each size of a task.

    Where there would be more than 100,000 tasks, 100,000 of them are simulated and the rest is in proportion.
    Tasks that take longer than a device lives on average are left out.
    """
    found = []
    for size in sizes:
        life = min(cluster.preemption_hours, cluster.crash_hours) * _HOUR
        if size > sentences or size / cluster.rate > life:  # hardly any such task would ever be done
            break
        part = min(1.0, _MOST_TASKS * size / sentences)
        outcome = expected(math.ceil(sentences * part), size, cluster, runs)
        if part < 1:
            outcome = _whole(outcome, part, cluster)
        found.append((size, outcome))
    return found


def _whole(outcome: Outcome, part: float, cluster: Cluster) -> Outcome:
    """A part of a run in proportion, but for the first start of the devices, which is there once."""
    first = cluster.start_seconds / _HOUR
    once = Outcome(first, cluster.devices * first, 0.0, 0.0, cluster.devices * first, 0.0, 0.0, 0.0)
    pairs = zip(vars(outcome).values(), vars(once).values(), strict=True)
    return Outcome(*((value - start) / part + start for value, start in pairs))


def best_task_size(compared: Sequence[tuple[int, Outcome]], tolerance: float = 0.01) -> int:
    """The smallest size whose device hours are within ``tolerance`` of the least: small tasks lose least. The
    smallest of all where devices are too slow for any to be compared."""
    if not compared:
        return TASK_SIZES[0]
    least = min(outcome.device_hours for _, outcome in compared)
    return next(size for size, outcome in compared if outcome.device_hours <= (1 + tolerance) * least)
