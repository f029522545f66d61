"""The training loop against a plain oracle."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import TypeAdapter
from torch import Tensor

from paraforge.embeddings.encoders.encoder import Encoder, build_encoder
from paraforge.embeddings.encoders.parameters import EncoderParameters
from paraforge.embeddings.trainer.negatives import choose_negatives
from paraforge.embeddings.trainer.objective import encoder_trainer
from paraforge.embeddings.trainer.pair_store import PairStore
from paraforge.embeddings.trainer.parameters import TrainingParameters
from tests.embeddings.trainer import oracle
from tests.embeddings.trainer.equations import id_lists
from tests.embeddings.trainer.training import (
    make_encoder,
    make_repetitive_store,
    make_store,
    parameters,
    train,
)


@pytest.fixture(autouse=True)
def no_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it, Adam's missed steps are made up for exactly."""
    monkeypatch.setattr("paraforge.embeddings.learning.optimizers._EPSILON", 1e-30)


def sentences_of(store: PairStore) -> list[list[int]]:
    """All left sides, then all right sides."""
    return id_lists(store.select(np.arange(len(store)))["word"])


def oracle_schedule(store: PairStore, settings: TrainingParameters) -> oracle.MegaBatches:
    return oracle.schedule(
        len(store),
        epochs=settings.epochs,
        batch_size=settings.batch_size,
        mega_batch=settings.largest_mega_batch,
        anneal=settings.anneal,
        seed=settings.seed,
        sources=store.sources.tolist() if settings.one_source else None,
    )


def run_oracle(store: PairStore, settings: TrainingParameters, **options: Any) -> tuple[Tensor, list[float]]:
    """The table of a word average after training, and the losses."""
    sentences, table = sentences_of(store), make_encoder(store).table.detach().requires_grad_()

    def embed(members: list[int]) -> Tensor:
        sides = [*members, *(len(store) + pair for pair in members)]
        return torch.stack([table[sentences[side]].mean(0) for side in sides])

    texts = [tuple(sentence) for sentence in sentences]
    losses = oracle.train([table], embed, texts, oracle_schedule(store, settings), settings, **options)
    return table.detach(), losses


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"two_sided": False},
        {"mega_batch": 1},
        {"anneal": 2},
        {"clip": 0.05},
        {"optimizer": "adagrad", "learning_rate": 0.05},
        {"batch_size": 7, "mega_batch": 8},  # 57 = 56 + 1: the left-over pair joins
        {"loss": "softmax"},
        {"loss": "softmax", "two_sided": False, "scale": 3.0, "one_source": True},
        {"loss": "softmax", "batch_size": 7},
    ],
    ids=str,
)
def test_training_matches_definitions(tmp_path: Path, changes: dict[str, Any]) -> None:
    """The oracle takes a dense step for every mini-batch."""
    store = make_store(tmp_path / "pairs")
    settings = parameters(**changes)
    expected, losses = run_oracle(store, settings)
    table, record = train(store, settings)
    torch.testing.assert_close(table, expected, rtol=1e-7, atol=1e-9)
    assert record.updates == len(losses)
    assert record.seen == 2 * len(store)


