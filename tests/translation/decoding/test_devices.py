"""Which devices are used and by whom, and what is refused before any work, on machines that are not here."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from paraforge.base.errors import InputError
from paraforge.base.shards.resources import Resources
from paraforge.translation.decoding.torch_device import device_of, prepare_thread
from paraforge.translation.decoding.translator import DecodingOptions, Placement
from paraforge.translation.engines import engine_module
from paraforge.translation.engines.torch import resolve
from paraforge.translation.stage import sentences
from paraforge.translation.stage.sentences import (
    EngineChoice,
    Workplace,
    build_translation,
    choose_engine,
    devices_of,
    plan_workplace,
    sentences_step,
)

AUTO = DecodingOptions(compute_type="auto")
SCHEDULER = "tcp://host:8786"
CHOICE = EngineChoice("fake", DecodingOptions(), {}, "x", None)


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A machine with GPUs of given generations."""

    def install(*generations: tuple[int, int]) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: bool(generations))
        monkeypatch.setattr(torch.cuda, "device_count", lambda: len(generations))
        monkeypatch.setattr(
            torch.cuda, "get_device_capability", lambda device: generations[torch.device(device).index or 0]
        )

    return install


def choose(resources: Resources) -> DecodingOptions:
    """What is chosen for the engine torch, as far as devices decide it."""
    return sentences._resolved(engine_module("torch"), AUTO, resources, "torch")


def test_every_gpu_has_a_process(gpus: Any) -> None:
    gpus(*[(9, 0)] * 8)
    found = plan_workplace("torch", Resources(), 10**6)
    assert (found.workers, found.devices[7], found.threads) == (8, "cuda:7", 1)
    assert choose(Resources()).compute_type == "bfloat16"
    named = plan_workplace("torch", Resources(devices=["cuda:0", "cuda:2"], workers=5), 10**6)
    assert (named.workers, named.devices) == (2, ("cuda:0", "cuda:2"))


def test_without_a_gpu_it_is_the_cpu_or_an_error(gpus: Any) -> None:
    gpus()
    assert devices_of(Resources(), "torch") == ["cpu"]
    for device in ("cuda", "cuda:0"):
        with pytest.raises(InputError, match=f"torch sees no device '{device}'"):
            choose(Resources(devices=[device]))


def test_every_device_is_looked_at_before_work(gpus: Any) -> None:
    gpus((9, 0), (9, 0))
    with pytest.raises(InputError, match="torch sees no device 'cuda:2'"):
        choose(Resources(devices=["cuda:0", "cuda:1", "cuda:2"]))
    with pytest.raises(InputError, match="not both"):
        choose(Resources(devices=["cuda:0", "cpu"]))


@pytest.mark.parametrize(
    ("generation", "kind"),
    [((9, 0), "bfloat16"), ((8, 6), "bfloat16"), ((7, 5), "float16"), ((6, 1), "float32")],
)
def test_what_is_fast_depends_on_the_generation(gpus: Any, generation: tuple[int, int], kind: str) -> None:
    gpus(generation)
    assert resolve(AUTO, Placement("cuda")).compute_type == kind


def test_different_gpus_want_a_word_from_the_user(gpus: Any) -> None:
    gpus((9, 0), (7, 5))
    with pytest.raises(InputError, match="bfloat16 of cuda:0, float16 of cuda:1"):
        choose(Resources())


@pytest.mark.parametrize(("name", "number"), [("auto", 0), ("cuda", 0), ("cuda:0", 0), ("cuda:1", 1)])
def test_a_thread_can_make_any_device_its_current_one(
    name: str, number: int, gpus: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """torch.cuda.set_device, torch's own up to the driver, refuses a device without a number."""
    gpus((9, 0), (9, 0))
    made: list[int] = []
    monkeypatch.setattr(torch._C, "_cuda_setDevice", made.append, raising=False)
    prepare_thread(device_of(Placement(name)))
    assert made == [number]


def test_a_cluster_is_as_large_as_it_is(gpus: Any) -> None:
    gpus()
    resources = Resources(scheduler=SCHEDULER, devices=["cuda"], cuda_graphs=True)
    found = plan_workplace("torch", resources, 10**6)
    assert (found.workers, found.on_gpu, found.graphs) == (None, True, True)
    with pytest.raises(InputError, match="is chosen on this machine, and torch sees no device"):
        choose(resources)
    named = sentences._resolved(
        engine_module("torch"), DecodingOptions(compute_type="float16"), resources, "torch"
    )
    assert named.compute_type == "float16"


def test_workers_without_numbers_cannot_share_devices_out(monkeypatch: pytest.MonkeyPatch) -> None:
    choice = EngineChoice("fake", DecodingOptions(), {}, "x", None)
    build_translation(choice, Workplace(2, ("cpu", "cpu"), 1, 0))  # in process, and of a local cluster
    monkeypatch.setattr("distributed.get_worker", lambda: SimpleNamespace(name="host-a"))
    with pytest.raises(InputError, match="CUDA_VISIBLE_DEVICES"):
        build_translation(choice, Workplace(None, ("cuda:0", "cuda:1"), 1, 0))


def test_the_engine_is_checked_before_the_model(tmp_path: Path, gpus: Any) -> None:
    gpus()
    with pytest.raises(InputError, match="torch sees no device"):
        choose_engine("torch", tmp_path / "none", AUTO, {}, Resources(devices=["cuda"]))


def threads_and_device(workplace: Workplace) -> tuple[int, str]:
    """What an engine gets on the worker that is asked."""
    placement = workplace.placement(workplace.devices[0])
    return placement.threads, placement.device


@pytest.mark.parametrize("gpus_of_worker", [0, 1])
def test_auto_on_a_cluster_asks_its_workers(gpus_of_worker: int) -> None:
    """GPU workers are asked for where there are any, and a worker uses all of the threads that it has."""
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
