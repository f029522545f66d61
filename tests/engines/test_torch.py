"""The engine torch: every kind of model, half precision, varied hypotheses, and what goes wrong."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from paraforge.decoding.batching import EngineError
from paraforge.decoding.translator import DecodingOptions, Hypotheses, Placement
from paraforge.engines import open_translator
from paraforge.engines.torch import TorchTranslator
from paraforge.errors import InputError
from paraforge.models.model_file import ModelFile
from paraforge.shards.resources import Resources
from paraforge.shards.schema import schema_of
from paraforge.shards.store import ShardDirectory, ShardWriter
from paraforge.text.units import load_processor
from paraforge.torch_search.faults import DeviceLostError
from paraforge.torch_search.graphs import RecordedSteps
from paraforge.torch_search.search import Search
from paraforge.torch_search.weights import load_weights
from paraforge.translation.parameters import TranslateParameters
from paraforge.translation.translate import translate
from tests.models.tiny import bitext, save_checkpoint, write_ctranslate2

SENTENCES = [source for source, _ in bitext(60, seed=5, longest=9)]
OPTIONS = DecodingOptions(beam=4, maximum_target_tokens=30)


def run(
    engine: str,
    model: Path,
    sentences: list[str] | None = None,
    options: DecodingOptions = OPTIONS,
    **settings: Any,
) -> list[Hypotheses]:
    translator = open_translator(engine, model, options, Placement("cpu"), settings)
    return list(translator.translate(SENTENCES if sentences is None else sentences))


def agree(expected: list[Hypotheses], found: list[Hypotheses], tolerance: float = 1e-4) -> None:
    for one, other in zip(expected, found, strict=True):
        assert [h.text for h in one.hypotheses] == [h.text for h in other.hypotheses]
        for a, b in zip(one.hypotheses, other.hypotheses, strict=True):
            assert a.score == pytest.approx(b.score, abs=tolerance)
            assert (a.tokens, a.output_truncated) == (b.tokens, b.output_truncated)


def write_variant(tiny: Path, folder: Path, **changes: Any) -> Path:
    """A random model of another architecture over the tiny model's vocabulary."""
    from paraforge.models.fairseq_compat import import_fairseq, load_checkpoint

    import_fairseq()
    from fairseq.data import Dictionary
    from fairseq.models import build_model
    from fairseq.tasks.translation import TranslationTask

    folder.mkdir()
    for name in ("dict.cs.txt", "dict.en.txt", "sentencepiece.model"):
        shutil.copy(tiny / name, folder)
    arguments = argparse.Namespace(**{**vars(load_checkpoint(tiny / "checkpoint.pt")["args"]), **changes})
    dictionary = Dictionary.load(str(tiny / "dict.cs.txt"))
    torch.manual_seed(3)
    with contextlib.redirect_stdout(io.StringIO()):
        model = build_model(arguments, TranslationTask(arguments, dictionary, dictionary))
    for name, parameter in model.named_parameters():
        if "norm" not in name:
            # Strong layers and weak embeddings: otherwise every token is followed by itself.
            torch.nn.init.normal_(parameter, std=0.4 if "embed" in name or parameter.dim() == 1 else 1.0)
    save_checkpoint(folder / "checkpoint.pt", arguments, model.state_dict())
    return folder


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"encoder_normalize_before": True, "decoder_normalize_before": True}, id="pre-norm"),
        pytest.param({"encoder_learned_pos": True, "decoder_learned_pos": True}, id="learned positions"),
        pytest.param(
            {"share_all_embeddings": False, "share_decoder_input_output_embed": False}, id="own embeddings"
        ),
        pytest.param(
            {"activation_fn": "gelu", "no_scale_embedding": True}, id="gelu, embeddings as they are"
        ),
        pytest.param({"layernorm_embedding": True, "encoder_layers": 3}, id="normalised embeddings"),
    ],
)
def test_architectures_agree_with_fairseq(
    changes: dict[str, Any], tiny_fairseq: Path, tmp_path: Path
) -> None:
    model = write_variant(tiny_fairseq, tmp_path / "model", **changes)
    converted = write_ctranslate2(model, tmp_path / "converted")
    # Random models seldom end a sentence, and cut hypotheses fairseq ranks by the end that it forces on them:
    # with one hypothesis there is nothing to rank.
    options = DecodingOptions(beam=1, maximum_target_tokens=12)
    expected = run("fairseq", model, SENTENCES[:20], options)
    agree(expected, run("torch", converted, SENTENCES[:20], options))
    assert len({result.hypotheses[0].text for result in expected}) > 5