@pytest.mark.parametrize(
    "kind",
    [
        {"kind": "lstm", "output_dimension": 4, "scramble": 0},
        {"kind": "rnn", "output_dimension": 4},
        {"kind": "identity_rnn"},
        {"kind": "lstm_last", "output_dimension": 4, "output_gate": False},
    ],
    ids=lambda kind: kind["kind"],
)
@pytest.mark.parametrize(
    "changes",
    [
        {"clip": 0.2, "lambda_composition": 0.02, "lambda_words": 0.03},
        {"clip": 0.5, "lambda_words": 0.03, "optimizer": "adagrad", "learning_rate": 0.05},
    ],
    ids=["adam", "adagrad"],
)
def test_compositional_training_matches_definitions(
    tmp_path: Path, kind: dict[str, Any], changes: dict[str, Any]
) -> None:
    store = make_store(tmp_path / "pairs", pairs=21)
    made = TypeAdapter(EncoderParameters).validate_python({"dimension": 5, **kind})
    generator = torch.Generator().manual_seed(1)

    def build() -> Encoder:
        generator.manual_seed(1)
        rows = len(store.vocabularies["word"])
        return build_encoder(
            made, lambda *_: torch.randn(rows, 5, dtype=torch.float64, generator=generator), seed=2
        ).double()

    # Each update touches all rows, so all feel their penalty.
    settings = parameters(**{"epochs": 4, "batch_size": len(store), "mega_batch": 1, **changes})
    encoder = build()
    encoder_trainer(encoder, store, settings).run()
    other = build()
    expected, anchors = dict(other.named_parameters()), other.anchors()
    initial = {name: value.detach().clone() for name, value in expected.items()}

    def penalty() -> Tensor:
        total = torch.zeros(())
        for name, value in expected.items():
            table = name in other.table_units()
            start = initial[name] if table else anchors.get(name, torch.zeros(()))
            weight = settings.lambda_words if table else settings.lambda_composition
            total = total + weight * (value - start).square().sum()
        return total

    def embed(members: list[int]) -> Tensor:
        return other(store.select(np.array(members)))

    texts = [tuple(sentence) for sentence in sentences_of(store)]
    oracle.train([*expected.values()], embed, texts, oracle_schedule(store, settings), settings, penalty)
    for name, value in encoder.named_parameters():
        torch.testing.assert_close(value.detach(), expected[name].detach(), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    "changes", [{}, {"two_sided": False}, {"anneal": 2}, {"batch_size": 2, "mega_batch": 1}], ids=str
)
def test_pairs_without_negatives_are_skipped(tmp_path: Path, changes: dict[str, Any]) -> None:
    store = make_repetitive_store(tmp_path / "pairs")
    settings = parameters(**{"batch_size": 3, "mega_batch": 2, **changes})
    expected, losses = run_oracle(store, settings)
    table, record = train(store, settings)
    torch.testing.assert_close(table, expected, rtol=1e-7, atol=1e-9)
    assert record.updates == len(losses)
    assert record.seen == 2 * len(store)
    assert 0 < record.counts["passed_over"] < record.seen
    assert record.counts["empty_batches"] > 0


@pytest.mark.parametrize("negatives", ["max", "mix"])
def test_training_threads_change_no_bit(tmp_path: Path, negatives: str) -> None:
    store = make_store(tmp_path / "pairs", pairs=700)
    settings = parameters(epochs=1, batch_size=100, mega_batch=4, negatives=negatives)
    options: dict[str, Any] = {"dtype": torch.float32, "products": "bfloat16"}
    tables = [train(store, settings, threads=threads, **options)[0] for threads in (1, 2, 4)]
    assert torch.equal(tables[0], tables[1])
    assert torch.equal(tables[0], tables[2])


def test_default_objective_matches_definitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By default, negatives are chosen in bfloat16, where a cosine is exact to 0.004. So each chosen negative
    must be allowed and within 0.004 of the best one by the oracle's vectors. The oracle then continues with
    it.
    """
    store = make_store(tmp_path / "pairs", pairs=300)
    settings = TrainingParameters()
    chosen: list[Tensor] = []

    def record(*arguments: Any, **options: Any) -> Tensor:
        chosen.append(choose_negatives(*arguments, **options))
        return chosen[-1]

    monkeypatch.setattr("paraforge.embeddings.trainer.objective.choose_negatives", record)
    table, record = train(store, settings, products="bfloat16")
    sizes: list[int] = []
    exact: list[float] = []

    def choose(embeddings: Tensor, texts: Sequence[object]) -> list[int]:
        found = chosen[len(sizes)]
        sizes.append(len(texts) // 2)
        unit = torch.nn.functional.normalize(embeddings, dim=1)
        cosines = unit @ unit.T
        numbers = {text: k for k, text in enumerate(texts)}
        number = torch.tensor([numbers[text] for text in texts])
        partner = number.roll(len(texts) // 2)
        for forbidden in (number[None, :] == number[:, None], number[None, :] == partner[:, None]):
            cosines[forbidden] = -2
            cosines[forbidden.T] = -2
        below = cosines.amax(1) - cosines[torch.arange(len(texts)), found]
        assert bool((below < 0.008).all())
        exact.append(float((below == 0).double().mean()))
        return found.tolist()

    expected, losses = run_oracle(store, settings, choose=choose)
    assert max(sizes) == 100
    assert min(exact) > 0.9
    assert record.updates == len(losses) == 15
    assert record.counts["passed_over"] == 0
    torch.testing.assert_close(table, expected, rtol=1e-7, atol=1e-9)
    epoch = len(losses) // settings.epochs
    means = [sum(losses[first : first + epoch]) / epoch for first in range(0, len(losses), epoch)]
    assert [entry["loss"] for entry in record.history] == pytest.approx(means, rel=1e-9)
