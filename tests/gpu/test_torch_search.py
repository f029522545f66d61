"""The torch search on a GPU: recorded steps, failures while recording, devices."""

import dataclasses
from typing import Any

import pytest
import torch

from paraforge.translation.decoding.device import device_of, prepare_thread
from paraforge.translation.decoding.translator import Placement
from paraforge.translation.torch_search import graphs
from paraforge.translation.torch_search.graphs import RecordedSteps
from paraforge.translation.torch_search.search import Pace, Search
from paraforge.translation.torch_search.state import Found
from paraforge.translation.torch_search.transformer import Weights
from tests.translation.torch_search.random_weights import random_weights, rules, sentences

PACE = Pace(look_every=2, keep=0.75, doubling=True, batch_sizes=(8, 24), source_multiple=8, room=4)
# The same comparisons are made on the CPU, where nothing is recorded: that much is always run.
DEVICES = [torch.device("cpu"), pytest.param(torch.device("cuda", 0), marks=pytest.mark.gpu)]


def on(device: torch.device, part: Any) -> Any:
    """The same weights on another device."""
    if isinstance(part, torch.Tensor):
        return part.to(device)
    if isinstance(part, list):
        return [on(device, one) for one in part]
    if dataclasses.is_dataclass(part) and not isinstance(part, type):
        fields = {field.name: getattr(part, field.name) for field in dataclasses.fields(part)}
        return type(part)(**{name: on(device, value) for name, value in fields.items()})
    return part


def searches(device: torch.device) -> tuple[Search, Search, RecordedSteps]:
    """The plain search on a device, the one that replays steps there, and its recordings."""
    asked = rules(4)
    weights: Weights = on(device, random_weights(layers=1))
    recorded = RecordedSteps(Search(weights, asked, PACE))
    replaying = Search(weights, asked, PACE, recorded.state, recorded.step)
    return Search(weights, asked, PACE), replaying, recorded


def same(one: list[list[Found]], other: list[list[Found]]) -> None:
    for first, second in zip(one, other, strict=True):
        assert [h.tokens for h in first] == [h.tokens for h in second]
        assert [h.score for h in first] == pytest.approx([h.score for h in second], abs=1e-4)


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_replayed_steps_match_search(device: torch.device) -> None:
    plain, replaying, recorded = searches(device)
    batches = [sentences(20, seed=seed, cap=9) for seed in (1, 2, 1)]
    for batch in batches:
        same(plain.find(batch).results(), replaying.find(batch).results())
    if device.type == "cuda":
        assert recorded.replayed > 8
        assert recorded.failed == 0


@pytest.mark.parametrize("device", DEVICES, ids=str)
@pytest.mark.parametrize("memory", [True, False])
def test_failed_recording_runs_step_directly(
    memory: bool, device: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, replaying, recorded = searches(device)
    step = recorded._search.step
    failures = 0

    def fail_once(state: Any, forcing: bool) -> None:
        nonlocal failures
        if device.type == "cuda" and torch.cuda.is_current_stream_capturing() and not failures:
            failures += 1
            step(state, forcing)  # something is in the recording already
            raise torch.cuda.OutOfMemoryError("CUDA out of memory") if memory else RuntimeError("capturing")
        step(state, forcing)

    monkeypatch.setattr(recorded._search, "step", fail_once)
    for seed in range(4):
        batch = sentences(20, seed=seed, cap=9)
        same(plain.find(batch).results(), replaying.find(batch).results())
    if device.type == "cuda":
        assert failures == recorded.failed == 1
        # Memory may be there the next time; what else fails is not tried again.
        assert (recorded.replayed > 0) == memory


@pytest.mark.gpu
def test_steps_are_recorded_again_after_freeing() -> None:
    plain, replaying, recorded = searches(torch.device("cuda", 0))
    stream = None
    for seed in range(3):
        replayed = recorded.replayed
        for _ in range(2):
            batch = sentences(20, seed=seed, cap=9)
            same(plain.find(batch).results(), replaying.find(batch).results())
        assert recorded.replayed > replayed
        # One stream for good: each new one would leave a workspace of cuBLAS behind.
        assert stream is None or recorded._stream is stream
        stream = recorded._stream
        recorded.forget()


@pytest.mark.gpu
def test_recordings_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "_MOST_GRAPHS", 2)
    plain, replaying, recorded = searches(torch.device("cuda", 0))
    for _ in range(4):
        same(plain.find(sentences(40)).results(), replaying.find(sentences(40)).results())
    assert len(recorded._graphs) <= 2
    assert recorded.replayed


@pytest.mark.gpu
def test_search_uses_its_own_device() -> None:
    last = torch.device("cuda", torch.cuda.device_count() - 1)
    plain, replaying, _ = searches(last)
    batch = sentences(40)
    torch.cuda.set_device(last)
    expected = plain.find(batch).results()
    torch.cuda.set_device(0)
    for _ in range(3):
        same(expected, replaying.find(batch).results())
    assert torch.cuda.current_device() == 0


@pytest.mark.gpu
def test_thread_can_switch_devices() -> None:
    names = ["auto", "cuda", *(f"cuda:{number}" for number in range(torch.cuda.device_count()))]
    for name in names:
        prepare_thread(device_of(Placement(name)))
        assert torch.cuda.current_device() == int(name.partition(":")[2] or 0)
