"""The training loop: against a plain oracle, under any split and any interruption."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from pydantic import TypeAdapter
from safetensors.torch import load_file
from torch import Tensor

from paraforge import interrupts
from paraforge.bitext.pair_blocks import PairBlock
from paraforge.embeddings.encoders.average import Average
from paraforge.embeddings.encoders.build import build_encoder
from paraforge.embeddings.encoders.parameters import EncoderParameters, named_encoder
from paraforge.embeddings.encoders.protocol import Encoder
from paraforge.embeddings.mega_batches import mega_batches, mini_batches
from paraforge.embeddings.negatives import choose_negatives
from paraforge.embeddings.objective import encoder_trainer
from paraforge.embeddings.pair_store import PairStore, build_pair_store
from paraforge.embeddings.parameters import TrainingParameters, VocabularyParameters
from paraforge.embeddings.schedule import Schedule
from paraforge.errors import InputError, Interrupted
from paraforge.learning.loop import Record
from paraforge.text.units import Words
from tests.embeddings import oracle

WORDS = [f"w{number}" for number in range(40)]


def make_store(directory: Path, pairs: int = 57, seed: int = 1) -> PairStore:
    generator = np.random.default_rng(seed)

    def sentences() -> list[str]:
        return [" ".join(generator.choice(WORDS, size=generator.integers(1, 7))) for _ in range(pairs)]

    block = PairBlock(pa.array(sentences()), pa.array(sentences()))
    return build_pair_store(directory, [block], [Words()], VocabularyParameters(minimum_count=1))


def make_encoder(store: PairStore, dtype: torch.dtype = torch.float64, dimension: int = 5) -> Average:
    generator = torch.Generator().manual_seed(7)
    return Average(torch.randn(len(store.vocabularies["word"]), dimension, dtype=dtype, generator=generator))


def parameters(**values: Any) -> TrainingParameters:
    default = {
        "epochs": 2,
        "batch_size": 8,
        "mega_batch": 3,
        "anneal": 0,
        "learning_rate": 0.01,
        "negative_precision": "float32",
        "exclude_identical": False,
    }
    return TrainingParameters(**{**default, **values})


def train(store: PairStore, settings: TrainingParameters, **options: Any) -> tuple[Tensor, Record]:
    encoder = make_encoder(store, options.pop("dtype", torch.float64))
    record = encoder_trainer(encoder, store, settings, **options).run()
    return encoder.table.detach(), record


def sentences_of(store: PairStore) -> list[list[int]]:
    """All left sides, then all right sides."""
    bags = store.select(np.arange(len(store)))["word"]
    return [bags.ids[a:b].tolist() for a, b in pairwise(bags.offsets.tolist())]


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
    sentences = sentences_of(store)
    if settings.optimiser == "adam":
        make = lambda values: torch.optim.Adam(values, lr=settings.learning_rate)  # noqa: E731
    else:
        make = lambda values: torch.optim.Adagrad(values, lr=settings.learning_rate)  # noqa: E731
    return oracle.train(
        make_encoder(store).table.detach(),
        lambda table, sentence: table[sentence].mean(0),
        sentences[: len(store)],
        sentences[len(store) :],
        oracle_schedule(store, settings),
        settings.margin,
        settings.two_sided,
        make,
        clip=settings.clip,
        exclude_identical=settings.exclude_identical,
        softmax_scale=settings.scale if settings.loss == "softmax" else None,
        **options,
    )


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"two_sided": False},
        {"mega_batch": 1},
        {"anneal": 2},
        {"clip": 0.05},
        {"optimiser": "adagrad", "learning_rate": 0.05},
        {"batch_size": 7, "mega_batch": 8},  # 57 = 56 + 1: the left-over pair joins
        {"loss": "softmax"},
        {"loss": "softmax", "two_sided": False, "scale": 3.0, "one_source": True},
        {"loss": "softmax", "batch_size": 7, "exclude_identical": False},
    ],
    ids=str,
)
def test_training_is_that_of_the_definitions(tmp_path: Path, changes: dict[str, Any]) -> None:
    """Every mini-batch's gradient counts: the oracle takes a dense step for each."""
    store = make_store(tmp_path / "pairs")
    settings = parameters(table_updates="dense", **changes)
    expected, losses = run_oracle(store, settings)
    table, record = train(store, settings)
    torch.testing.assert_close(table, expected, rtol=1e-7, atol=1e-9)
    assert record.updates == len(losses)
    assert record.seen == 2 * len(store)