def test_weights_stored_in_few_bits_are_read(tiny_fairseq: Path, tmp_path: Path) -> None:
    from ctranslate2.converters import FairseqConverter

    plain = write_ctranslate2(tiny_fairseq, tmp_path / "float32")
    expected = ModelFile(plain)
    name = "decoder/layer_0/ffn/linear_0/weight"
    for kind, tolerance in (("int8", 0.01), ("int16", 0.01), ("float16", 1e-3), ("bfloat16", 1e-2)):
        folder = tmp_path / kind
        with contextlib.redirect_stdout(io.StringIO()):
            FairseqConverter(
                str(tiny_fairseq / "checkpoint.pt"), str(tiny_fairseq), source_lang="cs", target_lang="en"
            ).convert(str(folder), quantization=kind)
        found = ModelFile(folder).array(name)
        assert found.dtype == np.float32
        assert np.abs(found - expected.array(name)).max() < tolerance * np.abs(found).max()
        shutil.copy(tiny_fairseq / "sentencepiece.model", folder)
        assert len(run("torch", folder, SENTENCES[:3])) == 3


def test_tied_matrices_are_there_once(tiny_ctranslate2: Path) -> None:
    weights = load_weights(ModelFile(tiny_ctranslate2), torch.device("cpu"), torch.float32)
    assert weights.source.tokens.data_ptr() == weights.target.tokens.data_ptr()
    assert weights.target.tokens.data_ptr() == weights.projection.weight.data_ptr()


def test_bfloat16_is_close(tiny_ctranslate2: Path) -> None:
    expected = run("torch", tiny_ctranslate2)
    found = run(
        "torch",
        tiny_ctranslate2,
        options=DecodingOptions(beam=4, maximum_target_tokens=30, compute_type="bfloat16"),
    )
    same = [a.hypotheses[0].text == b.hypotheses[0].text for a, b in zip(expected, found, strict=True)]
    assert sum(same) > 0.8 * len(same)
    for one, other, equal in zip(expected, found, same, strict=True):
        assert not equal or abs(one.hypotheses[0].score - other.hypotheses[0].score) < 0.05


def test_target_length_follows_source_length_if_asked(tiny_ctranslate2: Path) -> None:
    found = run("torch", tiny_ctranslate2, target_factor=0.5, target_extra=1)
    processor = load_processor(tiny_ctranslate2 / "sentencepiece.model")
    for sentence, result in zip(SENTENCES, found, strict=True):
        source = len(processor.encode(sentence)) + 1
        assert result.hypotheses[0].tokens <= max(2, int(0.5 * source) + 1)
    assert any(result.hypotheses[0].output_truncated for result in found)


def test_groups_and_samples_give_different_hypotheses(tiny_ctranslate2: Path) -> None:
    options = DecodingOptions(beam=6, nbest=3, maximum_target_tokens=30)
    for settings in ({"groups": 3, "diversity": 3.0}, {"method": "sampling", "temperature": 1.5}):
        found = run("torch", tiny_ctranslate2, options=options, **settings)
        for result in found:
            texts = [h.text for h in result.hypotheses]
            scores = [h.score for h in result.hypotheses]
            assert 1 <= len(texts) <= 3
            assert scores == sorted(scores, reverse=True)
        assert found == run("torch", tiny_ctranslate2, options=options, **settings)
        assert sum(len(result.hypotheses) for result in found) > 2 * len(found)


def test_a_forced_beginning_is_in_every_text(tiny_ctranslate2: Path) -> None:
    for result in run("torch", tiny_ctranslate2, forced_prefix="big house"):
        assert result.hypotheses[0].text.startswith("big house")


