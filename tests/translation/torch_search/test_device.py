"""What a GPU asks of the search, as far as it can be seen without one.

Fake tensors of torch have a device and no values: products of tensors on different devices raise, and so does
whatever would wait for a value, which a recording of a step must not do.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from paraforge.translation.torch_search import graphs
from paraforge.translation.torch_search.arena import Arena
from paraforge.translation.torch_search.graphs import RecordedSteps
from paraforge.translation.torch_search.layers import Weights
from paraforge.translation.torch_search.results import Found
from paraforge.translation.torch_search.search import Pace, Request, Search, advance
from paraforge.translation.torch_search.settings import SearchSettings
from paraforge.translation.torch_search.state import SearchState, Shape, resized
from paraforge.translation.torch_search.transformer import encode
from tests.translation.torch_search.random_weights import random_weights, rules, sentences

OPTIONS = {
    "beam": SearchSettings(),
    "groups": SearchSettings(groups=2, diversity=1.0),
    "guard": SearchSettings(no_repeat_ngram=2),
    "samples": SearchSettings(method="sampling", top_k=5, top_p=0.9, temperature=0.8),
    "samples of everything": SearchSettings(method="sampling"),
}
PACE = Pace(look_every=2, keep=0.75, doubling=True, batch_sizes=(4, 16, 64), source_multiple=8, room=2)
FEW = Pace(look_every=3, keep=0.75, doubling=True, batch_sizes=(8, 24), source_multiple=8, room=4)


class WithoutCUDA(TorchFunctionMode):
    """Other operations for those few that a torch that is built without CUDA has not for fake GPUs.

    An index that is a tensor of yes and no would wait for its values; there is no operation for it here.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.__getitem__:
            return self._part(*args)
        if func is torch.Tensor.copy_:
            assert args[0].device == args[1].device
            return args[0].add_(args[1].to(args[0].dtype)) if args[0].is_floating_point() else args[0]
        if func is torch.Tensor.__invert__:
            return torch.logical_not(args[0])
        if func is torch.Tensor.contiguous:
            return args[0].clone(memory_format=torch.contiguous_format)
        if func is torch.Tensor.__setitem__:
            part, value = self._part(*args[:2]), args[2]
            assert not isinstance(value, torch.Tensor)
            return part.fill_(value)
        return func(*args, **(kwargs or {}))

    def _part(self, tensor: torch.Tensor, index: Any) -> torch.Tensor:
        place = 0
        parts = index if isinstance(index, tuple) else (index,)
        if Ellipsis in parts:
            middle = parts.index(Ellipsis)
            missing = tensor.ndim - sum(one is not None for one in parts) + 1
            parts = (*parts[:middle], *[slice(None)] * missing, *parts[middle + 1 :])
        for one in parts:
            if isinstance(one, int):
                tensor = tensor.select(place, one)
                continue
            if one is None:
                tensor = tensor.unsqueeze(place)
            else:
                assert isinstance(one, slice), f"an index that is {one!r}"
                tensor = torch.ops.aten.slice(tensor, place, one.start, one.stop, one.step or 1)
            place += 1
        return tensor


