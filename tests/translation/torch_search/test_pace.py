"""Memory, shapes, recorded steps and candidates of the search."""

import dataclasses
import math
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import torch

from paraforge.translation.torch_search import graphs
from paraforge.translation.torch_search.graphs import RecordedSteps
from paraforge.translation.torch_search.search import Pace, Request, Search, Step, best_candidates, force
from paraforge.translation.torch_search.state import Arena, SearchState, Shape
from tests.translation.torch_search.random_weights import random_weights, rules, same, sentences

PACE = Pace(look_every=2, keep=0.75, doubling=True, batch_sizes=(4, 16, 64), source_multiple=8, room=2)


def test_arena_fits_largest_state() -> None:
    arena = Arena(torch.device("cpu"), torch.float32)
    large = Shape(64, 4, 16, 8, 0, 2, 2, 4)
    first = arena.state(large)
    generation = arena.generation
    for batch in (32, 16, 64):
        again = arena.state(dataclasses.replace(large, batch=batch))
        assert again.cache.data_ptr() == first.cache.data_ptr()
    assert arena.generation == generation
    arena.state(dataclasses.replace(large, capacity=16))
    assert arena.generation > generation


@pytest.mark.parametrize(
    ("message", "failures"),
    [
        ("CUDA error: operation not permitted when stream is capturing", 1),
        ("CUDA failed with error out of memory", graphs._OUT_OF_MEMORY + 1),
    ],
)
def test_steps_run_without_cuda_graph_if_recording_fails(
    message: str, failures: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RecordedSteps, "_record", Mock(side_effect=RuntimeError(message)))
    plain = Search(random_weights(), rules(3), PACE)
    recorded = RecordedSteps(plain)
    replaying = Search(plain.weights, plain.rules, PACE, recorded.state, recorded.step)
    for _ in range(1 + failures):
        same(plain.find(sentences(40)).results(), replaying.find(sentences(40)).results())
    assert (recorded.failed, recorded.replayed) == (failures, 0)


def test_cuda_graph_is_replayed_per_shape_until_freed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without a GPU, the replay is a step with the same state in the same memory."""

    def recorded(_: RecordedSteps, step: Step, state: SearchState, forcing: bool) -> SimpleNamespace:
        return SimpleNamespace(replay=lambda: step(state, forcing))

    monkeypatch.setattr(RecordedSteps, "_record", recorded)
    plain = Search(random_weights(), rules(3), PACE)
    steps = RecordedSteps(plain)
    replaying = Search(plain.weights, plain.rules, PACE, steps.state, steps.step)
    small, large = sentences(3), [dataclasses.replace(sentence, prefix=(4,)) for sentence in sentences(40)]
    for asked in (*[small] * 3, *[large] * 3, small):
        same(plain.find(asked).results(), replaying.find(asked).results())
    steps.forget()
    same(plain.find(small).results(), replaying.find(small).results())
    assert steps.replayed and not steps.failed


@pytest.mark.parametrize(
    ("positions", "expected"), [(1, 8), (8, 8), (9, 16), (127, 128), (129, 144), (300, 320), (500, 500)]
)
def test_source_shapes_are_few_and_tight(positions: int, expected: int) -> None:
    assert Pace(source_multiple=8).source(positions, 500) == expected
    assert Pace().source(positions, 500) == positions


def test_batch_sizes_are_few() -> None:
    pace = Pace(batch_sizes=(16, 32, 64, 96))
    assert [pace.batch(count) for count in (1, 17, 65, 96, 97, 200)] == [16, 32, 96, 96, 128, 224]


def test_reused_state_is_clean() -> None:
    weights = random_weights()
    kept: dict[Shape, SearchState] = {}
    plain = Search(weights, rules(3), PACE)

    def allocate(shape: Shape) -> SearchState:
        state = kept.setdefault(shape, plain.new_state(shape))
        for tensor in state.tensors().values():
            tensor.fill_(float("nan") if tensor.is_floating_point() else 1)
        return state

    again = Search(weights, rules(3), dataclasses.replace(PACE, keep=0.0, room=16), allocate)
    same(plain.find(sentences(9)).results(), again.find(sentences(9)).results())


def test_batch_padding_is_in_source_vocabulary() -> None:
    """An identifier outside the embedding is an error on a CPU, but kills the process on a GPU."""
    whole = random_weights()
    end = rules(3).end
    small = dataclasses.replace(whole.source, tokens=whole.source.tokens[:end])
    few = dataclasses.replace(whole, source=small)
    asked = [Request((0, 1), 5), Request((1,), 5), Request((0,), 5)]
    assert PACE.batch(len(asked)) > len(asked)
    same(Search(few, rules(3)).find(asked).results(), Search(few, rules(3), PACE).find(asked).results())


@pytest.mark.parametrize("beam", [1, 3, 12])
@pytest.mark.parametrize("vocabulary", [64, 320, 8064])
def test_candidates_match_full_sort(beam: int, vocabulary: int) -> None:
    dice = torch.Generator().manual_seed(beam)
    scores = torch.log_softmax(3 * torch.randn(5, beam, vocabulary, generator=dice), 2)
    total = -10 * torch.rand(5, beam, generator=dice)
    total[0, 1:] = -math.inf
    scores[1, 0, :40] = -math.inf
    count = 2 * beam
    sums, hypotheses, tokens = best_candidates(scores, total, count)
    flat = (scores + total.unsqueeze(2)).view(5, -1)
    expected = flat.topk(count)
    assert torch.equal(sums, expected.values)
    assert torch.equal(hypotheses * vocabulary + tokens, expected.indices)


def test_nan_is_not_a_candidate() -> None:
    scores = torch.log_softmax(torch.randn(2, 2, 64), 2)
    scores[0, 0] = math.nan
    scores[1, 1, 5] = math.nan
    sums, hypotheses, _ = best_candidates(scores, torch.zeros(2, 2), 4)
    assert not sums.isnan().any()
    assert (hypotheses[0] == 1).all()


def test_forced_tokens_mask_all_others() -> None:
    scores = torch.log_softmax(torch.randn(3, 2, 64), 2)
    before = scores.clone()
    prefix = torch.tensor([[7, 9], [8, 0], [0, 0]])
    force(scores, prefix, torch.tensor([2, 1, 0]), torch.tensor([1]), free=0)
    assert torch.equal(scores[1:], before[1:])
    assert torch.equal(scores[0, :, 9], before[0, :, 9])
    assert (scores[0].isfinite().sum(1) == 1).all()