def embed_and_train(encoder: Encoder, store: PairStore, settings: TrainingParameters) -> dict[str, Tensor]:
    """The definitions with autograd: the whole objective at once, a dense optimiser over all parameters."""
    initial = {name: value.detach().clone() for name, value in encoder.named_parameters()}
    parameters = dict(encoder.named_parameters())
    anchors = encoder.anchors()
    make: Any = torch.optim.Adam if settings.optimiser == "adam" else torch.optim.Adagrad
    optimiser = make(parameters.values(), lr=settings.learning_rate)
    for chosen in oracle_schedule(store, settings):
        members = np.array([pair for mini_batch in chosen for pair in mini_batch])
        bags, pairs = store.select(members), len(members)
        with torch.no_grad():
            negatives = oracle.max_negatives(encoder(bags), pairs, True)
        first = 0
        for mini_batch in chosen:
            vectors, part = encoder(bags), range(first, first + len(mini_batch))
            first += len(mini_batch)
            objective = oracle.loss(
                [vectors[k] for k in part],
                [vectors[pairs + k] for k in part],
                [vectors[negatives[k]] for k in part],
                [vectors[negatives[pairs + k]] for k in part],
                settings.margin,
            )
            for name, value in parameters.items():
                table = name in encoder.table_units()
                start = initial[name] if table else anchors.get(name, torch.zeros(()))
                weight = settings.lambda_words if table else settings.lambda_composition
                objective = objective + weight * (value - start).square().sum()
            optimiser.zero_grad()
            objective.backward()
            if settings.clip is not None:
                gradients = [value.grad for value in parameters.values() if value.grad is not None]
                norm = float(torch.stack([gradient.norm() for gradient in gradients]).norm())
                for gradient in gradients:
                    gradient *= min(1.0, settings.clip / norm)
            optimiser.step()
    return {name: value.detach() for name, value in parameters.items()}


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
        {"clip": 0.5, "lambda_words": 0.03, "optimiser": "adagrad", "learning_rate": 0.05},
    ],
    ids=["adam", "adagrad"],
)
def test_compositional_parameters_are_trained_as_defined(
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

    settings = parameters(**{"epochs": 1, "batch_size": 4, "table_updates": "dense", **changes})
    encoder = build()
    encoder_trainer(encoder, store, settings).run()
    expected = embed_and_train(build(), store, settings)
    for name, value in encoder.named_parameters():
        torch.testing.assert_close(value.detach(), expected[name], rtol=1e-7, atol=1e-9)


def test_gradients_are_taken_in_training_mode(tmp_path: Path) -> None:
    """cuDNN refuses them otherwise, and a model that is evaluated in between was made for use."""
    store = make_store(tmp_path / "pairs")
    encoder = make_encoder(store).eval()
    modes = set()
    encoder.register_forward_pre_hook(lambda module, _: modes.add((torch.is_grad_enabled(), module.training)))
    encoder_trainer(encoder, store, parameters(epochs=1), evaluate=lambda one: 0.0).run()
    assert (True, True) in modes
    assert (True, False) not in modes
    assert not encoder.training


def make_repetitive_store(directory: Path, kinds: int = 3) -> PairStore:
    """Mega-batches of it often hold pairs that are all the same, or half the same."""
    generator = np.random.default_rng(2)
    first, second = (generator.integers(kinds, size=61).tolist() for _ in range(2))
    left, right = (pa.array([f"w{number} x" for number in side]) for side in (first, second))
    return build_pair_store(
        directory, [PairBlock(left, right)], [Words()], VocabularyParameters(minimum_count=1)
    )


@pytest.mark.parametrize(
    "changes", [{}, {"two_sided": False}, {"anneal": 2}, {"batch_size": 2, "mega_batch": 1}], ids=str
)
def test_pairs_without_any_negative_are_passed_over(tmp_path: Path, changes: dict[str, Any]) -> None:
    store = make_repetitive_store(tmp_path / "pairs")
    settings = parameters(
        **{"batch_size": 3, "mega_batch": 2, "table_updates": "dense", "exclude_identical": True, **changes}
    )
    expected, losses = run_oracle(store, settings)
    table, record = train(store, settings)
    torch.testing.assert_close(table, expected, rtol=1e-7, atol=1e-9)
    state = record
    assert state.updates == len(losses)
    assert state.seen == 2 * len(store)
    assert 0 < state.counts["passed_over"] < state.seen
    assert state.counts["empty_batches"] > 0


@pytest.mark.parametrize("stop_after", [1, 4, 9])
def test_resuming_after_passed_over_pairs_gives_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop_after: int
) -> None:
    store = make_repetitive_store(tmp_path / "pairs")
    settings = parameters(batch_size=3, mega_batch=4, anneal=5, negatives="mix", exclude_identical=True)
    expected, whole = train(store, settings)
    options: dict[str, Any] = {"checkpoints": tmp_path / "checkpoints", "checkpoint_seconds": 1e-9}
    stop = _StopAfter(stop_after)
    monkeypatch.setattr("paraforge.learning.loop.check_interrupt", lambda: _interrupt(stop))
    with pytest.raises(Interrupted):
        train(store, settings, **options)
    monkeypatch.setattr("paraforge.learning.loop.check_interrupt", lambda: None)
    table, record = train(store, settings, **options)
    assert torch.equal(table, expected)
    assert record == whole


