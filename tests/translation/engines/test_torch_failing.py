"""The engine torch when memory ends, a device is lost, half precision overflows, or a model is damaged."""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.bitext import write_ingested
from paraforge.base.errors import InputError
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardDirectory
from paraforge.translation.decoding.faults import DeviceLostError, EngineError
from paraforge.translation.decoding.translator import DecodingOptions, Placement
from paraforge.translation.engines import open_translator
from paraforge.translation.models.model_file import ModelFile
from paraforge.translation.stage.parameters import TranslateParameters
from paraforge.translation.stage.translate import translate
from paraforge.translation.torch_search.search import Search
from paraforge.translation.torch_search.weights import load_weights
from tests.translation.engines.tiny_models import OPTIONS, SENTENCES, agree, run


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

    monkeypatch.setattr("paraforge.translation.torch_search.weights.load_weights", broken)
    options = DecodingOptions(beam=4, maximum_target_tokens=30, compute_type="bfloat16")
    translator = open_translator("torch", tiny_ctranslate2, options, Placement("cpu", batch_tokens=10_000))
    agree(expected, list(translator.translate(SENTENCES)), 1e-5)
    assert translator.counts["recomputed"] == 1  # type: ignore[attr-defined]
    assert translator.counts["recomputed_sentences"] == len(SENTENCES)  # type: ignore[attr-defined]


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
