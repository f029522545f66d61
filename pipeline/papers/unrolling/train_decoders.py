"""Trains a network to predict the neighbors of sentences, with the shared training loop."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch

from paraforge.base.devices import check_device, check_precision, torch_threads
from paraforge.base.errors import InputError
from paraforge.base.files import hash_json, sha256_file
from paraforge.base.logs import counted
from paraforge.base.shards.resources import Resources
from paraforge.base.text.normalization import SentenceSet
from paraforge.embeddings.evaluation.sets import read_sets
from paraforge.embeddings.learning.loop import Record, Task, Trainer, TrainingStep
from paraforge.embeddings.learning.optimizers import Adam, clip_, separate
from paraforge.embeddings.learning.runs import MODEL, run_once
from paraforge.embeddings.trainer.schedule import Schedule
from paraforge.papers.unrolling.model import DecoderModel
from paraforge.papers.unrolling.network import SentencePredictor
from paraforge.papers.unrolling.parameters import DecodersParameters, PredictionParameters
from paraforge.papers.unrolling.triples import TripleBatch, TripleStore, build_triple_store, read_sentences
from paraforge.versions import DECODERS, __version__

logger = logging.getLogger(__name__)

CLIP = 5.0
"""Largest norm of the gradient of the mean loss per word. The paper's code limits that of a sum."""


class PredictionObjective(Task[TripleBatch, SentencePredictor]):
    """The task for the training loop. Each batch is one update; losses are summed over predicted words."""

    counted = "triples"
    prefetch = 4

    def __init__(
        self,
        network: SentencePredictor,
        store: TripleStore,
        parameters: PredictionParameters,
        threads: int = 1,
        device: str = "cpu",
    ) -> None:
        """Prepare the training of a network whose vocabulary is the store's.

        threads: on one machine, the same number of threads gives identical results.
        """
        self.module = network.to(device)
        self.size = len(store)
        self._store = store
        self._parameters = parameters
        self._threads = threads
        self._device = torch.device(device)
        self._named = dict(network.named_parameters())
        named = {name: value.detach() for name, value in self._named.items()}
        self.optimizer = Adam(named, learning_rate=parameters.learning_rate)
        check_precision(parameters.precision, self._device.type)
        self._products = torch.bfloat16 if parameters.precision == "bfloat16" else None
        self._schedule = Schedule(len(store), parameters.batch_size, 1, 0, parameters.seed)
        of_epoch = -(-len(store) // parameters.batch_size)
        self._updates = min(parameters.epochs * of_epoch, parameters.updates or parameters.epochs * of_epoch)
        epochs, rest = divmod(self._updates, of_epoch)
        self.total = epochs * len(store) + rest * parameters.batch_size

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
        clip_(gradients, CLIP)
        self.optimizer.begin_step()
        with torch.no_grad():
            for name, gradient in zip(self._named, gradients, strict=True):
                self.optimizer.update(name, gradient)
        return TrainingStep(len(batch), 1, float(total.detach()), words)


def train_decoders(
    parameters: DecodersParameters,
    sentences: Path,
    output: Path,
    resources: Resources,
    *,
    held_out: Sequence[Path] = (),
    device: str = "cpu",
    checkpoint_seconds: float = 300.0,
) -> dict[str, Any]:
    """Train a model into a directory, which is replaced as a whole when the model is finished.

    Checkpoints and finished models are in `resources.work`/decoders/KEY. KEY is a hash of everything that the
    result depends on, so the same call resumes a killed one; it reads the sentences again.

    sentences: file of running text; see `read_sentences`.
    held_out: STS files or directories whose sentences are not trained on; a document ends at each of them.

    Returns the report: signature (one line on data and version); dimension; numbers of words, triples,
    sentences, documents, sentences without words (skipped), held-out sentences, updates, and triples seen in
    all epochs; history, with the loss in nats per predicted word at the end of each epoch; and
    sentences_per_second, the triples per second of the last process that trained.

    Raises:
        InputError: a file is missing or malformed, or has no three consecutive sentences.
        ConfigurationError: no such device.
        Interrupted: SIGTERM or Ctrl-C; a checkpoint has been written.
        WorkLockedError: another process runs the same training.
    """
    check_device(device)
    if not sentences.is_file():
        raise InputError("no such file", sentences)
    without = None
    if held_out:
        without = SentenceSet({pairs.name: pairs.sentences for pairs in read_sets(held_out)})
    data = _fingerprint(sentences, without)

    def train(directory: Path) -> dict[str, Any]:
        store = build_triple_store(
            directory / "triples", read_sentences(sentences, without), parameters.vocabulary
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
        threads = resources.thread_count()
        trainer = Trainer(
            PredictionObjective(network, store, parameters.training, threads, device),
            checkpoints=directory / "checkpoints",
            checkpoint_seconds=checkpoint_seconds,
        )
        record = trainer.run()
        model = DecoderModel.of_network(network, store.vocabulary)
        report = {
            "signature": f"triples:{len(store)}|data:{data[:8]}|tok:moses-lc|v:{__version__}",
            "dimension": model.dimension,
            "words": len(store.vocabulary),
            "triples": len(store),
            "sentences": store.sentences,
            "documents": store.documents,
            "skipped": store.skipped,
            "held_out": store.held_out,
            "updates": record.updates,
            "seen": record.seen,
            "history": record.history,
        }
        model.save(directory / MODEL, {**report, "training": parameters.model_dump(mode="json")})
        # The speed is not saved with the model, so that the same training gives the same bytes.
        return {**report, "sentences_per_second": trainer.rate}

    return run_once(
        "decoders",
        _key(parameters, data),
        resources.work,
        output,
        train=train,
        open_model=DecoderModel.open,
        scratch=("triples", "checkpoints"),
    )


def _fingerprint(sentences: Path, without: SentenceSet | None) -> str:
    return hash_json([sha256_file(sentences), None if without is None else without.digest])


def _key(parameters: DecodersParameters, data: str) -> str:
    """Return the hash of everything that the result depends on. data: fingerprint of the sentences."""
    return hash_json(
        {"version": DECODERS, "parameters": parameters.model_dump(mode="json"), "sentences": data}
    )
