"""Training of decoders against a plain loop, and interrupted."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from paraforge.base.errors import InputError, Interrupted
from paraforge.embeddings.learning import loop
from paraforge.embeddings.learning.loop import Record, Trainer
from paraforge.papers.unrolling import train_decoders
from paraforge.papers.unrolling.network import SentencePredictor
from paraforge.papers.unrolling.parameters import NetworkParameters, PredictionParameters
from paraforge.papers.unrolling.train_decoders import PredictionObjective
from paraforge.papers.unrolling.triples import TripleBatch, TripleStore
from tests.papers.unrolling.corpus import SIZES, make_store, random_documents


def make_network(store: TripleStore, encoder: str = "gru", decoder: str = "gru") -> SentencePredictor:
    parameters = NetworkParameters.model_validate({"encoder": encoder, "decoder": decoder, **SIZES})
    return SentencePredictor(parameters, len(store.vocabulary), seed=1)


def settings(**values: Any) -> PredictionParameters:
    usual = {"epochs": 2, "batch_size": 8, "learning_rate": 0.01}
    return PredictionParameters.model_validate({**usual, **values})


def train(
    store: TripleStore, parameters: PredictionParameters, encoder: str = "gru", **options: Any
) -> tuple[dict[str, torch.Tensor], Record]:
    trainer = Trainer(PredictionObjective(make_network(store, encoder), store, parameters), **options)
    trainer.run()
    return {name: value.detach() for name, value in trainer.module.named_parameters()}, trainer.record


def assert_same(left: dict[str, torch.Tensor], right: dict[str, torch.Tensor]) -> None:
    assert left.keys() == right.keys()
    for name, value in left.items():
        assert torch.equal(value, right[name]), name


@pytest.mark.parametrize(
    ("encoder", "decoder", "parameters", "clip"),
    [
        ("gru", "gru", PredictionParameters(), 5),
        ("bow", "gru", settings(), 5),
        ("gru", "bow", settings(), 0.05),
        ("bow", "bow", settings(updates=5), 5),
    ],
)
def test_training_is_adam_on_mean_word_loss(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    encoder: str,
    decoder: str,
    parameters: PredictionParameters,
    clip: float,
) -> None:
    assert train_decoders.CLIP == 5
    monkeypatch.setattr(train_decoders, "CLIP", clip)
    store = make_store(tmp_path, random_documents(60 if parameters == PredictionParameters() else 6))
    network = make_network(store, encoder, decoder).double()
    trainer = Trainer(PredictionObjective(network, store, parameters))
    trainer.run()

    expected = make_network(store, encoder, decoder).double()
    optimizer = torch.optim.Adam(expected.parameters(), lr=parameters.learning_rate)
    updates = 0
    losses: list[float] = []
    for epoch in range(parameters.epochs):
        order = np.random.default_rng([1, 0, epoch]).permutation(len(store))
        for first in range(0, len(store), parameters.batch_size):
            if parameters.updates == updates:
                break
            batch = store.batch(order[first : first + parameters.batch_size])
            words = len(batch.previous.ids) + len(batch.following.ids)
            optimizer.zero_grad()
            loss = expected(batch) / words
            loss.backward()
            torch.nn.utils.clip_grad_norm_(expected.parameters(), clip)
            optimizer.step()
            updates += 1
            losses.append(loss.item())
    for name, value in network.named_parameters():
        torch.testing.assert_close(value, expected.get_parameter(name), rtol=1e-5, atol=1e-6)
    whole = parameters.epochs * math.ceil(len(store) / parameters.batch_size)
    assert trainer.record.updates == updates == (parameters.updates or whole) > 1
    assert min(losses) < trainer.record.history[-1]["loss"] < max(losses)


@pytest.mark.parametrize(("decoder", "updates"), [("bow", 1), ("gru", 5), ("gru", 6)])
def test_killed_decoder_training_resumes_to_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decoder: str, updates: int
) -> None:
    """Training is killed within an epoch and at its end."""
    store = make_store(tmp_path / "store")
    scores = {}
    parameters = settings(batch_size=4)

    def trainer_of(directory: Path) -> Trainer[TripleBatch, SentencePredictor]:
        task = PredictionObjective(make_network(store, "gru", decoder), store, parameters)
        return Trainer(task, checkpoints=directory, checkpoint_seconds=0)

    for name in ("whole", "killed"):
        if name == "killed":
            killed = trainer_of(tmp_path / name)

            def stop(killed: Any = killed) -> bool:
                return bool(killed.record.updates == updates)

            monkeypatch.setattr(loop, "stop_requested", stop)
            with pytest.raises(Interrupted):
                killed.run()
            monkeypatch.undo()
        trainer = trainer_of(tmp_path / name)
        trainer.run()
        scores[name] = (dict(trainer.module.named_parameters()), vars(trainer.record))
    assert_same(scores["whole"][0], scores["killed"][0])
    assert scores["whole"][1] == scores["killed"][1]
    for path in (tmp_path / "whole").iterdir():
        assert path.read_bytes() == (tmp_path / "killed" / path.name).read_bytes(), path.name


def test_seed_changes_order_and_nan_is_error(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    _, record = train(store, settings())
    assert train(store, settings(seed=2))[1].history != record.history
    network = make_network(store)
    with torch.no_grad():
        network.output.bias[1] = 1e30
        network.output.weight[1] = 1e38
    with pytest.raises(InputError, match=r"the loss is .* Lower learning_rate"):
        Trainer(PredictionObjective(network, store, settings())).run()


def test_bfloat16_training_is_close(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    exact, near = (train(store, settings(precision=kind))[1] for kind in ("float32", "bfloat16"))
    assert near.history[-1]["loss"] != exact.history[-1]["loss"]
    assert near.history[-1]["loss"] == pytest.approx(exact.history[-1]["loss"], rel=0.01)
