"""Plans: time, cost, disk space, and tokens."""

import json
import math
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from benchmarks.bitext import write_ingested
from paraforge.base.errors import ConfigurationError, InputError, WorkLockedError
from paraforge.base.shards.store import ShardDirectory
from paraforge.base.shards.work import WorkDirectory
from paraforge.intake.bitext.parameters import IngestParameters
from paraforge.interface.configuration import check_parameters
from paraforge.interface.configuration.composition import compose
from paraforge.interface.configuration.parameters import Parameters
from paraforge.interface.planning.plan import (
    PROCESS_SECONDS,
    ROW_SECONDS,
    TASK_SECONDS,
    Plan,
    Rate,
    Wall,
    _disk_bytes,
    clock_seconds,
    estimate,
    ingested_corpus,
    make_plan,
    measure,
    model_path,
    plan_text,
)
from paraforge.interface.query.pairs import duration
from paraforge.translation.decoding.device import EngineError
from paraforge.translation.decoding.server import Server
from paraforge.translation.decoding.translator import Hypotheses, make_hypothesis
from paraforge.translation.memory.distinct import Population, survey
from paraforge.translation.stage.translate import translate
from tests.here import run_command
from tests.project import ROOT, make_project
from tests.translation.engines.fake_server import FakeServer, Json, Reply, translated
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


def test_sample_predicts_total_rate(tmp_path: Path) -> None:
    dice = np.random.default_rng(3)
    sentences = [f"{'x' * int(dice.lognormal(3.5, 0.8))} {number}" for number in range(4000)]
    engine = Engine()
    found = measured(tmp_path, sentences, engine, 7, 200, seconds=60, precision=0.02)
    whole = sum(map(len, sentences)) / 100
    assert found.load_seconds == 7
    assert found.seconds * len(sentences) == pytest.approx(whole, rel=0.03)
    assert found.low < found.seconds < found.high
    assert max(engine.calls) <= 200


def test_measurement_keeps_its_time(tmp_path: Path) -> None:
    engine = Engine(noise=0.5)
    measured(tmp_path, LONG, engine, seconds=500, precision=0.001)
    assert engine.clock.now < 700
    assert engine.calls[0] == 64  # six seconds would be fewer


def test_late_sample_has_interval(tmp_path: Path) -> None:
    engine = Engine(noise=0.5)
    found = measured(tmp_path, LONG, engine, seconds=1)
    assert len(engine.calls) == 3 and 0 < found.seconds < found.high < float("inf")


@pytest.mark.parametrize("sentences", [2, 40, 400, 4000])
def test_measuring_is_hardly_slower_than_work(sentences: int, tmp_path: Path) -> None:
    engine = Engine(noise=0.9)
    texts = [f"{number} {'y' * 9}" for number in range(sentences)]
    measured(tmp_path, texts, engine, sentences_per_task=100, seconds=9999, precision=1e-9)
    # Six blocks, which have all sentences where there are fewer than in a block.
    assert sum(engine.calls) <= max(sentences + 100, 6 * sentences) + 64


def test_slow_start_uses_longer_blocks(tmp_path: Path) -> None:
    """Each call costs a second besides 5,000 sentences per second, so 32 sentences say little about 4,000."""

    class Large(Engine):
        def seconds(self, block: list[str]) -> float:
            return 1 + len(block) / 5000

    texts = [f"sentence {number}" for number in range(5000)]
    found = measured(tmp_path, texts, Large(), seconds=90, precision=0.01)
    assert found.sentences == 5 * 4000
    assert found.seconds == pytest.approx(1 / 4000 + 1 / 5000)


def test_first_block_is_not_counted(tmp_path: Path) -> None:
    """The first block fills caches or opens a connection: here it takes 1,000 seconds more than the others,
    which take 6.4.
    """

    class Cold(Engine):
        def seconds(self, block: list[str]) -> float:
            return super().seconds(block) + (1000 if len(self.calls) == 1 else 0)

    found = measured(tmp_path, [f"{number:010}" for number in range(900)], Cold(), seconds=9999)
    assert found.seconds == pytest.approx(0.1)
    assert found.high == pytest.approx(0.1)


