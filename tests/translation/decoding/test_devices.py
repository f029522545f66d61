"""Choice of devices."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from paraforge.base.errors import InputError
from paraforge.base.shards.resources import Resources
from paraforge.translation.decoding.device import fast_type
from paraforge.translation.decoding.translator import DecodingOptions, Placement
from paraforge.translation.engines import ctranslate2, engine_class
from paraforge.translation.stage import sentences
from paraforge.translation.stage.sentences import (
    EngineChoice,
    Workplace,
    build_translation,
    device_of_worker,
    devices_of,
    plan_workplace,
    sentences_step,
)

CHOICE = EngineChoice("fake", DecodingOptions(), {}, "x", None)


def test_unnumbered_workers_cannot_share_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    build_translation(CHOICE, Workplace(2, ("cpu", "cpu"), 1, 0))  # in process, and of a local cluster
    monkeypatch.setattr("distributed.get_worker", lambda: SimpleNamespace(name="host-a"))
    two = Workplace(None, ("cuda:0", "cuda:1"), 1, 0)
    with pytest.raises(InputError, match="CUDA_VISIBLE_DEVICES"):
        build_translation(CHOICE, two)
    for number in range(4):
        monkeypatch.setattr("distributed.get_worker", lambda name=number: SimpleNamespace(name=name))
        assert device_of_worker(two) == f"cuda:{number % 2}"


@pytest.mark.parametrize(
    ("engine", "resources", "sentences_to_translate", "workers", "threads"),
    [
        ("ctranslate2", {"devices": ["cpu"]}, 10**6, 1, 8),  # the model is loaded once
        ("ctranslate2", {"devices": ["cpu"], "workers": 4}, 10**6, 4, 2),
        ("ctranslate2", {"devices": ["cpu"], "workers": 4, "threads": 3}, 10**6, 4, 3),
        ("ctranslate2", {"devices": ["cuda:0", "cuda:1"], "workers": 4}, 10, 2, 1),
        ("fake", {}, 30_001, 8, 1),
        ("fake", {}, 30_000, 1, 8),  # too few for a cluster
        ("server", {"workers": 4}, 10**6, 1, 8),
    ],
)
def test_processes_and_threads_share_the_cores(
    monkeypatch: pytest.MonkeyPatch,
    engine: str,
    resources: dict[str, Any],
    sentences_to_translate: int,
    workers: int,
    threads: int,
) -> None:
    monkeypatch.setattr(sentences, "available_cores", lambda: 8)
    found = plan_workplace(engine, Resources.model_validate(resources), sentences_to_translate)
    assert (found.workers, found.threads) == (workers, threads)


def test_gpus_are_counted_by_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    library = SimpleNamespace(get_cuda_device_count=lambda: 1)
    monkeypatch.setattr(sentences, "load_ctranslate2", lambda: library)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    found = {engine: len(devices_of(Resources(), engine)) for engine in ("ctranslate2", "torch", "fairseq")}
    assert found == {"ctranslate2": 1, "torch": 2, "fairseq": 2}
    assert {*devices_of(Resources(), "fake"), *devices_of(Resources(), "server")} == {"cpu"}
    with pytest.raises(InputError, match="no device 'cuda:2'"):
        engine_class("fairseq").resolve(DecodingOptions(), Placement("cuda:2"))


def test_ctranslate2_settings_on_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    library = SimpleNamespace(
        get_cuda_device_count=lambda: 1,
        get_supported_compute_types=lambda device, number: {"float32", "float16", "int8"},
    )
    monkeypatch.setattr(ctranslate2, "load_ctranslate2", lambda: library)
    monkeypatch.setattr(ctranslate2, "preload_cublas", lambda: None)
    found = ctranslate2.CTranslate2Translator.resolve(DecodingOptions(compute_type="auto"), Placement("auto"))
    assert (found.compute_type, found.shortlist) == ("float16", False)
    with pytest.raises(InputError, match="a shortlist is for CPUs"):
        ctranslate2.CTranslate2Translator.resolve(DecodingOptions(shortlist=True), Placement("cuda"))


@pytest.mark.parametrize(
    ("generation", "kind"),
    [((8, 0), "bfloat16"), ((7, 5), "float16"), ((7, 0), "float16"), ((6, 1), "float32")],
)
def test_fast_compute_type_of_gpu(
    generation: tuple[int, int], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.get_device_capability", lambda device: generation)
    assert fast_type(torch.device("cuda", 0)) == kind


def threads_and_device(workplace: Workplace) -> tuple[int, str]:
    """Return the threads and the device that an engine gets on a worker."""
    placement = workplace.placement(workplace.devices[0])
    return placement.threads, placement.device


@pytest.mark.parametrize("gpus_of_worker", [0, 1])
def test_auto_device_asks_cluster_workers(gpus_of_worker: int) -> None:
    """If any worker has a GPU, the run asks for GPU workers. A worker uses all of its threads."""
    from distributed import Client, LocalCluster

    declared = {"GPU": 1} if gpus_of_worker else None
    with LocalCluster(
        n_workers=1,
        threads_per_worker=3,
        processes=False,
        protocol="tcp://",
        resources=declared,
        dashboard_address=None,
    ) as cluster:
        resources = Resources(scheduler=cluster.scheduler_address)
        found = plan_workplace("ctranslate2", resources, 10**6)
        assert found.devices == (("cuda",) if gpus_of_worker else ("cpu",))
        assert sentences_step(CHOICE, found).device == found.devices[0]
        with Client(cluster, set_as_default=False) as client:
            assert client.submit(threads_and_device, found).result() == (3, found.devices[0])
        assert not plan_workplace("fake", resources, 10**6).on_gpu
        named = Resources(scheduler=cluster.scheduler_address, devices=["cuda"], threads=2)
        assert plan_workplace("torch", named, 10**6).threads == 2
