"""What quantisation costs on a sample, and how samples are drawn."""

import logging
import math
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from sacrebleu.metrics.chrf import CHRF

from paraforge.base.errors import InputError
from paraforge.base.files import sha256_file
from paraforge.base.shards.store import ShardDirectory
from paraforge.translation.stage import population
from paraforge.translation.stage.calibration.loss import (
    BOTH_WAYS,
    LIMIT,
    MINIMUM,
    SHARE,
    QuantisationLoss,
    decided,
    measure_loss,
    sample_size,
)
from paraforge.translation.stage.population import (
    bitext_sample,
    draw_sample,
    reservoir,
    sampled,
    write_sample,
)
from paraforge.translation.stage.text_file import read_sentences
from tests.translation.stage.test_translate import Row, write_corpus

WORDS = ["a", "man", "in", "the", "blue", "shirt", "stands", "on", "ladder", "two", "young", "dogs"]


def sentences(count: int, seed: int = 1) -> list[str]:
    dice = random.Random(seed)
    return [" ".join(dice.choices(WORDS, k=dice.randint(4, 12))) for _ in range(count)]


def both_ways(full: list[str], quantised: list[str], losses: list[float], ruined: list[int]) -> pa.Table:
    numbers = pa.array(losses, pa.float64(), from_pandas=True)
    return pa.table([full, quantised, numbers, ruined], schema=BOTH_WAYS)


def sample(losses: list[float], ruined: list[int] | None = None) -> pa.Table:
    texts = sentences(len(losses))
    other = [text + " x" if loss else text for text, loss in zip(texts, losses, strict=True)]
    return both_ways(texts, other, losses, ruined or [0] * len(losses))


def normal(mean: float, deviation: float, count: int, seed: int = 1) -> list[float]:
    return np.random.default_rng(seed).normal(mean, deviation, count).tolist()


def test_arithmetic() -> None:
    found = both_ways(["a", "b", "c", ""], ["a", "x", "", ""], [0.0, 0.3, math.nan, 0.0], [0, 0, 1, 0])
    loss = measure_loss(found, "int8")
    assert (loss.sentences, loss.identical, loss.ruined) == (4, 0.5, 0.25)
    assert loss.loss == pytest.approx(0.1)
    # Deviations -0.1, 0.2, -0.1: the standard error is sqrt(0.03) / sqrt(3) = 0.1.
    assert loss.bound == pytest.approx(0.1 + 1.645 * 0.1)
    # One of four, half an observation more in each cell: 1/6, and sqrt(2 - 1/6) / 6.
    assert loss.ruined_bound == pytest.approx(1 / 6 + 1.645 * math.sqrt(2 - 1 / 6) / 6)
    assert loss.chrf is None


def test_chrf_is_sacrebleus() -> None:
    references = sentences(120)
    found = sample(normal(0.1, 0.1, 120))
    loss = measure_loss(found, "int8", references)
    sides = [found.column(side).to_pylist() for side in ("float32", "quantised")]
    expected = [CHRF().corpus_score(side, [references]).score for side in sides]
    assert [loss.chrf_float32, loss.chrf] == pytest.approx(expected, abs=1e-4)
    assert "chrF" in str(loss)


@pytest.mark.parametrize(
    ("losses", "ruined", "within"),
    [
        pytest.param([0.0] * 300, None, True, id="nothing differs"),
        pytest.param(normal(0.0, 0.03, 1000), None, True, id="as good"),
        pytest.param(normal(-0.01, 0.03, 300), None, True, id="better"),
        pytest.param(normal(0.05, 0.03, 1000), None, False, id="worse"),
        pytest.param([-0.5, 0.5] * 150, None, False, id="not worse, but nothing is shown"),
        pytest.param([0.0] * 10 + [10.0, 12.0], [0] * 10 + [1, 1], False, id="two of twelve are garbage"),
        pytest.param([0.0] * 12, None, False, id="twelve that are the same show nothing"),
        pytest.param([0.0] * 199, None, False, id="too few"),
        pytest.param([0.0] * 200, None, True, id="enough"),
        pytest.param([0.0] * 300, [1] * 3 + [0] * 297, False, id="three of 300 are ruined"),
        pytest.param([0.0] * 1000, [1] * 3 + [0] * 997, True, id="three of 1,000"),
        pytest.param([0.0] * 1000, [1] * 9 + [0] * 991, False, id="nine of 1,000"),
        pytest.param([0.0] * 1000, [1] * 9 + [-1] * 9 + [0] * 982, True, id="as many better as worse"),
        pytest.param([math.nan] * 300, None, False, id="no number at all"),
    ],
)
def test_only_what_is_shown_to_lose_little_is_accepted(
    losses: list[float], ruined: list[int] | None, within: bool
) -> None:
    assert measure_loss(sample(losses, ruined), "int8").within(LIMIT) is within


def test_a_loss_at_the_limit_is_accepted_once_in_twenty() -> None:
    accepted = sum(
        measure_loss(sample(normal(LIMIT, 0.05, 250, seed)), "int8").within(LIMIT) for seed in range(1000)
    )
    assert 30 < accepted < 75


def test_the_sample_is_a_tenth_of_the_work() -> None:
    assert sample_size(MINIMUM * SHARE - 1) == 0
    assert sample_size(MINIMUM * SHARE) == MINIMUM
    assert sample_size(10_000_000) == 1000
    assert sample_size(10_000_000, 3000) == 3000
    for total in range(0, 100_000, 999):
        assert 4 * sample_size(total) <= total / 10


