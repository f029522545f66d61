"""From a measured rate to hours, cost, disk and memory of the whole, by number of devices, and tokens."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from paraforge.translation.decoding.translator import Usage
from paraforge.translation.engines.server import Server, estimated_tokens
from paraforge.translation.stage.population import Population

_MILLION = 1e6


@dataclass(frozen=True)
class Tokens:
    """Tokens of a sentence on average, prompt and answers, and prices of a million of either.

    counted: whether the server counted them, on a sample; else they are estimated from the texts.
    """

    input: float
    output: float
    counted: bool
    input_price: float | None = None
    output_price: float | None = None

    def cost(self, sentences: int) -> float | None:
        """Price of this many sentences; None where no price is known."""
        if self.input_price is None and self.output_price is None:
            return None
        each = self.input * (self.input_price or 0) + self.output * (self.output_price or 0)
        return sentences * each / _MILLION

    def described(self, sentences: int) -> dict[str, Any]:
        """As JSON values, for this many sentences."""
        return {
            "input_tokens": round(self.input * sentences),
            "output_tokens": round(self.output * sentences),
            "counted": self.counted,
            "cost": self.cost(sentences),
        }


def tokens_of(
    server: Server,
    population: Population,
    nbest: int,
    sample: tuple[Usage, int] | None,
    prices: tuple[float | None, float | None],
) -> Tokens:
    """Tokens of a sentence: of the sample's, if the server counted them, else an estimate from the texts.

    server: settings of the engine. population: what is to be translated.
    nbest: hypotheses kept of a sentence.
    sample: what the server counted, and for how many sentences; None without a sample.
    prices: of a million input and output tokens, where they are known.
    """
    if sample is not None and sample[0].input_tokens:
        usage, sentences = sample
        return Tokens(usage.input_tokens / sentences, usage.output_tokens / sentences, True, *prices)
    given = made = 0.0
    for stratum in population.strata.values():
        sizes = [estimated_tokens(text) for text in stratum.kept]
        mean = sum(sizes) / max(1, len(sizes)) * stratum.sentences
        given, made = given + mean, made + mean
    count = max(1, population.sentences)
    around = sum(estimated_tokens(one["content"]) + 4 for one in server.messages(""))
    return Tokens(around + given / count, server.samples_for(nbest) * (1 + made / count), False, *prices)


_LEAST_SECONDS = 1e-9
_HOUR = 3600.0
# Starting a worker's process and importing what it needs, on top of loading the model.
PROCESS_SECONDS = 4.0
# Sending a task, reading and checking its shard, committing the result (benchmarks.scaling measures it).
TASK_SECONDS = 0.06
# Bytes of a sentence's key, first row and number; the key once more in the memory; the place of a row.
_SENTENCE_BYTES = 24
_KEY_BYTES = 19
_PLACE_BYTES = 4
# Bytes of a row's scores, and the share of an ingested row that its part takes (measured on 500,000 pairs).
_SCORE_BYTES = 24
_PART = 0.85


@dataclass(frozen=True)
class Facts:
    """What a forecast follows from.

    rows: rows of the corpus. sentences: distinct sentences to translate.
    text_bytes: UTF-8 bytes of a sentence, on average.
    seconds, low, high: of a sentence on one device, with the interval. load_seconds: to load the model.
    sentences_per_task: size of a task. hypotheses: rows a sentence.
    hypothesis_bytes: of such a row in Parquet. row_bytes: of an ingested row in Parquet.
    row_seconds: what a row costs beside its translation. failed: share of sentences that fail.
    target_tokens: of a translation. memory, device_memory: bytes of a worker.
    """

    rows: int
    sentences: int
    text_bytes: float
    seconds: float
    low: float
    high: float
    load_seconds: float
    sentences_per_task: int
    hypotheses: float = 1.0
    hypothesis_bytes: float = 60.0
    row_bytes: float = 90.0
    row_seconds: float = 2e-5
    failed: float = 0.0
    target_tokens: float = 0.0
    memory: int = 0
    device_memory: int = 0


@dataclass(frozen=True)
class Wall:
    """Time and cost with a number of devices: hours, the interval's ends, and the price of the devices."""

    devices: int
    hours: float
    low: float
    high: float
    cost: float | None


@dataclass(frozen=True)
class Forecast:
    """What a translation will take.

    device_hours, low, high: of all devices together, without waiting for the last task.
    walls: by number of devices. disk: bytes, by what they are for. tasks: tasks, of ``task_seconds`` each.
    task_seconds: seconds of the largest task, the most that is lost if the run is killed.
    """

    device_hours: float
    low: float
    high: float
    walls: tuple[Wall, ...]
    disk: dict[str, int]
    tasks: int
    task_seconds: float