@pytest.mark.parametrize("blocks", [2, 5, 12])
def test_interval_covers_95_percent(blocks: int) -> None:
    dice = np.random.default_rng(11)
    held = 0
    for _ in range(150):
        rate = estimate(list(dice.normal(6.0, 0.6, blocks)), 100)
        held += rate.low <= 0.06 <= rate.high
    assert held / 150 == pytest.approx(0.95, abs=0.05)


def test_interval_uses_student_t() -> None:
    # By hand: mean 2, deviation 1, and Student's t is 4.3027 for two degrees of freedom.
    few = estimate([1.9, 2.0, 2.1], 2)
    assert (few.seconds, few.high - few.seconds) == pytest.approx((1, 0.1 * 4.3027 / 3**0.5 / 2), rel=1e-4)


def test_single_block_has_no_interval() -> None:
    rate = estimate([3.0], 100)
    assert (rate.seconds, rate.low) == (0.03, 0.0)
    assert rate.high == float("inf")


SENTENCES = [f"věta číslo {number} " + "slovo " * (number % 17) for number in range(900)]


@pytest.fixture
def parameters(tmp_path: Path) -> Parameters:
    content = compose(ROOT / "configs", ["translation=fake"])
    content["translate"] |= {"sentences_per_task": 100, "fake": {"sentences_per_second": 2000.0}}
    content["resources"] |= {"workers": 1, "work": str(tmp_path / "work")}
    return check_parameters(content, where="test")


def test_plan_predicts_translation_time(parameters: Parameters, tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "in", SENTENCES, rows=300)
    plan = make_plan(parameters, corpus, tmp_path / "none", devices=[1, 4], price=2.0, seconds=1)
    assert (plan.sentences, plan.left) == (900, 900)
    assert 1 / plan.rate.seconds <= 2000  # the engine is never faster than it was told
    one, four = plan.walls
    assert one.low <= one.hours <= one.high and one.hours * 3600 > 0.45
    assert one.cost == pytest.approx(one.hours * 2) and four.cost == pytest.approx(four.hours * 8)


def test_plan_covers_unknown_sentences(parameters: Parameters, tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "in", SENTENCES * 2, rows=300)
    none = tmp_path / "none"

    def planned(of: Parameters = parameters) -> Plan:
        return make_plan(of, corpus, none, devices=[1], seconds=1)

    assert planned().left == 900
    translate(parameters.translate, tmp_path / "in", none, tmp_path / "out", parameters.resources)
    with pytest.raises(InputError, match="the translation memory has every sentence"):
        planned()
    another = WorkDirectory("plan", tmp_path / "work").lock()
    with another, pytest.raises(WorkLockedError, match="is in use"):
        planned()
    # Another corpus, of which two thirds are known.
    (tmp_path / "in").rename(tmp_path / "before")
    texts = SENTENCES[300:] + [f"{text} znovu" for text in SENTENCES[:300]]
    corpus = write_corpus(tmp_path / "in", texts * 2, rows=300)
    found = planned()
    assert (found.sentences, found.left) == (900, 300)
    expected = 300 * found.rate.seconds + 3 * TASK_SECONDS + 1800 * ROW_SECONDS
    assert expected <= found.walls[0].hours * 3600 < expected + 10  # loading the model
    assert "900 distinct sentences, 300 left to translate" in plan_text({"": found}, None)
    # Another beam is another translation: nothing is known.
    other = parameters.model_copy(update={"translate": parameters.translate.model_copy(update={"beam": 3})})
    assert planned(other).left == 900


def test_full_memory_is_seen_with_rejected_first_row(parameters: Parameters, tmp_path: Path) -> None:
    reasons = ["duplicate", None, None]
    write_ingested(tmp_path / "in", ["a", "b", "a"], rejected=reasons, first_row=[None, 1, 0])
    none = tmp_path / "none"
    translate(parameters.translate, tmp_path / "in", none, tmp_path / "out", parameters.resources)
    with pytest.raises(InputError, match="the translation memory has every sentence"):
        make_plan(parameters, ShardDirectory(tmp_path / "in"), none, devices=[1], seconds=1)