def test_pairs_that_are_all_the_same_are_an_error(tmp_path: Path) -> None:
    block = PairBlock(pa.array(["a b"] * 9), pa.array(["a c"] * 9))
    store = build_pair_store(tmp_path, [block], [Words()], VocabularyParameters())
    with pytest.raises(InputError, match="nothing to learn: none of 18 pairs has a negative"):
        train(store, parameters(exclude_identical=True))


def test_deferred_updates_give_the_dense_result(tmp_path: Path) -> None:
    store = make_store(tmp_path / "pairs")
    expected, _ = run_oracle(store, parameters())
    table, _ = train(store, parameters(table_updates="deferred"))
    moved = (expected - make_encoder(store).table.detach()).abs().max()
    assert (table - expected).abs().max() < 2e-3 * moved


def test_penalty_towards_initial_vectors(tmp_path: Path) -> None:
    store = make_store(tmp_path / "pairs")
    initial = make_encoder(store).table.detach()
    settings = parameters(table_updates="dense", lambda_words=0.05)
    expected, _ = run_oracle(store, settings, penalty=lambda table: 0.05 * (table - initial).square().sum())
    table, _ = train(store, settings)
    torch.testing.assert_close(table, expected, rtol=1e-7, atol=1e-9)


def test_split_into_mini_batches_changes_neither_negatives_nor_loss(tmp_path: Path) -> None:
    """With the parameters held still, a mega-batch has one loss, whatever the mini-batches are."""
    store = make_store(tmp_path / "pairs")
    still = 1e-300
    losses = []
    for batch_size, mega_batch in [(48, 1), (24, 2), (8, 6), (6, 8), (2, 24), (1, 48)]:
        settings = parameters(
            epochs=1, batch_size=batch_size, mega_batch=mega_batch, learning_rate=still, table_updates="dense"
        )
        table, record = train(store, settings)
        assert torch.equal(table, make_encoder(store).table.detach())
        losses.append(record.history[0]["loss"])
    assert losses == pytest.approx([losses[0]] * len(losses), abs=1e-12)
    assert losses[0] > 0.1


def test_mini_batches_are_the_mega_batch_cut_up(tmp_path: Path) -> None:
    store = make_store(tmp_path / "pairs")
    encoder = make_encoder(store)
    settings = parameters(mega_batch=4)
    schedule = Schedule(len(store), settings.batch_size, settings.mega_batch, 0, settings.seed)
    mega_batch = next(mega_batches(store, schedule, encoder, settings, 0, 0, 0))
    pairs = len(mega_batch.place)
    negatives = torch.randint(2 * pairs, (2, pairs), generator=torch.Generator().manual_seed(1))
    whole = mega_batch.bags["word"]
    seen = 0
    for batch in mini_batches(mega_batch, negatives, settings.batch_size, torch.device("cpu")):
        numbers = torch.arange(seen, seen + batch.pairs)
        order = [numbers, numbers + pairs, negatives[0, numbers], negatives[1, numbers]]
        expected = whole.select(torch.cat(order))
        assert torch.equal(batch.rows["word"][batch.bags["word"].ids], expected.ids)
        assert torch.equal(batch.bags["word"].offsets, expected.offsets)
        seen += batch.pairs
    assert seen == pairs


