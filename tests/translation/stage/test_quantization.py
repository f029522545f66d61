"""The quality check of quantized models."""

import logging
import math
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from paraforge.translation.decoding.translator import DecodingOptions, Hypothesis, Placement
from paraforge.translation.engines import ctranslate2
from paraforge.translation.models.model import open_model
from paraforge.translation.stage import quantization
from paraforge.translation.stage.parameters import TranslateParameters
from paraforge.translation.stage.quantization import QuantizationLoss, decide, measure_loss
from tests.translation.engines.tiny_models import listed
from tests.translation.models.tiny import bitext
from tests.translation.stage.test_population import write_corpus
from tests.translation.stage.test_translate import run

SENTENCES = [source for source, _ in bitext(230, seed=3, longest=9)]


def test_quantization_loss_has_upper_bound() -> None:
    found = measure_loss("int8", [0.0, 0.02] * 200, [0] * 400, 200)
    # Standard deviation 0.01 (n - 1: 0.0100125), standard error of 400: 0.000500626; 1.645 of them.
    assert (found.loss, found.bound) == (0.01, pytest.approx(0.010824, abs=1e-6))
    assert found.identical == 0.5 and found.within(0.011) and not found.within(found.bound)
    alone = measure_loss("int8", [0.1, math.nan], [0, 0], 0)
    assert (alone.loss, alone.bound) == (None, None) and not alone.within(9.0)
    assert measure_loss("int8", [0.1, 0.3], [0, 0], 0).loss == 0.2


def test_ruined_sentences_decide_and_small_samples_do_not() -> None:
    for sentences, worse, enough in ((1000, 0, True), (1000, 10, False), (200, 0, True), (199, 0, False)):
        ruined = [1] * worse + [0] * (sentences - worse)
        assert measure_loss("int8", [0.0] * sentences, ruined, sentences).within(0.02) is enough
    found = measure_loss("int8", [0.0] * 1000, [1] * 5 + [-1] * 2 + [0] * 993, 1000)
    # (5 - 2) / 1002, and 1.645 times sqrt(5 + 2 + 1 - 9 / 1002) / 1002.
    assert (found.ruined, found.ruined_bound) == (0.003, pytest.approx(0.002994 + 0.004641, abs=2e-6))


@pytest.mark.parametrize("loss", [None, QuantizationLoss("int8", 1000, 0.5, 0.05, 0.06, 0.0, 0.001)])
def test_only_good_compute_types_are_used(
    loss: QuantizationLoss | None, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert decide(loss, "int8") == "float32"
    assert "everything is translated in float32" in caplog.text
    assert ("too little text to check int8" in caplog.text) is (loss is None)
    good = QuantizationLoss("int8", 1000, 0.9, 0.001, 0.002, 0.0, 0.001)
    assert decide(good, "int8") == "int8"


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(quantization, "_WORTHWHILE", 200)
    write_corpus(tmp_path / "ingested", SENTENCES, rows=100)
    return tmp_path / "ingested"


def parameters(**changes: Any) -> TranslateParameters:
    values = {"beam": 2, "compute_type": "int8", "maximum_target_tokens": 20, **changes}
    return TranslateParameters.model_validate(values)


def test_calibration_runs_once_per_model_and_options(
    corpus: Path, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quantization, "LIMIT", 9.0)
    lenient = parameters()
    report, _ = run(tmp_path, corpus, lenient, model=tiny_model)
    assert report.calibration is not None and report.calibration.sentences > 200
    # How many hypotheses are equal depends on the processor, on which the tiny model was trained.
    assert 0 < report.calibration.identical < 1
    assert report.compute_type == ("int8" if report.calibration.within(9.0) else "float32")
    monkeypatch.setattr(quantization, "measure_on_worker", Mock(side_effect=AssertionError("measured again")))
    write_corpus(tmp_path / "other", SENTENCES[:150], rows=100)  # another corpus, even a small one
    again, _ = run(tmp_path, tmp_path / "other", lenient, model=tiny_model)
    assert again.calibration == report.calibration
    with pytest.raises(AssertionError, match="measured again"):
        run(tmp_path, corpus, lenient.model_copy(update={"beam": 3}), model=tiny_model)


def test_measured_loss_depends_on_engine_version(monkeypatch: pytest.MonkeyPatch) -> None:
    options = DecodingOptions(shortlist=True)
    before = quantization._key("1", options)
    monkeypatch.setattr(quantization, "installed", lambda libraries: dict.fromkeys(libraries, "0.1"))
    assert quantization._key("1", options) != before


def test_hopeless_hypothesis_counts_as_ruined(monkeypatch: pytest.MonkeyPatch) -> None:
    class Scored(ctranslate2.CTranslate2Translator):
        def __init__(self, *_: Any) -> None:
            pass

        def score(self, sources: Any, targets: Any) -> list[float]:
            return [{"good": -0.5, "bad": -9.0}[text] for text in targets]

    monkeypatch.setattr(quantization, "open_translator", Scored)
    texts = [["bad", "bad", "good", "good"], ["good", "good", "bad", "good"]]  # int8, float32
    sides = ([Hypothesis(text, -1.0, 2) for text in side] for side in texts)
    monkeypatch.setattr(quantization, "_best", lambda *_: next(sides))
    model: Any = None
    options = DecodingOptions(compute_type="int8")
    found = quantization.compare(model, options, Placement("cpu"), ["a", "b", "c", "d"])
    assert (found.loss, found.ruined, found.identical, found.sentences) == (8.5 / 4, 0.25, 0.25, 4)


def test_shortlist_is_checked_and_dropped_with_int8(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = listed(tiny_model, tmp_path / "model", half=True)
    opened: list[tuple[str, object]] = []
    open_translator = quantization.open_translator

    def noted(engine: str, model: Any, options: DecodingOptions, *others: Any) -> Any:
        opened.append((options.compute_type, options.shortlist))
        return open_translator(engine, model, options, *others)

    monkeypatch.setattr(quantization, "open_translator", noted)
    options = DecodingOptions(beam=2, compute_type="int8", maximum_target_tokens=20, shortlist=True)
    quantization.compare(open_model(model), options, Placement("cpu"), SENTENCES[:20])
    assert opened == [("int8", True), ("float32", False)]
    write_corpus(tmp_path / "ingested", SENTENCES[:50], rows=100)
    for checked, kind, used in ((True, "float32", False), (False, "int8", True)):
        wanted = parameters(check_quantized=checked)
        report, published = run(tmp_path / kind, tmp_path / "ingested", wanted, model=model)
        assert report.compute_type == kind and report.calibration is None  # so small a corpus
        assert published.description["parameters"].get("shortlist", False) is used
