"""Engines with one tiny model give the same hypotheses, scores and flags."""

import dataclasses
import math
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from paraforge.base.errors import InputError
from paraforge.base.shards.resources import Resources
from paraforge.translation.decoding.translator import DecodingOptions, Hypotheses, Placement
from paraforge.translation.engines import ENGINES, open_translator
from paraforge.translation.engines.ctranslate2 import CTranslate2Translator
from paraforge.translation.models.ctranslate2_library import load_ctranslate2
from paraforge.translation.models.model import open_model
from paraforge.translation.stage.sentences import choose_engine
from tests.translation.engines.tiny_models import agree, gains
from tests.translation.models.tiny import bitext, write_model

SENTENCES = [source for source, _ in bitext(80, seed=9, longest=9)]
OPTIONS = DecodingOptions(beam=5, maximum_target_tokens=40)
EVERY_ENGINE = pytest.mark.parametrize("engine", ["fairseq", "ctranslate2", "torch"])


def run(
    engine: str, model: Path, sentences: list[str], options: DecodingOptions = OPTIONS, **placement: int
) -> list[Hypotheses]:
    translator = open_translator(engine, model, options, Placement("cpu", **placement))
    return list(translator.translate(iter(sentences)))


@pytest.fixture(scope="module")
def production(tiny_model: Path) -> list[Hypotheses]:
    return run("ctranslate2", tiny_model, SENTENCES)


@pytest.mark.parametrize("options", [OPTIONS, DecodingOptions(beam=1, maximum_target_tokens=4)])
def test_engines_agree_on_best_hypothesis_and_score(options: DecodingOptions, tiny_model: Path) -> None:
    """They also agree at the length limit."""
    expected = run("fairseq", tiny_model, SENTENCES, options)
    assert options is OPTIONS or any(result.hypotheses[0].output_truncated for result in expected)
    for engine in ("ctranslate2", "torch"):
        found = run(engine, tiny_model, SENTENCES, options)
        agree(found, expected, 1e-5, gains(engine, tiny_model, SENTENCES))


def test_score_is_mean_including_end_of_sentence(tiny_model: Path, production: list[Hypotheses]) -> None:
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_file=str(tiny_model / "source.spm"))
    scorer = load_ctranslate2().Translator(str(tiny_model / "ctranslate2"), intra_threads=1)
    more = gains("ctranslate2", tiny_model, SENTENCES[:40])
    for sentence, result, gain in zip(SENTENCES[:40], production, more, strict=False):
        best = result.hypotheses[0]
        pieces = processor.encode(best.text, out_type=str)
        if len(pieces) + 1 != best.tokens:
            continue  # the engine spelt the text in other pieces
        (scored,) = scorer.score_batch([processor.encode(sentence, out_type=str)], [pieces])
        assert len(scored.log_probs) == best.tokens
        assert best.score == pytest.approx((sum(scored.log_probs) + gain) / best.tokens, abs=1e-5)


@EVERY_ENGINE
def test_length_penalty_affects_score(engine: str, tiny_model: Path) -> None:
    options = DecodingOptions(beam=1, maximum_target_tokens=40)
    plain = run(engine, tiny_model, SENTENCES[:8], options)
    for penalty in (0.0, 1.0):
        others = run(engine, tiny_model, SENTENCES[:8], options.with_changes(length_penalty=penalty))
        for first, second in zip(others, plain, strict=True):
            found, mean = first.hypotheses[0], second.hypotheses[0]
            assert found.text == mean.text
            assert found.score == pytest.approx(mean.score * mean.tokens / found.tokens**penalty, abs=1e-4)


@pytest.mark.parametrize("cap", [2, 3, 4, 6, 40])
@pytest.mark.parametrize("engine", [pytest.param("fairseq", marks=pytest.mark.full), "ctranslate2", "torch"])
def test_nbest_is_ranked(engine: str, cap: int, tiny_model: Path) -> None:
    options = DecodingOptions(beam=5, maximum_target_tokens=cap)
    alone = run(engine, tiny_model, SENTENCES[:15], options)
    several = run(engine, tiny_model, SENTENCES[:15], options.with_changes(nbest=4))
    for one, many in zip(alone, several, strict=True):
        scores = [hypothesis.score for hypothesis in many.hypotheses]
        assert len(scores) == 4 and scores == sorted(scores, reverse=True)
        assert many.hypotheses[0].text == one.hypotheses[0].text
        assert not any(hypothesis.empty for hypothesis in many.hypotheses)