def test_plan_time_arithmetic() -> None:
    """Ten tasks take 1 s and 0.06 s each, in ten rounds, five, or one."""
    found = [clock_seconds(1000, 0.01, 100, devices) for devices in (1, 2, 16)]
    assert found == pytest.approx([10.6, 5.3, 1.06])
    # Three devices have four rounds, of which the last one is a shorter task: to within one task.
    assert 0 < 3 * 1.06 + 0.56 - clock_seconds(950, 0.01, 100, 3) < 1.06
    assert clock_seconds(0, 0.01, 100, 3) == 0


@pytest.mark.parametrize(
    ("set_size", "rate", "size"),
    [(100, 7000.0, 100), (None, 20.0, 1024), (None, 7000.0, 3072)],  # a minute, or all
)
def test_provided_rate_needs_no_model(
    parameters: Parameters, tmp_path: Path, set_size: int | None, rate: float, size: int
) -> None:
    section = parameters.translate.model_copy(update={"sentences_per_task": set_size})
    parameters = parameters.model_copy(update={"translate": section})
    corpus = write_corpus(tmp_path / "in", [f"věta {number}" for number in range(3000)])
    given = {"devices": [1], "rate": rate, "sentences": 51_400_000, "price": 3.0}
    plan = make_plan(parameters, corpus, tmp_path / "none", **given)
    expected = 51.4e6 / rate + math.ceil(51.4e6 / size) * TASK_SECONDS + 10 + 51.4e6 * ROW_SECONDS
    assert plan.walls[0].hours * 3600 == pytest.approx(expected, rel=1e-9)
    assert "sentences/s" not in plan_text({"": plan}, 3.0)
    own = make_plan(parameters, corpus, tmp_path / "none", devices=[1], rate=rate)
    cluster = parameters.resources.model_copy(update={"scheduler": "tcp://127.0.0.1:1"})
    there = parameters.model_copy(update={"resources": cluster})
    (wall,) = make_plan(there, corpus, tmp_path / "none", devices=[1], rate=rate).walls
    assert (wall.hours - own.walls[0].hours) * 3600 == pytest.approx(PROCESS_SECONDS)
    assert plan.disk == pytest.approx(51.4e6 / 3000 * own.disk, rel=1e-4)


def test_plan_counts_disk_of_every_file(tmp_path: Path) -> None:
    """There are four rows of 250 bytes, with two sentences of 100 bytes that compress to 60, and one or three
    answers for each.
    """
    (tmp_path / "shard").write_bytes(bytes(1000))
    corpus = cast("ShardDirectory", SimpleNamespace(paths=[tmp_path / "shard"], total_rows=4))
    population = Population(4, 2, 200, [])
    once = 4 * (1.85 * 250 + 4) + 2 * (2 * 60 + 67)
    each = 4 * (2 * (250 + 60) + 48) + 2 * 4 * 60
    assert _disk_bytes(population, corpus, 1) == once + each == 5392
    assert _disk_bytes(population, corpus, 3) == once + 3 * each


def test_plan_without_sentences(parameters: Parameters, tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "in", ["a"], rejected={0})
    with pytest.raises(InputError, match="nothing to translate: every row is rejected"):
        make_plan(parameters, corpus, tmp_path / "none", devices=[1], rate=1.0)


def test_plan_without_model(parameters: Parameters, tmp_path: Path) -> None:
    trained = parameters.model_copy(
        update={"translate": parameters.translate.model_copy(update={"engine": "ctranslate2"})}
    )
    with pytest.raises(InputError, match="there is no model yet, so"):
        model_path(trained, tmp_path / "none")