@pytest.mark.parametrize("updates", ["lazy", "deferred"])
@pytest.mark.parametrize("negatives", ["max", "mix"])
def test_threads_change_no_bit(tmp_path: Path, updates: str, negatives: str) -> None:
    store = make_store(tmp_path / "pairs", pairs=700)
    settings = parameters(
        epochs=1, batch_size=100, mega_batch=4, table_updates=updates, negatives=negatives,
        negative_precision="bfloat16", exclude_identical=True,
    )  # fmt: skip
    tables = [train(store, settings, dtype=torch.float32, threads=threads)[0] for threads in (1, 2, 4)]
    assert torch.equal(tables[0], tables[1])
    assert torch.equal(tables[0], tables[2])


class _StopAfter:
    """Stands in for a signal that arrives in the midst of training."""

    def __init__(self, calls: int) -> None:
        self.calls = calls

    def __call__(self) -> bool:
        self.calls -= 1
        return self.calls < 0


@pytest.mark.parametrize("updates", ["lazy", "deferred", "dense"])
@pytest.mark.parametrize("stop_after", [0, 1, 4, 5])
@pytest.mark.parametrize("average_after", [None, 0.4])
def test_resuming_gives_the_same_bits(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    updates: str,
    stop_after: int,
    average_after: float | None,
) -> None:
    monkeypatch.setattr("paraforge.learning.loop.AVERAGE_EVERY", 2)
    store = make_store(tmp_path / "pairs")
    settings = parameters(
        epochs=3, table_updates=updates, negatives="mix", anneal=3, average_after=average_after
    )
    scores = iter([0.1, 0.3, 0.2])
    expected, whole = train(store, settings, evaluate=lambda encoder: next(scores))

    scores = iter([0.1, 0.3, 0.2])
    options: dict[str, Any] = {
        "evaluate": lambda encoder: next(scores),
        "checkpoints": tmp_path / "checkpoints",
        "checkpoint_seconds": 1e-9,
    }
    encoder = make_encoder(store)
    trainer = encoder_trainer(encoder, store, settings, **options)
    stop = _StopAfter(stop_after)
    monkeypatch.setattr("paraforge.learning.loop.check_interrupt", lambda: _interrupt(stop))
    with pytest.raises(Interrupted):
        trainer.run()
    monkeypatch.setattr("paraforge.learning.loop.check_interrupt", lambda: None)
    table, record = train(store, settings, **options)
    assert torch.equal(table, expected)
    assert dataclasses.asdict(record) == dataclasses.asdict(whole)
    again, _ = train(store, settings, **options)  # finished: nothing more is done
    assert torch.equal(again, expected)


def _interrupt(stop: _StopAfter) -> None:
    if stop():
        raise Interrupted()


def test_a_signal_leaves_a_checkpoint(tmp_path: Path) -> None:
    store = make_store(tmp_path / "pairs")
    with pytest.raises(Interrupted), interrupts.graceful_interrupts():
        interrupts._request_stop(15, None)
        train(store, parameters(), checkpoints=tmp_path / "checkpoints")
        pytest.fail("training did not stop")
    assert list((tmp_path / "checkpoints").glob("updates-*/state.json"))


def test_the_best_model_is_kept_and_training_stops_early(tmp_path: Path) -> None:
    store = make_store(tmp_path / "pairs")
    tables = []
    scores = iter([0.1, 0.5, 0.4, 0.5, 0.9])

    def evaluate(encoder: Encoder) -> float:
        tables.append(encoder.get_parameter("table").detach().clone())
        return next(scores)

    table, record = train(store, parameters(epochs=5, patience=2), evaluate=evaluate)
    assert [entry["score"] for entry in record.history] == [0.1, 0.5, 0.4, 0.5]
    assert record.best_score == 0.5
    assert torch.equal(table, tables[1])