@EVERY_ENGINE
def test_inputs_and_outputs_over_limit_are_marked(engine: str, tiny_model: Path) -> None:
    options = DecodingOptions(beam=5, maximum_source_tokens=8, maximum_target_tokens=4)
    found = run(engine, tiny_model, ["pes " * 30, "pes " * 7, "pes", " \t"], options)
    assert [result.source_truncated for result in found] == [True, False, False, False]
    long, fits, short, blank = (result.hypotheses for result in found)
    assert (long[0].output_truncated, long[0].tokens) == (True, 4)
    assert (short[0].output_truncated, short[0].tokens) == (False, 2)
    assert blank[0].empty
    assert long == fits  # the cut source is translated as if there were no more of it


@EVERY_ENGINE
def test_unknown_sources_fail(engine: str, tiny_model: Path) -> None:
    """A source of only unknown pieces fails; a fluent invention must not be published."""
    found = run(engine, tiny_model, ["pes spí", "😀😀", "漢字 漢字", "ѱѯѵ", "pes 😀"])
    assert [result.failed for result in found] == [None, *["unknown source"] * 3, None]
    assert not any(result.hypotheses for result in found[1:4])


@EVERY_ENGINE
def test_nan_scores_are_marked(engine: str, tiny_fairseq: Path, tmp_path: Path) -> None:
    import torch

    from paraforge.translation.models.checkpoint import load_checkpoint

    shutil.copytree(tiny_fairseq, tmp_path / "fairseq")
    state = load_checkpoint(tiny_fairseq / "checkpoint.pt")
    state["model"]["decoder.layers.1.final_layer_norm.weight"].fill_(3e38)
    torch.save(state, tmp_path / "fairseq" / "checkpoint.pt")
    model = write_model(tmp_path / "fairseq", tmp_path / "model")
    for result in run(engine, model, SENTENCES[:3]):
        assert result.failed is None
        assert result.hypotheses[0].non_finite
        assert result.hypotheses[0].score != result.hypotheses[0].score


@pytest.mark.parametrize("engine", ["ctranslate2", "torch"])
def test_engine_threads_change_no_byte(engine: str, tiny_model: Path) -> None:
    first, second, four = (run(engine, tiny_model, SENTENCES, threads=n, batch_tokens=64) for n in (1, 2, 4))
    assert first == second == four


@pytest.mark.parametrize("engine", ["ctranslate2", "torch"])
def test_batch_size_changes_only_rounding(
    engine: str, tiny_model: Path, production: list[Hypotheses]
) -> None:
    # Where production, which is CTranslate2's, is compared with torch.
    more = gains("ctranslate2", tiny_model, SENTENCES) if engine == "torch" else None
    agree(production, run(engine, tiny_model, SENTENCES, batch_tokens=1), 1e-5, more)


def test_int8_is_close_and_auto_is_logged(tiny_model: Path, production: list[Hypotheses]) -> None:
    int8, automatic = (OPTIONS.with_changes(compute_type=kind) for kind in ("int8", "auto"))
    found = run("ctranslate2", tiny_model, SENTENCES, int8)
    scores = [(a.hypotheses[0].score, b.hypotheses[0].score) for a, b in zip(found, production, strict=True)]
    # Of most: without VNNI, processors add products of int8 in 16 bits, which ruins a few sentences.
    assert statistics.median([abs(a - b) for a, b in scores]) < 0.1
    chosen, named = (
        choose_engine("ctranslate2", tiny_model, options, {}, Resources(devices=["cpu"])).description()
        for options in (automatic, int8)
    )
    assert chosen == named


