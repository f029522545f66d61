"""CTranslate2 as it is used on a GPU, by a stand-in for one: tasks at a time, windows, room for a batch."""

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from paraforge.base.shards.resources import Resources
from paraforge.translation.decoding.faults import limit_of
from paraforge.translation.decoding.translator import DecodingOptions, Placement
from paraforge.translation.engines import ctranslate2, open_translator
from paraforge.translation.stage.sentences import choose_engine, plan_workplace, sentences_step
from tests.translation.engines.tiny_models import SENTENCES, agree

OPTIONS = DecodingOptions(beam=2, maximum_target_tokens=20, compute_type="float32")


class Gpu:
    """CTranslate2's module where the CPU is the one GPU; it has room for some source tokens."""

    get_cuda_device_count = staticmethod(lambda: 1)
    get_supported_compute_types = staticmethod(lambda device, number: {"float32", "float16"})

    def __init__(self, room: int = 1_000_000) -> None:
        self.sizes: list[int] = []
        self.refused = 0
        self._room = room

    def Translator(self, path: str, device: str, **arguments: Any) -> Any:
        import ctranslate2 as library

        assert device == "cuda"
        own = library.Translator(path, device="cpu", **arguments)
        return SimpleNamespace(translate_batch=partial(self._translate, own), score_batch=own.score_batch)

    def _translate(self, own: Any, batch: list[list[str]], *prefixes: Any, **arguments: Any) -> Any:
        self.sizes.append(len(batch))
        if len(batch) > 1 and len(batch) * (1 + max(map(len, batch))) > self._room:
            self.refused += 1
            raise RuntimeError("CUDA failed with error out of memory")
        return own.translate_batch(batch, *prefixes, **arguments)

    def open(self, model: Path, monkeypatch: pytest.MonkeyPatch, batch_tokens: int = 0) -> Any:
        """The engine on this GPU."""
        monkeypatch.setattr(ctranslate2, "_library", lambda: self)
        return open_translator("ctranslate2", model, OPTIONS, Placement("cuda", batch_tokens=batch_tokens))


def test_a_window_of_a_gpu_fills_its_batches(tiny_ctranslate2: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Gpu()
    translator = gpu.open(tiny_ctranslate2, monkeypatch)
    assert translator.batch_tokens == 16_384
    sentences = ["pes", "pes spí a velký dům spí"] * 4_000
    found = [result.hypotheses[0].text for result in translator.translate(sentences)]
    assert len(set(found)) == 2 and found == found[:2] * 4_000
    # All 4,000 short ones share a batch or two, where windows of 4,096 would give each only 2,048.
    assert max(gpu.sizes) > 3_000


def test_room_for_a_batch_is_learnt_once_and_kept(
    tiny_ctranslate2: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_cpu = open_translator("ctranslate2", tiny_ctranslate2, OPTIONS, Placement("cpu"))
    expected = list(on_cpu.translate(SENTENCES))
    gpu = Gpu(room=60)
    translator = gpu.open(tiny_ctranslate2, monkeypatch, batch_tokens=200)
    with ThreadPoolExecutor(2) as tasks:
        for found in tasks.map(lambda _: list(translator.translate(SENTENCES * 3)), range(2)):
            agree(expected * 3, found, 1e-5)
    refused = gpu.refused
    assert refused and 0 < limit_of(translator).halvings < 8
    agree(expected * 5, list(translator.translate(SENTENCES * 5)), 1e-5)
    assert gpu.refused == refused


def test_batches_that_were_begun_are_not_tried_whole_again(
    tiny_ctranslate2: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = Gpu(room=90)
    translator = gpu.open(tiny_ctranslate2, monkeypatch, batch_tokens=40 * 3)
    list(translator.translate(["pes spí"] * 400))
    # The first of 40 is tried twice; the two that wait behind it, once each.
    assert (translator.queued_batches, gpu.refused, limit_of(translator).halvings) == (3, 4, 1)


def test_one_thread_tokenises_while_another_feeds(
    tiny_ctranslate2: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    translator = Gpu().open(tiny_ctranslate2, monkeypatch)
    encode, threads, sizes = translator.encode, set(), []

    def listening(sentences: list[str]) -> Any:
        threads.add(threading.current_thread())
        sizes.append(len(sentences))
        return encode(sentences)

    monkeypatch.setattr(translator, "encode", listening)
    list(translator.translate(["pes"] * 5_000))
    assert len(threads) == 1 and threads != {threading.current_thread()}
    assert max(sizes) <= 1_024 and sum(sizes) == 5_000


@pytest.mark.parametrize(("device", "at_once"), [("cuda:0", 2), ("cpu", 1)])
def test_a_gpu_has_two_tasks_at_a_time(
    device: str, at_once: int, tiny_ctranslate2: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if device != "cpu":
        monkeypatch.setattr(ctranslate2, "_library", Gpu)
    resources = Resources(devices=[device])
    choice = choose_engine("ctranslate2", tiny_ctranslate2, OPTIONS, {}, resources)
    step = sentences_step(choice, plan_workplace("ctranslate2", resources, 100_000))
    assert step.at_once == at_once
