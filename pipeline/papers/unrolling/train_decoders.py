"""Trains a network to predict the neighbors of sentences, and evaluates it, with the shared training loop."""

import logging
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from paraforge.base.devices import check_device, check_precision, torch_threads
from paraforge.base.errors import InputError
from paraforge.base.files import hash_json
from paraforge.base.logs import counted
from paraforge.base.shards.resources import Resources
from paraforge.embeddings.learning.loop import Record, Task, Trainer, TrainingStep
from paraforge.embeddings.learning.optimisers import Adam, Optimiser, clip_, separate
from paraforge.embeddings.learning.runs import MODEL, open_or_build, run_once
from paraforge.embeddings.trainer.data import TrainingData
from paraforge.embeddings.trainer.initial import check_finite
from paraforge.embeddings.trainer.schedule import Schedule
from paraforge.embeddings.trainer.train_model import found_by, reproducible
from paraforge.papers.unrolling.model import DecoderModel
from paraforge.papers.unrolling.network import SentencePredictor
from paraforge.papers.unrolling.parameters import DecodersParameters, PredictionParameters
from paraforge.papers.unrolling.triples import (
    SentenceFile,
    TripleBatch,
    TripleStore,
    build_triple_store,
    read_sentences,
)
from paraforge.versions import DECODERS, __version__


def decoder_trainer(
    network: SentencePredictor,
    store: TripleStore,
    parameters: PredictionParameters,
    *,
    threads: int = 1,
    device: str = "cpu",
    **options: Any,
) -> Trainer[TripleBatch, SentencePredictor]:
    """Return a run that trains a network. On one machine, the same number of threads gives identical results.

    options: those of `Trainer`.

    Raises InputError if the numbers of words of network and triples differ, or a parameter is not finite.
    """
    return Trainer(PredictionObjective(network, store, parameters, threads, device), **options)


class PredictionObjective(Task[TripleBatch, SentencePredictor]):
    """The task for the training loop. Each batch is one update; losses are summed over predicted words."""

    counted = "triples"
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
        """Return the parameters, the network and the triples."""
        return {
            "parameters": self._parameters.model_dump(mode="json"),
            "network": self.module.architecture.model_dump(mode="json"),
            "triples": self._store.fingerprint,
        }

    def running(self) -> AbstractContextManager[None]:
        """Limit the threads inside torch's operations."""
        return torch_threads(self._threads)

    def batches(self, record: Record) -> Iterator[TripleBatch]:
        """Yield triples in the random order of each epoch, from the record's position."""
        epoch, position, left = record.epoch, record.position, self._updates - record.updates
        while left > 0:
            order = self._schedule.order(epoch)
            for first in range(position, self.size, self._parameters.batch_size):
                if left > 0:
                    yield self._store.batch(order[first : first + self._parameters.batch_size])
                left -= 1
            epoch, position = epoch + 1, 0

    def step(self, batch: TripleBatch, updates: int) -> TrainingStep:
        """Make one update by the mean loss over the words that a batch predicts."""
        words = len(batch.previous.ids) + len(batch.following.ids)
        total = self.module(batch.to(self._device), self._products)
        gradients = separate(torch.autograd.grad(total / words, list(self._named.values())))
        if self._parameters.clip is not None:
            clip_(gradients, self._parameters.clip)
        self.optimiser.begin_step()
        with torch.no_grad():
            for name, gradient in zip(self._named, gradients, strict=True):
                self.optimiser.update(name, gradient)
        return TrainingStep(len(batch), 1, float(total.detach()), words)


logger = logging.getLogger(__name__)


_DIGITS = 8