def test_plan_uses_current_parameters(parameters: Parameters, tmp_path: Path) -> None:
    def corpus_of(name: str, pairs: int) -> Parameters:
        source = tmp_path / f"{name}.tsv"
        text = "".join(f"sentence {name} {number}\tvěta {name} {number}\n" for number in range(pairs))
        source.write_text(text, encoding="utf-8")
        columns = {"reference": 0, "source_text": 1}
        entry = {"name": name, "format": "tsv", "path": str(source), "columns": columns}
        section = IngestParameters.model_validate({"sources": [entry]})
        return parameters.model_copy(update={"ingest": section})

    old, new = corpus_of("old", 50), corpus_of("new", 70)
    assert ingested_corpus(old).total_rows == 50
    assert ingested_corpus(new).total_rows == 70
    (tmp_path / "new.tsv").unlink()
    with pytest.raises((ConfigurationError, InputError), match=r"new\.tsv"):
        ingested_corpus(new)


def test_plan_text_has_figures_and_sum() -> None:
    wall = Wall(2, hours=1.0, low=1 / 36, high=2.0, cost=1234.5)
    one = Plan(9000, 1000, Rate(0.1, 0.08, 0.125, 64, tokens=(50, 10)), 10**6, [wall], 2.5)
    other = Plan(7, 7, Rate(0.5, 0.0, math.inf, 1), 0, [replace(wall, cost=1.0)])
    assert plan_text({"cs": one, "de": other}, 2.5).splitlines() == [
        "# cs",
        "",
        "9,000 distinct sentences, 1,000 left to translate",
        "10.0 sentences/s on one device (95% interval 8.0 to 12.5)",
        "tokens: 50,000 input, 10,000 output, price 2.50",
        "disk: about 1.0 MB, with intermediate files",
        "",
        "# de",
        "",
        "7 distinct sentences, 7 left to translate",
        "2.0 sentences/s on one device (95% interval 0.0 to inf)",
        "disk: about 0 B, with intermediate files",
        "",
        "# cs + de, one after the other",
        "",
        "devices   time     from     to  cost at 2.5 an hour",
        "      2  2.0 h  3.3 min  4.0 h             1,235.50",
    ]
    times = {0: "0 s", 0.9: "under 1 s", 1: "1 s", 119: "119 s", 120: "2.0 min", 7199: "120.0 min"}
    times |= {7200: "2.0 h", 95 * 3600: "95.0 h", 96 * 3600: "4.0 days"}
    assert {seconds: duration(seconds) for seconds in times} == times


@pytest.mark.full
def test_plan_covers_each_pivot_and_sum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(make_project(tmp_path / "project", "pivots=sample", pairs=300))
    found = json.loads(run_command("plan", "--rate", 5, "--price", 2, "--json").output)
    assert list(found) == ["cs", "art"]
    printed = run_command("plan", "--rate", 5, "--price", 2).output
    assert "# cs\n" in printed and "# cs + art, one after the other" in printed
    total = sum(one["walls"][0]["hours"] for one in found.values())
    row = next(line.split() for line in printed.splitlines() if line.split()[:1] == ["1"])
    assert duration(3600 * total).split() == row[1:3]
    assert float(row[-1]) == pytest.approx(2 * total, abs=0.006)
    assert list(json.loads(run_command("plan", "--rate", 5, "--sentences", 9, "--json").output)) == ["cs"]


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(make_project(tmp_path, "translation=fake", pairs=300))
    text = run_command("plan", "--seconds", 1, "--price", "2.5", "--devices", "2,1").output
    assert "distinct sentences" in text and "cost at 2.5 an hour" in text and "95% interval" in text
    found = json.loads(run_command("plan", "--json", "--rate", "100").output)
    (plan,) = found.values()
    assert plan["rate"]["seconds"] == 0.01 and [wall["devices"] for wall in plan["walls"]] == [1, 2, 4, 8]
    for devices in ("1,two", "0", "1,99999999999999"):
        with pytest.raises(ConfigurationError, match="separated by commas"):
            run_command("plan", "--devices", devices)
    for option in ("--rate", "--price", "--input-price", "--output-price"):
        run_command("plan", option, "inf", expect=2)