def test_the_decision(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    good = QuantisationLoss("int8", 500, 0.9, 0.001, 0.003, 0.0, 0.004)
    assert decided(good, "int8", "fallback", LIMIT, model=None, remedy="") == "int8"
    assert "a loss of 0.0010 nats a token, at most 0.0030" in caplog.text
    assert decided(good, "int8", "fallback", 0.002, model=None, remedy="") == "float32"
    with pytest.raises(InputError, match=r"not shown to lose less than 0\.002.*Do so"):
        decided(good, "int8", "error", 0.002, model=None, remedy="Do so.")
    assert decided(None, "int8", "fallback", LIMIT, model=None, remedy="") == "float32"
    assert "too little text" in caplog.text
    with pytest.raises(InputError, match=r"too little text .*8,000 sentences are enough"):
        decided(None, "int8", "error", LIMIT, model=None, remedy="")


ROWS: list[Row] = [
    (
        "slovo " * (1 + row * 7919 % 40) + str(row % 300),
        "too_long" if row % 9 == 4 else None,
        "given" if row % 7 == 3 else None,
    )
    for row in range(700)
]


def test_only_what_waits_each_once_with_the_reference_of_its_first_row(tmp_path: Path) -> None:
    corpus = ShardDirectory(write_corpus(tmp_path / "ingested", ROWS, 90, given=True))
    found = draw_sample(corpus, 10_000).to_pylist()
    waiting = {text for text, reason, given in ROWS if reason is None and given is None}
    texts = [row["source_text"] for row in found]
    assert set(texts) <= waiting
    assert len(set(texts)) == len(texts)
    assert len(texts) > 0.8 * len(waiting)
    first: dict[str, str] = {}
    for number, (text, reason, _) in enumerate(ROWS):
        if reason is None:
            first.setdefault(text, f"reference {number}")
    assert all(row["reference"] == first[row["source_text"]] for row in found)
    assert [row["sentence"] for row in found] == list(range(len(found)))


def test_it_is_as_long_as_the_corpus_and_always_the_same(tmp_path: Path) -> None:
    rows: list[Row] = [("slovo " * (1 + row % 40) + str(row), None, None) for row in range(2000)]
    corpus = ShardDirectory(write_corpus(tmp_path / "ingested", rows, 300))
    lengths = np.array([len(text) for text, _, _ in rows])
    drawn = np.array([len(row["source_text"]) for row in draw_sample(corpus, 200).to_pylist()])
    assert len(drawn) == 200
    for quantile in (0.1, 0.5, 0.9):
        assert abs(np.mean(drawn <= np.quantile(lengths, quantile)) - quantile) < 0.05
    for name in ("one", "other"):
        assert write_sample(corpus, 50, tmp_path / name) == 50
    assert sha256_file(tmp_path / "one" / "shard-00000.parquet") == sha256_file(
        tmp_path / "other" / "shard-00000.parquet"
    )


def test_a_reservoir_is_uniform(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = np.zeros(20)
    for seed in range(1000):
        monkeypatch.setattr(population, "_SEED", seed)
        kept, count = reservoir(map(str, range(20)), 5)
        assert (len(set(kept)), count) == (5, 20)
        counts[[int(item) for item in kept]] += 1
    # Each of 20 items is among 5 kept ones in a quarter of 1,000 draws: 250, standard deviation 13.7.
    assert np.abs(counts - 250).max() < 4 * 13.7
    assert reservoir(map(str, range(3)), 5) == (["0", "1", "2"], 3)


@pytest.mark.parametrize(("lines", "expected"), [(7999, 0), (8000, 200), (20_000, 500), (50_000, 1000)])
def test_a_file_gives_one_sentence_in_forty(lines: int, expected: int, tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    path.write_text("".join(f"věta {number}\n" for number in range(lines)) + "\n", encoding="utf-8")
    kept, whole = sampled(path, read_sentences(path))
    assert len(set(kept)) == len(kept) == expected
    assert list(whole) == list(read_sentences(path))
    assert kept == sampled(path, read_sentences(path))[0]
    if kept:
        drawn = np.array([int(text.split()[1]) for text in kept])
        assert abs(drawn.mean() / lines - 0.5) < 0.07  # from all of it: standard deviation 0.29 / sqrt(200)


def test_standard_input_is_read_once_and_no_further_than_needed() -> None:
    read: list[int] = []

    def stream() -> Iterator[str]:
        for number in range(8500):
            read.append(number)
            yield f"pes {number}"

    kept, whole = sampled(Path("-"), stream())
    assert (len(kept), len(read)) == (200, 8000)
    assert list(whole) == [f"pes {number}" for number in range(8500)]
    kept, whole = sampled(Path("-"), iter(["pes", "les"]))
    assert (kept, list(whole)) == ([], ["pes", "les"])


def test_a_bitext_gives_sentences_with_their_references(tmp_path: Path) -> None:
    path = tmp_path / "test.tsv"
    path.write_text("pes 1\tdog 1\n\tdog\npes 2\tdog 2\n", encoding="utf-8")
    assert bitext_sample(path, (1, 0), 10) == (["pes 1", "pes 2"], ["dog 1", "dog 2"])
    with pytest.raises(InputError, match=r"test\.tsv.*1.*2 columns, but column 2 is asked for"):
        bitext_sample(path, (2, 0), 10)