def test_settings_are_in_the_fingerprint_and_are_checked(tiny_ctranslate2: Path) -> None:
    def fingerprint(**settings: Any) -> str:
        return open_translator("torch", tiny_ctranslate2, OPTIONS, Placement("cpu"), settings).fingerprint

    changes: list[dict[str, Any]] = [
        {},
        {"groups": 2},
        {"method": "sampling"},
        {"method": "sampling", "seed": 2},
        {"target_factor": 2.0},
    ]
    assert len({fingerprint(**one) for one in changes}) == len(changes)
    assert fingerprint(groups=1) == fingerprint()
    for wrong, message in (
        ({"speed": 3}, "no setting speed"),
        ({"groups": 3}, "cannot be shared by 3 groups"),
        ({"method": "sampling", "groups": 2}, "samples have no groups"),
        ({"top_p": 0.0}, "top_p is 0.0"),
    ):
        with pytest.raises(InputError, match=message):
            fingerprint(**wrong)


def test_recorded_steps_give_what_plain_steps_give(
    tiny_ctranslate2: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bookkeeping of CUDA graphs with a recording that computes; the graphs themselves need a GPU."""

    class Recording:
        def __init__(self, step: Any, state: Any, forcing: bool) -> None:
            self.replay = lambda: step(state, forcing)

    monkeypatch.setattr(
        RecordedSteps, "_recorded", lambda self, step, state, forcing: Recording(step, state, forcing)
    )
    translator = open_translator("torch", tiny_ctranslate2, OPTIONS, Placement("cpu"))
    assert isinstance(translator, TorchTranslator)
    plain = translator._search("float32")
    from paraforge.torch_search.search import Pace

    pace = Pace(look_every=4, keep=0.75, doubling=True, batch_sizes=(8, 16, 32, 64), source_multiple=8)
    recorded = RecordedSteps(Search(plain.weights, plain.rules, pace))
    replaying = Search(plain.weights, plain.rules, pace, recorded.state, recorded.step)
    requests = [translator._request(source) for source in translator.encode(SENTENCES)]
    for _ in range(2):
        for one, other in zip(plain.run(requests), replaying.run(requests), strict=True):
            assert [h.tokens for h in one] == [h.tokens for h in other]
    assert recorded.replayed > 10
    recorded.forget()
    replaying.run(requests)


def test_two_threads_may_share_a_translator(tiny_ctranslate2: Path) -> None:
    translator = open_translator("torch", tiny_ctranslate2, OPTIONS, Placement("cpu", batch_tokens=60))
    halves = [SENTENCES[:30], SENTENCES[30:]]
    expected = [list(translator.translate(half)) for half in halves]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda half: list(translator.translate(half)), halves))
    assert found == expected


# What goes wrong


def test_out_of_memory_halves_the_batch_and_is_remembered(
    tiny_ctranslate2: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = run("torch", tiny_ctranslate2)
    sizes: list[int] = []
    original = Search.find

    def small(self: Search, requests: Any) -> Any:
        sizes.append(len(requests))
        if len(requests) > 10:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")
        return original(self, requests)

    monkeypatch.setattr(Search, "find", small)
    translator = open_translator("torch", tiny_ctranslate2, OPTIONS, Placement("cpu", batch_tokens=10_000))
    agree(expected, list(translator.translate(SENTENCES)), 1e-5)
    assert sizes[0] == 60
    assert translator.counts["halved"] > 0  # type: ignore[attr-defined]
    sizes.clear()
    agree(expected, list(translator.translate(SENTENCES)), 1e-5)
    assert max(sizes) <= 15


def test_a_sentence_that_does_not_fit_alone_fails_alone(
    tiny_ctranslate2: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Search.find

    def without_long(self: Search, requests: Any) -> Any:
        if max(len(request.tokens) for request in requests) > 9:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes")
        return original(self, requests)

    monkeypatch.setattr(Search, "find", without_long)
    found = run("torch", tiny_ctranslate2, ["pes spí", "pes " * 12, "velký dům"])
    assert [result.failed is None for result in found] == [True, False, True]
    assert "can't allocate memory" in str(found[1].failed)


def test_what_is_no_number_in_half_precision_is_computed_again_and_counted(
    tiny_ctranslate2: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = run("torch", tiny_ctranslate2)
    original = load_weights

    def broken(file: ModelFile, device: torch.device, dtype: torch.dtype) -> Any:
        weights = original(file, device, dtype)
        if dtype == torch.bfloat16:
            weights.decoder[0].feed_forward.inner.weight.fill_(math.inf)
        return weights

    monkeypatch.setattr("paraforge.torch_search.weights.load_weights", broken)
    options = DecodingOptions(beam=4, maximum_target_tokens=30, compute_type="bfloat16")
    translator = open_translator("torch", tiny_ctranslate2, options, Placement("cpu", batch_tokens=10_000))
    agree(expected, list(translator.translate(SENTENCES)), 1e-5)
    assert translator.counts["recomputed"] == 1  # type: ignore[attr-defined]
    assert translator.counts["recomputed_sentences"] == len(SENTENCES)  # type: ignore[attr-defined]


def write_ingested(path: Path, sentences: list[str]) -> Path:
    columns = {
        "source": ["test"] * len(sentences),
        "line": list(range(1, len(sentences) + 1)),
        "source_text": sentences,
        "reference": ["x"] * len(sentences),
        "rejected": [None] * len(sentences),
        "first_row": list(range(len(sentences))),
    }
    schema = schema_of(columns)
    writer = ShardWriter(path, schema)
    writer.write(pa.table([pa.array(columns[field.name], field.type) for field in schema], schema=schema))
    writer.close({"step": "ingest"})
    return path


def test_a_lost_device_stops_the_run_and_finished_shards_stay(
    tiny_ctranslate2: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentences = [f"{text} {number % 7 * 'a '}" for number, text in enumerate(SENTENCES)]
    ingested = write_ingested(tmp_path / "ingested", list(dict.fromkeys(sentences)))
    parameters = TranslateParameters(engine="torch", beam=2, sentences_per_task=20, maximum_target_tokens=20)
    resources = Resources(devices=["cpu"], threads=1, work=tmp_path / "work")
    original = Search.find
    calls: list[int] = []

    def lost(self: Search, requests: Any) -> Any:
        calls.append(len(requests))
        if sum(calls) > 45:
            raise RuntimeError("CUDA error: an illegal memory access was encountered\nmore")
        return original(self, requests)

    with monkeypatch.context() as patch:
        patch.setattr(Search, "find", lost)
        with pytest.raises(DeviceLostError, match="does not answer any more"):
            translate(parameters, ingested, tiny_ctranslate2, tmp_path / "translated", resources)
    assert issubclass(DeviceLostError, EngineError)
    assert not (tmp_path / "translated").exists()
    report = translate(parameters, ingested, tiny_ctranslate2, tmp_path / "translated", resources)
    assert report.reused_tasks == 2
    assert report.translated == report.rows == len(dict.fromkeys(sentences))
    published = ShardDirectory(tmp_path / "translated").read(0, ["translation", "failed"])
    assert published.column("failed").null_count == report.rows


def test_a_vocabulary_that_does_not_fit_is_refused_before_any_work(
    tiny_ctranslate2: Path, tmp_path: Path
) -> None:
    model = tmp_path / "model"
    shutil.copytree(tiny_ctranslate2, model)
    path = model / "shared_vocabulary.json"
    tokens = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(tokens[:-3]), encoding="utf-8")
    ingested = write_ingested(tmp_path / "ingested", SENTENCES[:4])
    parameters = TranslateParameters(engine="torch", beam=2)
    resources = Resources(devices=["cpu"], threads=1, work=tmp_path / "work")
    with pytest.raises(InputError, match="rows, but the source vocabulary has"):
        translate(parameters, ingested, model, tmp_path / "translated", resources)
    assert not (tmp_path / "work" / "translate-sentences").exists()

    path.write_text(json.dumps([f"other{n}" if n > 9 else t for n, t in enumerate(tokens)]), encoding="utf-8")
    with pytest.raises(InputError, match="not of this vocabulary"):
        translate(parameters, ingested, model, tmp_path / "translated", resources)


@pytest.mark.parametrize("damage", ["cut short", "another kind"])
def test_a_damaged_model_is_an_error_that_names_it(
    damage: str, tiny_ctranslate2: Path, tmp_path: Path
) -> None:
    model = tmp_path / "model"
    shutil.copytree(tiny_ctranslate2, model)
    whole = (model / "model.bin").read_bytes()
    kept = (
        whole[: len(whole) // 2]
        if damage == "cut short"
        else whole.replace(b"TransformerSpec", b"TransformerZpec")
    )
    (model / "model.bin").write_bytes(kept)
    with pytest.raises(InputError, match=r"damaged|TransformerZpec"):
        open_translator("torch", model, OPTIONS, Placement("cpu"))