def parameters_of(work: Path, **server: Any) -> Parameters:
    """Parameters of a translation by a server."""
    content = compose(ROOT / "configs", ["translation=server", "translate.server.model=m"])
    content["resources"] |= {"work": str(work)}
    content["translate"]["server"] |= server
    return check_parameters(content, where="test")


@pytest.mark.full
@pytest.mark.parametrize("counts", [True, False])
def test_server_price_is_per_token(tmp_path: Path, server: FakeServer, counts: bool) -> None:
    """For the sample, which is small, the server counts 50 input and 10 output tokens per sentence."""
    pytest.importorskip("openai")
    corpus = write_corpus(tmp_path / "in", SENTENCES, rows=300)

    def behave(sentence: str, body: Json, nth: int) -> Reply:
        reply = translated(sentence, body)
        return reply if counts else Reply({"choices": reply.body["choices"]})

    server.behave = behave
    asked = {"devices": [1], "seconds": 600, "token_prices": (2.0, 10.0), "sentences": 10_000}
    plan = make_plan(parameters_of(tmp_path / "work"), corpus, tmp_path, **asked)
    # 6 blocks of 64, of which some of a rare length come twice.
    assert 375 < len(server.bodies) <= 384
    assert set(server.asked.values()) == {1}
    assert plan.rate.tokens == ((50, 10) if counts else None)
    if counts:
        assert plan.token_price == pytest.approx(10_000 * (50 * 2 + 10 * 10) / 1e6)
        assert "500,000 input, 100,000 output" in plan_text({"": plan}, None)
        assert "price 2.00" in plan_text({"": plan}, None)


@pytest.mark.full
@pytest.mark.parametrize(
    ("dies", "repeated"),
    [
        (False, range(1)),
        # The block that was under way is lost; what was being asked when the server died was asked again.
        (True, range(64 + Server().concurrency + 1)),
    ],
)
def test_plan_translations_are_remembered(
    tmp_path: Path, server: FakeServer, dies: bool, repeated: range
) -> None:
    parameters = parameters_of(tmp_path / "work", max_retries=0)
    corpus = write_corpus(tmp_path / "in", SENTENCES, rows=300)
    none, output = tmp_path / "none", tmp_path / "out"
    if dies:
        server.at[200] = server.die
    with pytest.raises(EngineError) if dies else nullcontext():
        make_plan(parameters, corpus, none, devices=[1])
    if dies:
        server.start()
    translate(parameters.translate, tmp_path / "in", none, output, parameters.resources)
    assert set(server.asked) == set(SENTENCES)
    assert sum(server.asked.values()) - len(SENTENCES) in repeated
    with pytest.raises(InputError, match=r"nothing to translate.*--rate"):
        make_plan(parameters, corpus, none, devices=[1])


def test_small_plan_requests_each_sentence_once(tmp_path: Path, server: FakeServer) -> None:
    for count in (1, 2, 13):
        corpus = write_corpus(tmp_path / f"in{count}", SENTENCES[:count], rows=300)
        server.asked.clear()
        parameters = parameters_of(tmp_path / f"work{count}")
        plan = make_plan(parameters, corpus, tmp_path, devices=[1], token_prices=(1e6, None))
        assert set(server.asked.values()) == {1}
        assert plan.left == count - len(server.asked)
        assert plan.token_price == 50 * plan.left  # what was asked for the plan is paid
        assert "sentences/s" in plan_text({"": plan}, None)
        if plan.left:  # another plan asks for these
            assert make_plan(parameters, corpus, tmp_path, devices=[1]).left == 0
            assert set(server.asked) == set(SENTENCES[:count]) and set(server.asked.values()) == {1}
            assert not (tmp_path / f"work{count}" / "plan" / "recall").exists()
        for sentences in (None, 100):
            with pytest.raises(InputError, match=r"memory has every sentence.*--rate"):
                make_plan(parameters, corpus, tmp_path, devices=[1], sentences=sentences)
        assert set(server.asked.values()) == {1}
