"""CTranslate2 as it is used on a GPU, by a stand-in for one: tasks at a time, windows, room for a batch."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from paraforge.base.shards.resources import Resources
from paraforge.translation.decoding.faults import limit_of
from paraforge.translation.decoding.translator import DecodingOptions, Hypotheses, Placement
from paraforge.translation.engines import ctranslate2, open_translator
from paraforge.translation.stage.sentences import choose_engine, plan_workplace, sentences_step
from tests.translation.engines.tiny_models import SENTENCES, agree

OPTIONS = DecodingOptions(beam=2, maximum_target_tokens=20, compute_type="float32")


class Gpu:
    """CTranslate2's module where the CPU is the one GPU; it has room for some source tokens."""

    def __init__(self, room: int = 1_000_000) -> None:
        self.sizes: list[int] = []
        self.refused = 0
        self._room = room

    def get_cuda_device_count(self) -> int:
        return 1

    def get_supported_compute_types(self, device: str, number: int) -> set[str]:
        return {"float32", "float16"}

    def Translator(self, path: str, **arguments: Any) -> Any:
        import ctranslate2 as library

        assert arguments.pop("device") == "cuda"
        return _Translator(library.Translator(path, device="cpu", **arguments), self)

    def translated(self, batch: list[list[str]]) -> None:
        """Note a batch. Raises RuntimeError: there is no room for it."""
        self.sizes.append(len(batch))
        if len(batch) > 1 and len(batch) * (1 + max(map(len, batch))) > self._room:
            self.refused += 1
            raise RuntimeError("CUDA failed with error out of memory")


class _Translator:
    def __init__(self, own: Any, gpu: Gpu) -> None:
        self._own, self._gpu = own, gpu

    def translate_batch(self, tokens: list[list[str]], *prefixes: Any, **arguments: Any) -> Any:
        self._gpu.translated(tokens)
        return self._own.translate_batch(tokens, *prefixes, **arguments)

    def score_batch(self, *given: Any, **arguments: Any) -> Any:
        return self._own.score_batch(*given, **arguments)


def opened(model: Path, gpu: Gpu, monkeypatch: pytest.MonkeyPatch, batch_tokens: int = 0) -> Any:
    monkeypatch.setattr(ctranslate2, "_library", lambda: gpu)
    return open_translator("ctranslate2", model, OPTIONS, Placement("cuda", batch_tokens=batch_tokens))


def best(results: list[Hypotheses]) -> list[str]:
    return [result.hypotheses[0].text for result in results]


def test_a_window_of_a_gpu_fills_its_batches(tiny_ctranslate2: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Gpu()
    translator = opened(tiny_ctranslate2, gpu, monkeypatch)
    assert translator.batch_tokens == 16_384
    sentences = ["pes", "pes spí a velký dům spí"] * 4_000
    found = best(list(translator.translate(sentences)))
    assert found == best(list(translator.translate(sentences[:2]))) * 4_000
    # All 4,000 short ones share a batch or two, where windows of 4,096 would give each only 2,048.
    assert max(gpu.sizes) > 3_000


def test_room_for_a_batch_is_learnt_once_and_kept(
    tiny_ctranslate2: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = list(
        open_translator("ctranslate2", tiny_ctranslate2, OPTIONS, Placement("cpu")).translate(SENTENCES)
    )
    gpu = Gpu(room=60)
    translator = opened(tiny_ctranslate2, gpu, monkeypatch, batch_tokens=200)
    with ThreadPoolExecutor(2) as tasks:
        for found in tasks.map(lambda _: list(translator.translate(SENTENCES * 3)), range(2)):
            agree(expected * 3, found, 1e-5)
    assert gpu.refused and 0 < limit_of(translator).halvings < 8
    refused = gpu.refused
    agree(expected * 5, list(translator.translate(SENTENCES * 5)), 1e-5)
    assert gpu.refused == refused


def test_batches_that_were_begun_are_not_tried_whole_again(
    tiny_ctranslate2: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = Gpu(room=90)
    translator = opened(tiny_ctranslate2, gpu, monkeypatch, batch_tokens=40 * 3)
    list(translator.translate(["pes spí"] * 400))
    # The first of 40 is tried twice; the two that wait behind it, once each.
    assert translator.queued_batches == 3
    assert gpu.refused == 4 and limit_of(translator).halvings == 1


def test_one_thread_tokenises_while_another_feeds(
    tiny_ctranslate2: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    translator = opened(tiny_ctranslate2, Gpu(), monkeypatch)
    encode, threads, sizes = translator.encode, set(), []

    def listening(sentences: list[str]) -> Any:
        threads.add(threading.current_thread())
        sizes.append(len(sentences))
        return encode(sentences)

    monkeypatch.setattr(translator, "encode", listening)
    list(translator.translate(["pes"] * 5_000))
    assert len(threads) == 1 and threads != {threading.current_thread()}
    assert max(sizes) <= 1_024 and sum(sizes) == 5_000


@pytest.mark.parametrize(("engine", "device", "tasks"), [
    ("ctranslate2", "cuda:0", 2), ("ctranslate2", "cpu", 1), ("torch", "cpu", 1), ("fairseq", "cpu", 1),
])  # fmt: skip
def test_a_gpu_has_two_tasks_at_a_time(
    engine: str,
    device: str,
    tasks: int,
    tiny_fairseq: Path,
    tiny_ctranslate2: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if device != "cpu":
        monkeypatch.setattr(ctranslate2, "_library", Gpu)
    resources = Resources(devices=[device])
    model = tiny_fairseq if engine == "fairseq" else tiny_ctranslate2
    choice = choose_engine(engine, model, OPTIONS, {}, resources)
    assert sentences_step(choice, plan_workplace(engine, resources, 100_000)).at_once == tasks