@pytest.mark.parametrize("updates", ["lazy", "deferred", "dense"])
def test_the_mean_of_the_later_parameters_is_kept_and_evaluated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, updates: str
) -> None:
    monkeypatch.setattr("paraforge.learning.loop.AVERAGE_EVERY", 3)
    store = make_store(tmp_path / "pairs", pairs=56)  # 7 updates an epoch, of 8 pairs each
    changes = {"epochs": 3, "mega_batch": 1, "table_updates": updates, "average_after": 0.5}
    encoder = make_encoder(store)
    trainer = encoder_trainer(encoder, store, parameters(**changes))
    seen: dict[int, Tensor] = {}

    def observe(record: Record) -> None:
        trainer.task.optimiser.synchronise()
        seen[record.updates] = encoder.table.detach().clone()

    trainer._observe = observe
    trainer.run()
    entered = [seen[12], seen[15], seen[18], seen[21]]  # half of 168 pairs: update 10.5
    assert trainer.record.averaged == len(entered)
    torch.testing.assert_close(encoder.table.detach(), torch.stack(entered).mean(0))

    evaluated = []

    def evaluate(encoder: Encoder) -> float:
        evaluated.append(encoder.get_parameter("table").detach().clone())
        return float(len(evaluated))

    table, _ = train(store, parameters(**changes), evaluate=evaluate)
    torch.testing.assert_close(evaluated[0], seen[7])
    torch.testing.assert_close(evaluated[1], torch.stack(entered[:1]).mean(0))
    torch.testing.assert_close(evaluated[2], torch.stack(entered).mean(0))
    assert torch.equal(table, evaluated[2])


def test_evaluation_between_epochs(tmp_path: Path) -> None:
    store = make_store(tmp_path / "pairs")  # 57 pairs, mega-batches of 24, 24, 9
    settings = parameters(epochs=2, evaluate_every=40)
    _, record = train(store, settings, evaluate=lambda encoder: 1.0)
    assert [entry["pairs"] for entry in record.history] == [48, 81, 114]


def test_another_runs_checkpoint_is_refused(tmp_path: Path) -> None:
    store = make_store(tmp_path / "pairs")
    train(store, parameters(), checkpoints=tmp_path / "checkpoints")
    with pytest.raises(InputError, match="of another run"):
        train(store, parameters(margin=0.5), checkpoints=tmp_path / "checkpoints")


def test_a_vocabulary_larger_than_the_table_is_refused(tmp_path: Path) -> None:
    store = make_store(tmp_path / "pairs")
    rows = len(store.vocabularies["word"])
    with pytest.raises(InputError, match=f"has {rows - 1} rows, the pairs' word vocabulary {rows}"):
        encoder_trainer(Average(torch.zeros(rows - 1, 3)), store, parameters())
    with pytest.raises(InputError, match="reads trigram units, the pairs have word"):
        encoder_trainer(Average(torch.zeros(rows, 3), "trigram"), store, parameters())


def test_nan_in_vectors_is_refused(tmp_path: Path) -> None:
    store = make_store(tmp_path / "pairs")
    encoder = make_encoder(store)
    with torch.no_grad():
        encoder.table[3, 1] = float("nan")
    with pytest.raises(InputError, match="NaN or infinity"):
        encoder_trainer(encoder, store, parameters())


@pytest.mark.parametrize("learning_rate", [1e20, 1e38])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"loss": "softmax"},
        {"optimiser": "adagrad"},
        {"table_updates": "deferred"},
        {"table_updates": "dense"},
        {"negatives": "mix", "two_sided": False},
        {"anneal": 0, "negative_precision": "float32", "exclude_identical": False},
        {"lambda_words": 0.1, "clip": 1.0},
        {"average_after": 0.5},
        {"epochs": 1, "batch_size": 1000},  # a single update: no loss comes after it
    ],
    ids=str,
)
@pytest.mark.parametrize("evaluated", [True, False])
def test_divergence_is_an_error_and_leaves_nothing(
    tmp_path: Path, learning_rate: float, changes: dict[str, Any], evaluated: bool
) -> None:
    """The defaults but for what is named."""
    store = make_store(tmp_path / "pairs", pairs=300)
    settings = TrainingParameters.model_validate({"learning_rate": learning_rate, **changes})
    options: dict[str, Any] = {"checkpoints": tmp_path / "checkpoints", "checkpoint_seconds": 0.0}
    if evaluated:
        options["evaluate"] = lambda encoder: float(encoder.table.sum())
    with pytest.raises(InputError, match=r"diverged: .* not finite|diverged: the loss is") as caught:
        train(store, settings, dtype=torch.float32, **options)
    assert caught.value.exit_code == 2
    assert "Lower training.learning_rate" in str(caught.value)
    assert "\n" not in str(caught.value)
    for path in (tmp_path / "checkpoints").glob("updates-*/*.safetensors"):
        for value in load_file(path).values():
            assert bool(value.isfinite().all())


