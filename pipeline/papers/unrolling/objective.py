"""Train a network to predict the neighbours of sentences: a task of the training loop."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import torch

from paraforge.base.devices import check_precision, torch_threads
from paraforge.base.errors import InputError
from paraforge.embeddings.learning.loop import Record, Trainer, TrainingStep
from paraforge.embeddings.learning.optimisers import Adam, Optimiser, clip_, separate
from paraforge.embeddings.trainer.initial import check_finite
from paraforge.embeddings.trainer.schedule import Schedule, generator_for
from paraforge.papers.unrolling.likelihood import SampledWords, sample_words
from paraforge.papers.unrolling.network import SentencePredictor
from paraforge.papers.unrolling.parameters import PredictionParameters
from paraforge.papers.unrolling.triples import TripleBatch, TripleStore

SAMPLE = 100
"""A use of random numbers, next to those of `trainer.schedule`: the words of a sampled softmax."""


def decoder_trainer(
    network: SentencePredictor,
    store: TripleStore,
    parameters: PredictionParameters,
    *,
    threads: int = 1,
    device: str = "cpu",
    **options: Any,
) -> Trainer[TripleBatch, SentencePredictor]:
    """A run that trains a network; its result is the same to the bit for one machine and number of threads.

    Raises InputError where the network has another number of words than the triples, or NaN. options: of
    `Trainer`.
    """
    return Trainer(PredictionObjective(network, store, parameters, threads, device), **options)


class PredictionObjective:
    """The task of the training loop. A batch is one update; it counts the predicted `words`."""

    counted = "triples"
    average_after: float | None = None
    prefetch = 4

    def __init__(
        self,
        network: SentencePredictor,
        store: TripleStore,
        parameters: PredictionParameters,
        threads: int,
        device: str,
    ) -> None:
        if len(network.words) != len(store.vocabulary):
            raise InputError(
                f"the network has {len(network.words)} words, the triples {len(store.vocabulary)}",
                store.directory,
            )
        check_finite(network)
        self.module = network.to(device)
        self.size = len(store)
        self.evaluate_every = parameters.evaluate_every
        self.patience = parameters.patience
        self._store = store
        self._parameters = parameters
        self._threads = threads
        self._device = torch.device(device)
        self._named = dict(network.named_parameters())
        named = {name: value.detach() for name, value in self._named.items()}
        self.optimiser: Optimiser = Adam(named, frozenset(), parameters.learning_rate)
        check_precision(parameters.precision, self._device.type)
        self._products = torch.bfloat16 if parameters.precision == "bfloat16" else None
        self._schedule = Schedule(len(store), parameters.batch_size, 1, 0, parameters.seed)
        of_epoch = -(-len(store) // parameters.batch_size)
        self._updates = min(parameters.epochs * of_epoch, parameters.updates or parameters.epochs * of_epoch)
        epochs, rest = divmod(self._updates, of_epoch)
        self.total = epochs * len(store) + rest * parameters.batch_size

    def identity(self) -> dict[str, Any]:
        """Parameters, network and triples."""
        return {
            "parameters": self._parameters.model_dump(mode="json"),
            "network": self.module.architecture.model_dump(mode="json"),
            "triples": self._store.fingerprint,
        }

    def running(self) -> AbstractContextManager[None]:
        """Threads inside torch's operations."""
        return torch_threads(self._threads)

    def batches(self, record: Record) -> Iterator[TripleBatch]:
        """Triples in the random order of each epoch, from where the record is."""
        epoch, position, left = record.epoch, record.position, self._updates - record.updates
        while left > 0:
            order = self._schedule.order(epoch)
            for first in range(position, self.size, self._parameters.batch_size):
                if left > 0:
                    yield self._store.batch(order[first : first + self._parameters.batch_size])
                left -= 1
            epoch, position = epoch + 1, 0

    def clock(self, record: Record) -> int:
        """Updates."""
        return record.updates

    def finish(self, record: Record) -> None:
        """Nothing is passed over."""

    def step(self, batch: TripleBatch, updates: int) -> TrainingStep:
        """One update by the mean over the words that a batch predicts."""
        words = len(batch.previous.ids) + len(batch.following.ids)
        total = self.module(batch.to(self._device), self._products, self._sampled(batch, updates))
        gradients = separate(torch.autograd.grad(total / words, list(self._named.values())))
        if self._parameters.clip is not None:
            clip_(gradients, self._parameters.clip)
        self.optimiser.begin_step()
        with torch.no_grad():
            for name, gradient in zip(self._named, gradients, strict=True):
                self.optimiser.update(name, gradient)
        return TrainingStep(len(batch), 1, float(total.detach()), words, {"words": words})

    def _sampled(self, batch: TripleBatch, updates: int) -> SampledWords | None:
        count = self._parameters.sampled_words
        if count is None:
            return None
        predicted = torch.cat([batch.previous.ids, batch.following.ids]).to(self._device)
        generator = generator_for(self._parameters.seed, SAMPLE, updates)
        return sample_words(predicted, len(self._store.vocabulary), count, generator)
