"""The check without references: what the float32 model finds less probable is not relied on."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from paraforge.decoding.translator import DecodingOptions, Placement
from paraforge.errors import InputError
from paraforge.translation.calibration import lines
from paraforge.translation.calibration.hypotheses import BothWays
from paraforge.translation.calibration.lines import ProbabilityLoss, checked, probability_loss, reservoir
from paraforge.translation.text_file import read_sentences
from tests.models.tiny import bitext
from tests.translation.calibration.spoiling import spoil_int8

pytest.importorskip("ctranslate2")

INT8 = DecodingOptions(beam=2, compute_type="int8")
CPU = Placement("cpu")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.txt"
    path.write_text("".join(f"{cs}\n" for cs, _ in bitext(80, seed=5)) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def backwards(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """An int8 that says the words backwards; gives the compute types of the sentences that are translated."""
    return spoil_int8(monkeypatch, lambda text: " ".join(reversed(text.split())))


def test_what_is_as_good_is_kept(
    source: Path, tiny_ctranslate2: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    options, sentences = checked(tiny_ctranslate2, INT8, CPU, source, read_sentences(source))
    assert options == INT8
    assert list(sentences) == list(read_sentences(source))
    assert "int8 against float32 on 80 sentences" in caplog.text
    assert "it is kept" in caplog.text


def test_what_is_less_probable_is_translated_in_float32(
    source: Path, tiny_ctranslate2: Path, backwards: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    options, sentences = checked(tiny_ctranslate2, INT8, CPU, source, read_sentences(source))
    assert options == replace(INT8, compute_type="float32")
    assert list(sentences) == list(read_sentences(source))
    assert (backwards.count("int8"), backwards.count("float32")) == (80, 80)
    assert "everything is translated in float32" in caplog.text
    with pytest.raises(InputError, match="nats a token more probable"):
        checked(tiny_ctranslate2, INT8, CPU, source, read_sentences(source), "error")


@pytest.mark.parametrize(("kind", "check"), [("float32", "fallback"), ("int8", "skip")])
def test_nothing_is_translated_where_nothing_is_asked(
    kind: str,
    check: lines.Check,
    source: Path,
    tiny_ctranslate2: Path,
    backwards: list[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    asked = replace(INT8, compute_type=kind)
    sentences = read_sentences(source)
    assert checked(tiny_ctranslate2, asked, CPU, source, sentences, check) == (asked, sentences)
    assert not backwards
    assert ("is not compared with float32" in caplog.text) == (kind == "int8")


def test_standard_input_is_read_once(tiny_ctranslate2: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "SENTENCES", 3)
    read: list[str] = []

    def stream() -> Iterator[str]:
        for number in range(10):
            read.append(f"pes {number}")
            yield read[-1]

    _, sentences = checked(tiny_ctranslate2, INT8, CPU, Path("-"), stream())
    assert len(read) == 3
    assert list(sentences) == [f"pes {number}" for number in range(10)]
    assert len(read) == 10


def test_a_reservoir_is_uniform(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = np.zeros(20)
    for seed in range(1000):
        monkeypatch.setattr(lines, "_SEED", seed)
        kept = reservoir(map(str, range(20)), 5)
        assert len(set(kept)) == 5
        counts[[int(item) for item in kept]] += 1
    # Each of 20 items is among 5 kept ones in a quarter of 1,000 draws: 250, standard deviation 13.7.
    assert np.abs(counts - 250).max() < 4 * 13.7
    assert reservoir(map(str, range(3)), 5) == ["0", "1", "2"]


def test_arithmetic_of_the_loss() -> None:
    found = BothWays(["a", "b", "c", ""], ["a", "x", "", ""], [0.0, 0.3, math.nan, 0.0])
    loss = probability_loss(found, "int8")
    assert (loss.sentences, loss.identical, loss.silent) == (4, 0.5, 0.25)
    assert loss.loss == pytest.approx(0.1)
    assert loss.error == pytest.approx(math.sqrt(0.03) / math.sqrt(3))  # deviations -0.1, 0.2, -0.1


@pytest.mark.parametrize(
    ("silent", "loss", "error", "exceeds"),
    [
        (0.0, 0.019, 0.0, False),
        (0.0, 0.021, 0.001, True),
        (0.0, 0.021, 0.011, False),  # may be chance
        (0.0, -0.5, 0.0, False),
        (0.02, 0.0, 0.0, True),
        (0.01, 0.0, 0.0, False),
    ],
)
def test_the_limit(silent: float, loss: float, error: float, exceeds: bool) -> None:
    assert ProbabilityLoss("int8", 100, 0.9, silent, loss, error).exceeds_limit == exceeds