class WithoutHost(TorchDispatchMode):
    """Refuses every operation that reads or writes the host's memory, be it one number.

    Fake tensors let a tensor of one number on the CPU mix with those of a GPU, as torch does. A recording
    must not: to bring it there is a copy from memory that is not pinned, for which the host waits.
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves((args, kwargs, result)):
            assert not isinstance(tensor, torch.Tensor) or tensor.is_cuda, f"{func} on {tensor.device}"
        return result


def moved(part: Any, device: str, dtype: torch.dtype) -> Any:
    """Weights elsewhere and in another type."""
    if isinstance(part, torch.Tensor):
        return torch.empty(part.shape, device=device, dtype=dtype)
    if isinstance(part, list):
        return [moved(one, device, dtype) for one in part]
    if dataclasses.is_dataclass(part) and not isinstance(part, type):
        fields = {field.name: getattr(part, field.name) for field in dataclasses.fields(part)}
        return type(part)(**{name: moved(value, device, dtype) for name, value in fields.items()})
    return part


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("forcing", [False, True], ids=["free", "forced"])
@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("pre_norm", [False, True], ids=["post-norm", "pre-norm"])
def test_a_step_is_wholly_on_the_device_and_waits_for_no_value(
    option: str, forcing: bool, dtype: torch.dtype, pre_norm: bool
) -> None:
    here = random_weights(pre_norm=pre_norm)
    # In inference mode composite operations would hide what they are made of.
    with FakeTensorMode(), WithoutCUDA(), torch.no_grad():
        weights: Weights = moved(here, "cuda:1", dtype)
        biased = dataclasses.replace(weights, unbiased=None if forcing else 7, start_from_zero=forcing)
        asked = rules(4, settings=OPTIONS[option], free=int(forcing))
        search = Search(biased, asked)
        groups = OPTIONS[option].groups
        shape = Shape(6, 4, groups, 8, 4, 2 * forcing, asked.settings.no_repeat_ngram > 0, 2, 2, 4)
        state = search.new_state(shape)
        tokens = torch.zeros(6, 8, dtype=torch.int64, device="cuda:1")
        state.memory.copy_(encode(biased, tokens, state.memory_mask))
        before = state.tensors()
        with WithoutHost():
            for _ in range(2):
                advance(biased, state, asked, forcing)
        for name, tensor in state.tensors().items():
            assert tensor is before[name], name
            assert tensor.device == torch.device("cuda:1"), name
            wanted = dtype if name in ("memory", "memory_mask", "cache") else tensor.dtype
            assert tensor.dtype == wanted
            assert tensor.dtype == torch.float32 or name not in ("total", "done_score")
        rows = torch.zeros(3, dtype=torch.int64, device="cuda:1")
        smaller = resized(state, rows, dataclasses.replace(shape, batch=3, capacity=8), search.new_state)
        assert {tensor.device.index for tensor in smaller.tensors().values()} == {1}


class Traced:
    """A recording as a GPU would make it: the operations of one step, on the tensors it was made with."""

    def __init__(self, step: Any, state: SearchState, forcing: bool) -> None:
        tensors = list(state.tensors().values())

        def run(*given: torch.Tensor) -> tuple[torch.Tensor, ...]:
            step(SearchState(state.shape, *given), forcing)
            return given

        graph = make_fx(run)(*(tensor.clone() for tensor in tensors))
        self.replay = lambda: graph(*tensors)


def same(one: list[list[Found]], other: list[list[Found]]) -> None:
    for first, second in zip(one, other, strict=True):
        assert [(h.tokens, h.ended) for h in first] == [(h.tokens, h.ended) for h in second]


@pytest.mark.parametrize("option", ["groups", "guard", "samples"])
def test_operations_of_one_step_replayed_are_the_search(option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No value of the step that was recorded is in the recording: neither a position nor a sentence."""
    monkeypatch.setattr(
        RecordedSteps, "_recorded", lambda self, step, state, forcing: Traced(step, state, forcing)
    )
    asked = rules(4, settings=OPTIONS[option])
    plain = Search(random_weights(layers=1), asked, FEW)
    recorded = RecordedSteps(plain)
    replaying = Search(plain.weights, asked, FEW, recorded.state, recorded.step)
    batches = [sentences(20, seed=seed, cap=9) for seed in (1, 2)]
    for batch in (batches[0], *batches):
        same(plain.run(batch), replaying.run(batch))
    assert recorded.replayed > 8


def test_an_arena_is_as_large_as_the_largest_state() -> None:
    arena = Arena(torch.device("cpu"), torch.float32)
    large = Shape(64, 4, 1, 16, 8, 0, False, 2, 2, 4)
    first = arena.state(large)
    generation = arena.generation
    for batch in (32, 16, 64):
        again = arena.state(dataclasses.replace(large, batch=batch))
        assert again.cache.data_ptr() == first.cache.data_ptr()
    assert arena.generation == generation
    arena.state(dataclasses.replace(large, capacity=16))
    assert arena.generation > generation


