"""The rate is what a clock says, and the interval holds it as often as it should."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest

from paraforge.interface.planning.measurement import Rate, estimate, measure
from paraforge.translation.decoding.translator import Hypotheses, make_hypothesis
from paraforge.translation.stage.population import survey
from tests.translation.stage.test_population import write_corpus


class Clock:
    """Seconds that pass only when something works."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Engine:
    """Takes a second for every hundred bytes, a little at random."""

    def __init__(self, noise: float = 0.0) -> None:
        self.clock, self._noise, self._dice = Clock(), noise, np.random.default_rng(5)
        self.calls: list[int] = []

    def seconds(self, block: list[str]) -> float:
        return sum(map(len, block)) / 100 * (1 + self._noise * self._dice.standard_normal())

    def translate(self, sentences: Iterable[str]) -> Iterator[Hypotheses]:
        block = list(sentences)
        self.calls.append(len(block))
        self.clock.now += self.seconds(block)
        for sentence in block:
            yield Hypotheses((make_hypothesis(sentence, -1.0, sentence.split(), True),))


def measured(
    place: Path,
    sentences: list[str],
    engine: Engine,
    load_seconds: float = 0,
    sentences_per_task: int = 4000,
    **options: float,
) -> Rate:
    """What is measured of these sentences, with an engine that takes some time to load."""

    def load() -> Engine:
        engine.clock.now += load_seconds
        return engine

    population = survey(write_corpus(place / "in", sentences, rows=1000))
    return measure(load, population, sentences_per_task=sentences_per_task, clock=engine.clock, **options)


LONG = [f"{number} {'y' * 80}" for number in range(600)]


def test_the_rate_of_the_whole_is_found_from_a_sample(tmp_path: Path) -> None:
    dice = np.random.default_rng(3)
    sentences = [f"{'x' * int(dice.lognormal(3.5, 0.8))} {number}" for number in range(4000)]
    engine = Engine()
    found = measured(tmp_path, sentences, engine, 7, 200, seconds=60, precision=0.02)
    whole = sum(map(len, sentences)) / 100
    assert found.load_seconds == 7
    assert found.seconds * len(sentences) == pytest.approx(whole, rel=0.03)
    assert found.low < found.seconds < found.high
    assert max(engine.calls) <= 200


def test_time_is_kept_and_blocks_fit_it(tmp_path: Path) -> None:
    engine = Engine(noise=0.5)
    measured(tmp_path, LONG, engine, seconds=500, precision=0.001)
    assert engine.clock.now < 700
    assert engine.calls[0] == 64  # six seconds would be fewer


def test_a_late_sample_still_has_an_interval(tmp_path: Path) -> None:
    engine = Engine(noise=0.5)
    found = measured(tmp_path, LONG, engine, seconds=1)
    assert len(engine.calls) == 3 and 0 < found.seconds < found.high < float("inf")


@pytest.mark.parametrize("sentences", [2, 40, 400, 4000])
def test_measuring_takes_hardly_longer_than_the_work(sentences: int, tmp_path: Path) -> None:
    engine = Engine(noise=0.9)
    texts = [f"{number} {'y' * 9}" for number in range(sentences)]
    measured(tmp_path, texts, engine, sentences_per_task=100, seconds=9999, precision=1e-9)
    # Six blocks, which have all sentences where there are fewer than in a block.
    assert sum(engine.calls) <= max(sentences + 100, 6 * sentences) + 64


def test_a_device_that_is_slow_to_start_is_measured_with_long_blocks(tmp_path: Path) -> None:
    """A second for each call and 5,000 sentences a second: 32 sentences say nothing of 4,000."""

    class Large(Engine):
        def seconds(self, block: list[str]) -> float:
            return 1 + len(block) / 5000

    texts = [f"sentence {number}" for number in range(5000)]
    found = measured(tmp_path, texts, Large(), seconds=90, precision=0.01)
    assert found.sentences == 5 * 4000
    assert found.seconds == pytest.approx(1 / 4000 + 1 / 5000)


def test_the_first_block_is_not_counted(tmp_path: Path) -> None:
    """It fills caches, or opens a connection: here it takes 1,000 seconds more, and every other one 6.4."""

    class Cold(Engine):
        def seconds(self, block: list[str]) -> float:
            return super().seconds(block) + (1000 if len(self.calls) == 1 else 0)

    found = measured(tmp_path, [f"{number:010}" for number in range(900)], Cold(), seconds=9999)
    assert found.seconds == pytest.approx(0.1)
    assert found.high == pytest.approx(0.1)


@pytest.mark.parametrize("blocks", [2, 5, 12])
def test_the_interval_holds_the_truth_nineteen_times_in_twenty(blocks: int) -> None:
    dice = np.random.default_rng(11)
    held = 0
    for _ in range(150):
        rate = estimate(list(dice.normal(6.0, 0.6, blocks)), 100)
        held += rate.low <= 0.06 <= rate.high
    assert held / 150 == pytest.approx(0.95, abs=0.05)


def test_the_interval_is_that_of_students_t() -> None:
    # By hand: mean 2, deviation 1, and Student's t is 4.3027 for two degrees of freedom.
    few = estimate([1.9, 2.0, 2.1], 2)
    assert (few.seconds, few.high - few.seconds) == pytest.approx((1, 0.1 * 4.3027 / 3**0.5 / 2), rel=1e-4)


def test_one_block_says_nothing_of_the_spread() -> None:
    rate = estimate([3.0], 100)
    assert (rate.seconds, rate.low) == (0.03, 0.0)
    assert rate.high == float("inf")