def forecast(facts: Facts, devices: Sequence[int], price: float | None, in_process: bool = False) -> Forecast:
    """Extrapolate.

    facts: what is known. devices: numbers of devices to compare. price: of a device for an hour, or None.
    in_process: whether one device is used without starting another process.
    """
    tasks = math.ceil(facts.sentences / facts.sentences_per_task)
    hours, low, high = (
        device_seconds(facts, seconds, tasks) / _HOUR for seconds in (facts.seconds, facts.low, facts.high)
    )
    walls = []
    for count in devices:
        alone = in_process and count == 1
        middle, least, most = (
            step_seconds(facts, seconds, count, alone) / _HOUR + facts.rows * facts.row_seconds / _HOUR
            for seconds in (facts.seconds, facts.low, facts.high)
        )
        cost = None if price is None else middle * count * price
        walls.append(Wall(count, middle, least, most, cost))
    size = min(facts.sentences_per_task, facts.sentences) * facts.seconds + TASK_SECONDS
    return Forecast(hours, low, high, tuple(walls), disk_bytes(facts), tasks, size)


def added(forecasts: Sequence[Forecast]) -> Forecast:
    """What translations take that run one after the other, planned for the same numbers of devices."""
    walls = []
    for each in zip(*(one.walls for one in forecasts), strict=True):
        costs = [wall.cost for wall in each if wall.cost is not None]
        hours, low, high = (sum(getattr(wall, name) for wall in each) for name in ("hours", "low", "high"))
        walls.append(Wall(each[0].devices, hours, low, high, sum(costs) if costs else None))
    hours, low, high = (sum(getattr(one, n) for one in forecasts) for n in ("device_hours", "low", "high"))
    disk = {name: sum(one.disk[name] for one in forecasts) for name in forecasts[0].disk}
    most = max(one.task_seconds for one in forecasts)
    return Forecast(hours, low, high, tuple(walls), disk, sum(one.tasks for one in forecasts), most)


def device_seconds(facts: Facts, seconds: float, tasks: int) -> float:
    """Seconds of all devices together while they translate."""
    load = facts.load_seconds if facts.sentences else 0.0
    return facts.sentences * seconds + tasks * TASK_SECONDS + load


def step_seconds(facts: Facts, seconds: float, devices: int, in_process: bool = False) -> float:
    """Seconds on the clock until ``devices`` devices have translated all sentences, if nothing happens."""
    if not facts.sentences or not math.isfinite(seconds):
        return math.inf if facts.sentences else 0.0
    start = facts.load_seconds + (0.0 if in_process else PROCESS_SECONDS)
    tasks = math.ceil(facts.sentences / facts.sentences_per_task)
    # The interval of a sample of few blocks may begin at 0.
    each = max(seconds, _LEAST_SECONDS)
    whole = facts.sentences_per_task * each + TASK_SECONDS
    rest = (facts.sentences - (tasks - 1) * facts.sentences_per_task) * each + TASK_SECONDS
    # All but the last task are alike, so that the last one begins when all rounds before it are over.
    rounds, over = divmod(tasks - 1, devices)
    return start + max(rounds * whole + rest, (rounds + (over > 0)) * whole)


def best_task(seconds: float) -> int:
    """Sentences of a task whose overhead is a hundredth of its time, to two digits: a larger task gains less
    than that, and loses more when its device is preempted."""
    return max(1, int(float(f"{100 * TASK_SECONDS / max(seconds, _LEAST_SECONDS):.1e}")))


def disk_bytes(facts: Facts) -> dict[str, int]:
    """Bytes that a corpus needs on disk, from its parts to what is published; links count once. ``while
    translating`` is needed only until the rows are written."""
    hypotheses = facts.sentences * facts.hypotheses
    rows = facts.rows * facts.hypotheses  # with n-best, a row for each
    row_bytes = facts.row_bytes + facts.hypothesis_bytes
    text_bytes = facts.text_bytes * 0.6  # compressed
    found = {
        "ingested": int(facts.rows * facts.row_bytes * (1 + _PART)),
        "memory": int(facts.sentences * (text_bytes + _KEY_BYTES) + hypotheses * facts.hypothesis_bytes),
        "translated": int(rows * row_bytes),
        "scores": int(rows * _SCORE_BYTES),
        "published": int(rows * (row_bytes + _SCORE_BYTES)),
        "while translating": int(
            facts.sentences * (2 * _SENTENCE_BYTES + text_bytes)
            + facts.rows * _PLACE_BYTES
            + hypotheses * facts.hypothesis_bytes * 3
        ),
    }
    return {**found, "total": sum(found.values())}