@pytest.mark.parametrize("kind", ["lstm", "dan", "rnn", "projection"])
def test_divergence_of_compositional_parameters_is_an_error(tmp_path: Path, kind: str) -> None:
    store = make_store(tmp_path / "pairs", pairs=300)
    made: Any = TypeAdapter(EncoderParameters).validate_python(named_encoder(kind))
    rows = len(store.vocabularies["word"])
    encoder = build_encoder(made, lambda part, _: torch.randn(rows, part.dimension), seed=2)
    with pytest.raises(InputError, match="the training diverged"):
        encoder_trainer(encoder, store, TrainingParameters(learning_rate=1e38, epochs=2)).run()


@pytest.mark.parametrize(
    "scores", [[math.nan, 0.3, 0.2], [0.3, math.nan, 0.2], [math.nan] * 3, [math.inf, 0.3, 0]]
)
def test_a_score_that_is_no_number_is_never_the_best(tmp_path: Path, scores: list[float]) -> None:
    store = make_store(tmp_path / "pairs")
    given = iter(scores)
    options: dict[str, Any] = {"checkpoints": tmp_path / "checkpoints"}
    _, record = train(store, parameters(epochs=3), evaluate=lambda encoder: next(given), **options)
    finite = [score for score in scores if math.isfinite(score)]
    assert record.best_score == (max(finite) if finite else None)
    assert [entry["score"] for entry in record.history] == [
        score if math.isfinite(score) else None for score in scores
    ]


def test_the_default_setting_is_that_of_the_definitions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is changed: M grows to 3, negatives are chosen in bfloat16, Adam moves the rows it meets.

    A cosine is right to 0.004 in bfloat16. So each choice has to be allowed and as close as that to the best
    one by the oracle's own vectors, and the oracle continues with it.
    """
    store = make_store(tmp_path / "pairs", pairs=8_200)
    settings = TrainingParameters()
    chosen: list[Tensor] = []

    def record(*arguments: Any, **options: Any) -> Tensor:
        chosen.append(choose_negatives(*arguments, **options))
        return chosen[-1]

    monkeypatch.setattr("paraforge.embeddings.objective.choose_negatives", record)
    table, record = train(store, settings)
    monkeypatch.undo()
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

    sentences = sentences_of(store)
    expected, losses = oracle.train_words_by_default(
        make_encoder(store).table.detach(),
        sentences[: len(store)],
        sentences[len(store) :],
        oracle_schedule(store, settings),
        choose,
    )
    assert max(sizes) == 300
    assert min(exact) > 0.9
    assert record.updates == len(losses) == 410
    assert record.counts["passed_over"] == 0
    torch.testing.assert_close(table, expected, rtol=1e-7, atol=1e-9)
    epoch = len(losses) // settings.epochs
    means = [sum(losses[first : first + epoch]) / epoch for first in range(0, len(losses), epoch)]
    assert [entry["loss"] for entry in record.history] == pytest.approx(means, rel=1e-9)


def test_loss_falls_on_pairs_that_can_be_learnt(tmp_path: Path) -> None:
    """Each right side is the left one in other words; after training its own partner is nearest."""
    generator = np.random.default_rng(0)
    left = [generator.integers(30, size=4) for _ in range(400)]
    block = PairBlock(
        pa.array([" ".join(f"a{k}" for k in words) for words in left]),
        pa.array([" ".join(f"b{k}" for k in words) for words in left]),
    )
    store = build_pair_store(tmp_path, [block], [Words()], VocabularyParameters())
    encoder = make_encoder(store, torch.float32, 20)
    settings = parameters(epochs=30, batch_size=50, mega_batch=1, table_updates="deferred")
    record = encoder_trainer(encoder, store, settings).run()
    losses = [entry["loss"] for entry in record.history]
    assert losses[-1] < 0.1 * losses[0]
