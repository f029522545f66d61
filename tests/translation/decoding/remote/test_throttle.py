"""Additive increase, multiplicative decrease, pauses: with a clock that the test moves."""

from __future__ import annotations

import pytest

from paraforge.translation.decoding.remote.throttle import Throttle


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def rounds(throttle: Throttle, clock: Clock, count: int) -> list[int]:
    """Requests of each round, all of which are answered."""
    sizes = []
    for _ in range(count):
        clock.now += 60
        size = int(throttle.limit)
        for _ in range(size):
            throttle.enter()
        for _ in range(size):
            throttle.succeeded()
        sizes.append(size)
    return sizes


def test_it_doubles_until_the_first_overload_then_adds_one_a_round() -> None:
    clock = Clock()
    throttle = Throttle(1000, clock)
    assert rounds(throttle, clock, 4) == [4, 8, 16, 32]
    clock.now += 1
    begun = [throttle.enter() for _ in range(int(throttle.limit))]
    clock.now += 1
    for one in begun:  # all of a round say the same thing once
        throttle.overloaded(one)
    assert throttle.limit == 32
    assert rounds(throttle, clock, 3) == [32, 32, 33]


def test_it_never_exceeds_the_most_nor_falls_below_one() -> None:
    clock = Clock()
    throttle = Throttle(6, clock)
    assert rounds(throttle, clock, 3) == [4, 6, 6]
    for _ in range(10):
        clock.now += 60
        throttle.overloaded(throttle.enter())
    assert throttle.limit == 1
    assert rounds(throttle, clock, 3) == [1, 2, 2]


@pytest.mark.parametrize(
    ("waits", "least"), [([7.0], 7.0), ([None], 0.25), ([None] * 5, 4.0), ([0.0] * 5, 4.0)]
)
def test_pauses_grow_and_are_as_long_as_the_server_asks(waits: list[float | None], least: float) -> None:
    clock = Clock()
    throttle = Throttle(8, clock)
    for wait in waits:
        clock.now += 100
        throttle.overloaded(throttle.enter(), wait)
    assert least <= throttle._resume_at - clock.now <= max(2 * least, 0.5)


def test_trouble_lasts_until_an_answer() -> None:
    clock = Clock()
    throttle = Throttle(8, clock)
    clock.now += 1000
    assert throttle.trouble_seconds() == 0
    throttle.enter()
    throttle.failed()
    clock.now += 5
    assert throttle.trouble_seconds() == 5
    throttle.enter()
    throttle.succeeded()
    assert throttle.trouble_seconds() == 0