@dataclass(frozen=True)
class DecodersReport:
    """The result of a training.

    signature: one line on the data and the version.
    triples: triples in the file. seen: triples seen in all epochs.
    sentences, skipped: sentences with and without words. held_out: sentences left out.
    sentences_per_second: triples per second of the last process that trained.
    best_score: development score of the chosen model.
    sets, years: Pearson and Spearman x 100 on the test sets, by name.
    history: one entry per evaluation or epoch, with the loss in nats per predicted word.
    """

    signature: str
    dimension: int
    parameters: int
    words: int
    triples: int
    sentences: int
    documents: int
    skipped: int
    updates: int
    seen: int
    sentences_per_second: float
    seconds: float
    best_score: float | None
    history: list[dict[str, Any]]
    sets: dict[str, dict[str, Any]]
    years: dict[str, dict[str, Any]]
    held_out: int = 0


def train_decoders(
    parameters: DecodersParameters,
    file: SentenceFile,
    output: Path,
    resources: Resources,
    *,
    judges: TrainingData | None = None,
    device: str = "cpu",
    checkpoint_seconds: float = 300.0,
) -> DecodersReport:
    """Train a model into a directory, which is replaced as a whole when the model is finished.

    Triples, checkpoints and finished models are in `resources.work`/decoders/KEY, the hash of everything that
    the result depends on, so the same call resumes a killed one.

    judges: development sets that choose the model, and test sets to evaluate at the end. With `drop_leaked`,
        their sentences are not trained on; a document ends at each of them.

    Raises:
        InputError: the file is missing or wrong, or has no three consecutive sentences.
        ConfigurationError: no such device.
        Interrupted: SIGTERM or Ctrl-C; a checkpoint has been written.
        WorkLockedError: another process runs the same training.
    """
    sets = judges or TrainingData()
    check_device(device)
    leakage = sets.leakage_filter()
    held_out = leakage if sets.drop_leaked and leakage.looks else None
    data = hash_json([file.identity(), None if held_out is None else held_out.sentences.digest])
    _ = sets.development_pairs  # warns before work is spent
    key = hash_json(
        {
            "version": DECODERS,
            "parameters": parameters.model_dump(mode="json"),
            "sentences": data,
            "judges": sets.fingerprint(),
        }
    )
    signature = f"data:{data[:_DIGITS]}|tok:moses-lc|v:{__version__}"

    def train(directory: Path) -> dict[str, Any]:
        begin = time.perf_counter()
        triples = directory / "triples"
        store = open_or_build(
            triples,
            lambda: TripleStore(triples),
            lambda: build_triple_store(
                triples, read_sentences(file, held_out), parameters.vocabulary, parameters.maximum_length
            ),
        )
        logger.info(
            "%s triples of %s sentences in %s documents, %s words%s",
            f"{len(store):,}",
            f"{store.sentences:,}",
            f"{store.documents:,}",
            f"{len(store.vocabulary):,}",
            f"; {counted(store.held_out, 'sentence')} held out" if store.held_out else "",
        )
        network = SentencePredictor(parameters.network, len(store.vocabulary), parameters.training.seed)
        model = DecoderModel.of_network(
            network, store.vocabulary, parameters.reading, parameters.maximum_length
        )
        trainer = decoder_trainer(
            network,
            store,
            parameters.training,
            evaluate=sets.development_score_of(model),
            checkpoints=directory / "checkpoints",
            checkpoint_seconds=checkpoint_seconds,
            threads=resources.thread_count(),
            device=device,
        )
        record = trainer.run()
        with torch_threads(resources.thread_count()):
            found = found_by(trainer, model, sets, begin)
        report = DecodersReport(
            signature=f"triples:{len(store)}|{signature}",
            words=len(store.vocabulary),
            triples=len(store),
            sentences=store.sentences,
            documents=store.documents,
            skipped=store.skipped,
            held_out=store.held_out,
            seen=record.seen,
            sentences_per_second=trainer.rate,
            **found,
        )
        about = {**reproducible(report), "training": parameters.model_dump(mode="json")}
        model.save(directory / MODEL, about)
        return asdict(report)

    report = run_once(
        "decoders",
        key,
        resources.work,
        output,
        train=train,
        open_model=DecoderModel.open,
        scratch=("triples", "checkpoints"),
    )
    return DecodersReport(**report)