def test_a_state_may_be_resized_in_its_own_memory() -> None:
    weights = random_weights()
    arena = Arena(weights.device, weights.dtype)
    plain = Search(weights, rules(3), PACE)
    same(plain.run(sentences(40)), Search(weights, rules(3), PACE, arena.state).run(sentences(40)))


def test_steps_run_as_they_are_when_a_recording_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("CUDA error: operation not permitted when stream is capturing")

    monkeypatch.setattr(RecordedSteps, "_recorded", fail)
    plain = Search(random_weights(), rules(3), PACE)
    recorded = RecordedSteps(plain)
    replaying = Search(plain.weights, plain.rules, PACE, recorded.state, recorded.step)
    for _ in range(2):
        same(plain.run(sentences(40)), replaying.run(sentences(40)))
    assert (recorded.failed, recorded.replayed) == (1, 0)


@pytest.mark.parametrize(("failures", "replays"), [(2, True), (3, False)])
def test_recording_goes_on_where_memory_seemed_to_be_out(
    failures: int, replays: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = failures

    def record(self: RecordedSteps, step: Any, state: SearchState, forcing: bool) -> Traced:
        nonlocal left
        left -= 1
        if left >= 0:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return Traced(step, state, forcing)

    monkeypatch.setattr(RecordedSteps, "_recorded", record)
    plain = Search(random_weights(layers=1), rules(2), FEW)
    recorded = RecordedSteps(plain)
    replaying = Search(plain.weights, plain.rules, FEW, recorded.state, recorded.step)
    for _ in range(4):
        same(plain.run(sentences(20, cap=9)), replaying.run(sentences(20, cap=9)))
    assert recorded.failed == failures
    assert (recorded.replayed > 0) == replays


def test_recordings_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "_MOST_GRAPHS", 2)
    monkeypatch.setattr(
        RecordedSteps, "_recorded", lambda self, step, state, forcing: Traced(step, state, forcing)
    )
    plain = Search(random_weights(layers=1), rules(2), PACE)
    recorded = RecordedSteps(plain)
    replaying = Search(plain.weights, plain.rules, PACE, recorded.state, recorded.step)
    for _ in range(4):
        same(plain.run(sentences(40)), replaying.run(sentences(40)))
    assert len(recorded._graphs) == 2
    assert recorded.replayed > 2


@pytest.mark.parametrize(
    ("positions", "expected"), [(1, 8), (8, 8), (9, 16), (127, 128), (129, 144), (300, 320), (500, 500)]
)
def test_shapes_of_sources_are_few_and_not_much_larger(positions: int, expected: int) -> None:
    assert Pace(source_multiple=8).source(positions, 500) == expected
    assert Pace().source(positions, 500) == positions


def test_batches_have_few_sizes() -> None:
    pace = Pace(batch_sizes=(16, 32, 64, 96))
    assert [pace.batch(count) for count in (1, 17, 65, 96, 97, 200)] == [16, 32, 96, 96, 128, 224]


def test_nothing_is_left_of_a_state_that_is_used_again() -> None:
    weights = random_weights()
    kept: dict[Shape, SearchState] = {}
    plain = Search(weights, rules(3), PACE)

    def allocate(shape: Shape) -> SearchState:
        state = kept.setdefault(shape, plain.new_state(shape))
        for tensor in state.tensors().values():
            tensor.fill_(float("nan") if tensor.is_floating_point() else 1)
        return state

    again = Search(weights, rules(3), dataclasses.replace(PACE, keep=0.0, room=16), allocate)
    same(plain.run(sentences(9)), again.run(sentences(9)))


def test_what_fills_a_batch_up_is_in_the_source_vocabulary() -> None:
    """An identifier that an embedding has not is an error here, and the end of the process on a GPU."""
    whole = random_weights()
    end = rules(3).end
    small = dataclasses.replace(whole.source, tokens=whole.source.tokens[:end])
    few = dataclasses.replace(whole, source=small)
    asked = [Request((0, 1), 5), Request((1,), 5), Request((0,), 5)]
    assert PACE.batch(len(asked)) > len(asked)
    same(Search(few, rules(3)).run(asked), Search(few, rules(3), PACE).run(asked))
