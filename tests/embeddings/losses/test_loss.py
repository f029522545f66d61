"""Losses against their definitions and finite differences."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from paraforge.embeddings import losses
from paraforge.embeddings.encoders.averages import Average
from paraforge.embeddings.losses import Batch
from paraforge.embeddings.losses.distil import distillation_loss
from paraforge.embeddings.losses.margin import margin_loss
from paraforge.embeddings.losses.softmax import softmax_loss
from paraforge.embeddings.trainer.negatives import ForbiddenCandidates
from paraforge.embeddings.trainer.objective import encoder_trainer
from paraforge.embeddings.trainer.parameters import TrainingParameters
from tests.embeddings.trainer import oracle
from tests.embeddings.trainer.training import sentence_pairs, store_of


def _check(value: torch.Tensor, ours: torch.Tensor, expected: torch.Tensor, theirs: torch.Tensor) -> None:
    assert value.item() == pytest.approx(expected.item(), abs=1e-12)
    (gradient,) = torch.autograd.grad(value, ours)
    (expected_gradient,) = torch.autograd.grad(expected, theirs)
    torch.testing.assert_close(gradient, expected_gradient, rtol=1e-9, atol=1e-12)


def _parts(embeddings: torch.Tensor, pairs: int) -> list[torch.Tensor]:
    return list(embeddings.split(pairs))


@given(
    pairs=st.integers(1, 6),
    dimension=st.integers(2, 5),
    two_sided=st.booleans(),
    margin=st.sampled_from([0.0, 0.4, 0.8]),
    seed=st.integers(0, 10_000),
)
def test_margin_loss_and_gradient_match_definition(
    pairs: int, dimension: int, two_sided: bool, margin: float, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    sides = 4 if two_sided else 3
    embeddings = torch.randn(sides * pairs, dimension, dtype=torch.float64, generator=generator)
    embeddings *= torch.rand(sides * pairs, 1, dtype=torch.float64, generator=generator) * 10 + 0.01
    ours = embeddings.clone().requires_grad_()
    theirs = embeddings.clone().requires_grad_()

    value = margin_loss(ours, pairs, margin)
    left, right, negative_left, *rest = _parts(theirs, pairs)
    expected = oracle.loss(left, right, negative_left, rest[0] if rest else None, margin)
    _check(value, ours, expected, theirs)


def test_by_hand() -> None:
    # s = s' = (1, 0); t is orthogonal, t' at 60 degrees: hinges 0.4 - 1 + 0 < 0 and 0.8 - 1 + 0.5 = 0.3.
    embeddings = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 5.0], [0.5, 0.75**0.5]], dtype=torch.float64)
    assert margin_loss(embeddings, 1, 0.4).item() == 0.0
    assert margin_loss(embeddings, 1, 0.8).item() == pytest.approx(0.3)
    assert margin_loss(embeddings[:3], 1, 0.8).item() == 0.0


@pytest.mark.parametrize(
    ("name", "changes"),
    [("margin", {"margin": 0.8}), ("softmax", {"scale": 5.0}), ("softmax", {"two_sided": False})],
)
def test_loss_is_chosen_by_parameters(name: str, changes: dict[str, Any]) -> None:
    embeddings = torch.randn(12, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    pairs, found = (3 if name == "margin" else 6), []
    for settings in ({}, changes):
        parameters = TrainingParameters.model_validate({"loss": name, **settings})
        batch = Batch(embeddings, pairs, ForbiddenCandidates(pairs), parameters)
        found.append(losses.loss_named(name).compute(batch).item())
    if name == "margin":
        expected = [margin_loss(embeddings, 3, margin) for margin in (0.4, 0.8)]
    else:
        sides = ForbiddenCandidates(6).of_other_sides()
        usual = TrainingParameters(loss="softmax")
        other = usual.model_copy(update=changes)
        expected = [softmax_loss(embeddings, 6, sides, one.scale, one.two_sided) for one in (usual, other)]
    assert found == [one.item() for one in expected] and found[0] != found[1]


def test_scale_of_embeddings_does_not_matter() -> None:
    embeddings = torch.randn(12, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    scaled = embeddings * torch.logspace(-8, 8, 12, dtype=torch.float64).unsqueeze(1)
    assert margin_loss(embeddings, 3, 0.4).item() == pytest.approx(
        margin_loss(scaled, 3, 0.4).item(), rel=1e-12
    )


def test_zero_vector_has_zero_cosine_and_gradient() -> None:
    embeddings = torch.eye(4, 3, dtype=torch.float64).requires_grad_()  # the last row, t', is zero
    value = margin_loss(embeddings, 1, 0.4)
    assert value.item() == pytest.approx(0.8)
    (gradient,) = torch.autograd.grad(value, embeddings)
    assert torch.isfinite(gradient).all()
    assert (gradient[3] == 0).all()


@given(
    pairs=st.integers(1, 5),
    two_sided=st.booleans(),
    scale=st.sampled_from([0.5, 5.0, 20.0]),
    texts=st.none() | st.lists(st.integers(0, 4), min_size=10, max_size=10),
    seed=st.integers(0, 10_000),
)
def test_softmax_loss_and_gradient_match_definition(
    pairs: int, two_sided: bool, scale: float, texts: list[int] | None, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    ours = torch.randn(2 * pairs, 4, dtype=torch.float64, generator=generator).requires_grad_()
    theirs = ours.detach().clone().requires_grad_()
    alike = None if texts is None else texts[: 2 * pairs]
    forbidden = ForbiddenCandidates(pairs, None if alike is None else np.array(alike))
    value = softmax_loss(ours, pairs, forbidden.of_other_sides(), scale, two_sided)
    _check(value, ours, oracle.softmax(theirs, pairs, scale, two_sided, alike), theirs)


def test_softmax_loss_is_finite_for_zero_and_equal_vectors() -> None:
    embeddings = torch.eye(
        4, 3, dtype=torch.float64
    ).requires_grad_()  # the last row, of a right side, is zero
    value = softmax_loss(embeddings, 2, ForbiddenCandidates(2).of_other_sides(), 20.0, True)
    (gradient,) = torch.autograd.grad(value, embeddings)
    assert torch.isfinite(gradient).all()
    assert (gradient[3] == 0).all()
    alike = ForbiddenCandidates(2, np.zeros(4, np.int64)).of_other_sides()
    assert softmax_loss(embeddings, 2, alike, 20.0, True).item() == 0.0


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e30])
@pytest.mark.parametrize("row", [0, 3])
def test_non_finite_vectors_give_non_finite_loss(value: float, row: int) -> None:
    """This includes vectors whose squares overflow float32; their cosine would otherwise be 0."""
    embeddings = torch.randn(8, 5, generator=torch.Generator().manual_seed(1))
    embeddings[2 * row] = value
    nothing = torch.empty(0, dtype=torch.int64)
    assert not bool(margin_loss(embeddings, 2, 0.4).isfinite())
    assert not bool(softmax_loss(embeddings, 4, (nothing, nothing), 20.0, True).isfinite())
    assert not bool(distillation_loss(embeddings, torch.eye(8), 20.0).isfinite())


def _cosines(left: torch.Tensor, right: torch.Tensor) -> list[list[torch.Tensor]]:
    return [[torch.nn.functional.cosine_similarity(one, other, dim=0) for other in right] for one in left]


def _twice(rows: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    ours = torch.randn(rows, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return ours.requires_grad_(), ours.detach().clone().requires_grad_()


@pytest.mark.parametrize("sentences", [2, 6, 10])
def test_distillation_loss_and_gradient_match_definition(sentences: int) -> None:
    ours, theirs = _twice(sentences, sentences)
    teacher = torch.randn(sentences, 7, generator=torch.Generator().manual_seed(2)).double()
    wanted, found = _cosines(teacher, teacher), _cosines(theirs, theirs)
    expected = 0 * theirs.sum()
    for sentence in range(sentences):
        others = [other for other in range(sentences) if other != sentence]
        p, q = (
            torch.softmax(torch.stack([5 * cosines[sentence][other] for other in others]), 0)
            for cosines in (wanted, found)
        )
        expected = expected + (p * (p / q).log()).sum() / sentences
    _check(distillation_loss(ours, teacher, 5.0), ours, expected, theirs)
    assert distillation_loss(teacher, teacher, 20.0).item() == pytest.approx(0, abs=1e-12)


def test_loss_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new file in the package, here in another directory, is found by its name."""
    (tmp_path / "attraction.py").write_text(
        "from torch.nn.functional import cosine_similarity\n"
        "from paraforge.embeddings.losses import Loss\n"
        "def compute(batch):\n"
        "    return (1 - cosine_similarity(*batch.embeddings.chunk(2))).mean()\n"
        "LOSS = Loss(mega_batches=False, compute=compute)\n"
    )
    with pytest.raises(ValidationError, match="unknown loss; use distil, margin, softmax"):
        TrainingParameters(loss="attraction")
    monkeypatch.setattr(losses, "__path__", [*losses.__path__, str(tmp_path)])
    parameters = TrainingParameters(loss="attraction", epochs=20, batch_size=20)
    assert parameters.largest_mega_batch == 1
    pairs = sentence_pairs(100)
    store = store_of(tmp_path / "pairs", *map(list, zip(*pairs, strict=True)))
    generator = torch.Generator().manual_seed(1)
    encoder = Average(torch.randn(len(store.vocabularies["word"]), 6, generator=generator))
    history = encoder_trainer(encoder, store, parameters).run().history
    assert history[-1]["loss"] < 0.9 * history[0]["loss"]