@pytest.mark.parametrize("engine", ["ctranslate2", "torch"])
def test_forced_tokens_are_not_in_hypothesis(engine: str, tiny_model: Path) -> None:
    model = dataclasses.replace(open_model(tiny_model), target_prefix=("▁house", "▁big"))
    translator = open_translator(engine, model, OPTIONS)
    (result,) = translator.translate(["pes spí velký dům"])
    best = result.hypotheses[0]
    assert best.text == "sleeps dog"
    assert best.tokens == 3
    scorer = load_ctranslate2().Translator(str(tiny_model / "ctranslate2"), intra_threads=1)
    (scored,) = scorer.score_batch(
        [["▁pes", "▁spí", "▁velký", "▁dům"]], [["▁house", "▁big", "▁sleeps", "▁dog"]]
    )
    (gain,) = gains(engine, tiny_model, ["pes spí velký dům"], ("▁house", "▁big"))
    assert best.score == pytest.approx((sum(scored.log_probs[2:]) + gain) / 3, abs=1e-5)
    if isinstance(translator, CTranslate2Translator):
        given = translator.score(["pes", "", "pes spí velký dům"], ["", "dog", best.text])
        expected = [math.nan, math.nan, sum(scored.log_probs[2:]) / 3]
        assert given == pytest.approx(expected, abs=1e-5, nan_ok=True)
        cut = open_translator(engine, model, OPTIONS.with_changes(maximum_target_tokens=4))
        (scored,) = scorer.score_batch([["▁pes"]], [["▁house", "▁big", "▁sleeps"]])
        assert cut.score(["pes"], ["sleeps dog"]) == pytest.approx([sum(scored.log_probs[2:]) / 2])


@pytest.mark.parametrize(
    ("engine", "changes", "device", "message"),
    [
        ("fairseq", {"compute_type": "int8"}, "auto", "no compute type int8"),
        ("torch", {"compute_type": "int8"}, "auto", r"no compute type int8.*ctranslate2"),
        ("ctranslate2", {"compute_type": "float16"}, "cpu", "not available on cpu"),
        ("torch", {"compute_type": "float16"}, "cpu", "float16 is for GPUs"),
        ("ctranslate2", {}, "tpu", "there is no device 'tpu'"),
        ("torch", {}, "tpu", "there is no device 'tpu'"),
        ("marian", {}, "auto", "there is no engine 'marian'"),
    ],
)
def test_unsupported_options_are_error(
    engine: str, changes: dict[str, str], device: str, message: str, tiny_model: Path
) -> None:
    options = DecodingOptions.model_validate(changes)
    with pytest.raises(InputError, match=message):
        open_translator(engine, tiny_model, options, Placement(device))


def test_module_without_engine_is_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paraforge.translation.engines.ENGINES", {"empty": "json"})
    with pytest.raises(InputError, match="the engine 'empty': json defines 0 public subclasses of Engine"):
        open_translator("empty", None)


@pytest.mark.parametrize(
    ("engine", "settings", "message"),
    [
        *((engine, {"colour": 1}, f"the engine '{engine}' has no setting colour") for engine in ENGINES),
        # The settings of the engine are named.
        ("fake", {"speed": 3}, r"no setting speed.*seed"),
        ("ctranslate2", {"defects": 0.1, "seed": 2}, "no setting defects, seed"),
    ],
)
def test_setting_of_other_engine_is_error(
    engine: str, settings: dict[str, float], message: str, tiny_model: Path
) -> None:
    with pytest.raises(InputError, match=message):
        open_translator(engine, tiny_model, settings=settings)


def test_broken_or_missing_model_error_names_it(tiny_model: Path, tmp_path: Path) -> None:
    broken = tmp_path / "model"
    shutil.copytree(tiny_model, broken)
    model = open_model(broken)
    (broken / "ctranslate2" / "model.bin").write_bytes(b"\0" * 100)
    with pytest.raises(InputError, match="CTranslate2 cannot open it"):
        open_translator("ctranslate2", model)
    with pytest.raises(InputError, match="needs a model"):
        open_translator("ctranslate2", None)


def test_registry_imports_no_engine() -> None:
    code = (
        "import sys; import paraforge.translation.engines; "
        "heavy = ('ctranslate2', 'torch', 'fairseq', 'sentencepiece'); "
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
