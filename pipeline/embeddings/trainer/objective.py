"""Trains an encoder on paraphrase pairs: mega-batches, negatives, mini-batch updates."""

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from paraforge.base.devices import torch_threads
from paraforge.base.errors import InputError
from paraforge.embeddings.encoders.encoder import Encoder
from paraforge.embeddings.learning.loop import Record, Task, Trainer, TrainingStep, divergence_error
from paraforge.embeddings.learning.optimizers import AdaGrad, Adam, Optimizer, clip_, separate
from paraforge.embeddings.losses import Batch, loss_named
from paraforge.embeddings.trainer.mega_batches import (
    MegaBatch,
    MiniBatch,
    encode,
    mega_batches,
    mini_batches,
)
from paraforge.embeddings.trainer.negatives import Precision, choose_negatives, negative_pool
from paraforge.embeddings.trainer.pair_store import PairStore
from paraforge.embeddings.trainer.parameters import TrainingParameters
from paraforge.embeddings.trainer.schedule import MIX, Schedule, generator_for, spans

logger = logging.getLogger(__name__)

PRODUCTS: Precision = "bfloat16"
"""Precision of the products for choosing negatives; three times as fast on processors that support it."""


def encoder_trainer(
    encoder: Encoder,
    store: PairStore,
    parameters: TrainingParameters,
    *,
    threads: int = 1,
    device: str = "cpu",
    **options: Any,
) -> Trainer[MegaBatch, Encoder]:
    """Return a run that trains an encoder, whose tables have a row for each unit of the pairs' vocabularies.

    For averaging encoders on the CPU, the result does not depend on the number of threads. Otherwise it is
    only the same for the same number of threads on the same machine. options: see :class:`Trainer`.
    """
    return Trainer(PairObjective(encoder, store, parameters, threads, device), **options)


class PairObjective(Task[MegaBatch, Encoder]):
    """The task of the training loop. A batch is a mega-batch, which takes as many updates as it has
    mini-batches.

    It counts `passed_over`, pairs without a candidate for a negative, and `empty_batches`, mini-batches of
    only such pairs.
    """

    counted = "pairs"

    def __init__(
        self,
        encoder: Encoder,
        store: PairStore,
        parameters: TrainingParameters,
        threads: int,
        device: str,
    ) -> None:
        self.module = encoder.to(device)
        self.size = len(store)
        self.total = len(store) * parameters.epochs
        self.evaluate_every = parameters.evaluate_every
        self.patience = parameters.patience
        self.average_after = parameters.average_after
        self.optimizer = _make_optimizer(encoder, parameters)
        self._store = store
        self._parameters = parameters
        self._threads = threads
        self._device = torch.device(device)
        self._tables = encoder.tables()
        self._composition = encoder.composition()
        self._loss = loss_named(parameters.loss)
        self._schedule = Schedule(
            len(store),
            parameters.batch_size,
            parameters.largest_mega_batch,
            parameters.anneal,
            parameters.seed,
            store.sources if parameters.one_source else None,
        )
        # Several small mega-batches are packed in advance, so that two threads rarely wait for each other.
        self.prefetch = 1 + 40 // self._schedule.mega_batch
        self._initial_tables: dict[str, Tensor] = {}
        if parameters.lambda_words:
            self._initial_tables = {name: table.detach().clone() for name, table in self._tables.items()}
        self._anchors = {name: anchor.to(device) for name, anchor in encoder.anchors().items()}
        self._pool: ThreadPoolExecutor | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Provide threads that search for negatives, and limit those inside torch's operations."""
        # Operations of an averaging encoder are small, so a second thread costs more than it gains. Without
        # it, results do not depend on the number of threads.
        inside = self._threads if self._composition else 1
        with torch_threads(inside), negative_pool(self._threads, self._device) as self._pool:
            yield

    def batches(self, record: Record) -> Iterator[MegaBatch]:
        """Yield mega-batches from the record's position."""
        return mega_batches(
            self._store,
            self._schedule,
            self.module,
            self._parameters,
            record.epoch,
            record.position,
            record.updates + record.counts.get("empty_batches", 0),
        )

    def clock(self, record: Record) -> int:
        """Return the number of pairs seen."""
        return record.seen

    def finish(self, record: Record) -> None:
        """Warn of pairs that had no negative. Raises InputError if none had one."""
        if not record.updates:
            raise InputError(
                f"nothing to learn: none of {record.seen:,} pairs has a negative, because all other "
                "texts in its mega-batch are identical to one of its own",
                remedy="Train on more pairs that differ.",
            )
        if passed_over := record.counts["passed_over"]:
            logger.warning(
                "%s of %s pairs seen were skipped: no text in their mega-batch could be a negative",
                f"{passed_over:,}",
                f"{record.seen:,}",
            )

    def step(self, mega_batch: MegaBatch, updates: int) -> TrainingStep:
        """Choose negatives with the current parameters, then go through the mini-batches."""
        pairs = len(mega_batch)
        # Without mega-batches, this is one mini-batch, which a left-over pair may have joined.
        batch_size = self._parameters.batch_size if self._loss.mega_batches else pairs
        negatives = self._negatives(mega_batch, updates)
        losses = []
        sizes = []
        # Packed in this thread, because waiting for another takes longer than packing.
        for batch in mini_batches(mega_batch, negatives, batch_size, self._device):
            losses.append(self._update(batch, mega_batch))
            sizes.append(batch.pairs)
        trained = sum(sizes)
        total = 0.0
        if trained:
            total = float((torch.stack(losses).double() * torch.tensor(sizes, device=self._device)).sum())
        empty = len(spans(pairs, self._parameters.batch_size)) - len(sizes)
        counts = {"passed_over": pairs - trained, "empty_batches": empty}
        return TrainingStep(pairs, len(sizes), total, trained, counts)

    def _negatives(self, mega_batch: MegaBatch, updates: int) -> Tensor:
        """Return the negative of each side, (sides, pairs); -1 for none. For a loss without mega-batches:
        (0, pairs), or (1, pairs) with -1 if no two pairs may be compared."""
        parameters, pairs = self._parameters, len(mega_batch)
        if not self._loss.mega_batches:
            forbidden, _ = mega_batch.forbidden.of_other_sides()
            alone = len(forbidden) == pairs * (pairs - 1)
            return torch.full((int(alone), pairs), -1)
        for name, unit in self.module.table_units().items():
            self.optimizer.refresh(name, mega_batch.rows[unit].to(self._device))
        embeddings = encode(self.module, mega_batch.bags, self._device)
        # With vectors that are not finite, nothing could be a negative, and every pair would be skipped.
        if not bool(embeddings.norm(dim=1).isfinite().all()):
            raise divergence_error("the sentences' vectors are not finite", updates)
        chosen = choose_negatives(
            embeddings,
            pairs,
            two_sided=parameters.two_sided,
            strategy=parameters.negatives,
            forbidden=mega_batch.forbidden,
            generator=generator_for(parameters.seed, MIX, mega_batch.epoch, mega_batch.first),
            precision=PRODUCTS,
            pool=self._pool,
        )
        return chosen.cpu().view(-1, pairs)

    def _seen(self, embeddings: Tensor, batch: MiniBatch, mega_batch: MegaBatch) -> Batch:
        """Return a mini-batch as input for the loss."""
        teacher = None
        if self._loss.teacher:
            numbers = mega_batch.numbers[batch.places.numpy()]
            teacher = torch.from_numpy(self._store.teacher_of(numbers)).to(self._device)
        # Without mega-batches, `forbidden` is about exactly this mini-batch.
        return Batch(embeddings, batch.pairs, mega_batch.forbidden, self._parameters, teacher)

    def _update(self, batch: MiniBatch, mega_batch: MegaBatch) -> Tensor:
        """Train on one mini-batch: forward, loss, gradient, update. Returns the loss without penalties."""
        rows, parameters = batch.rows, self._parameters
        optimizer, units = self.optimizer, self.module.table_units()
        optimizer.begin_step()
        leaves = {
            name: optimizer.read_rows(name, rows[unit]).requires_grad_() for name, unit in units.items()
        }
        embeddings = self.module(batch.bags, leaves)
        loss = self._loss.compute(self._seen(embeddings, batch, mega_batch))
        names = list(self._composition)
        parts = [*leaves.values(), *self._composition.values()]
        gradients = torch.autograd.grad(loss, parts, materialize_grads=True)  # 0 for fixed vectors
        if parameters.clip is not None or parameters.lambda_composition:
            gradients = separate(gradients)
        row_gradients = dict(zip(leaves, gradients, strict=False))
        composition_gradients = dict(zip(names, gradients[len(leaves) :], strict=True))
        with torch.no_grad():
            # Wieting 2016 Eq. 11: the penalty of a row is applied when a mini-batch uses the row.
            for name, initial in self._initial_tables.items():
                left = leaves[name] - initial[rows[units[name]]]
                row_gradients[name].add_(left, alpha=2 * parameters.lambda_words)
            if parameters.lambda_composition:
                for name, gradient in composition_gradients.items():
                    left = self._composition[name] - self._anchors.get(name, 0)
                    gradient.add_(left, alpha=2 * parameters.lambda_composition)
            if parameters.clip is not None:
                clip_(gradients, parameters.clip)
            for name, gradient in row_gradients.items():
                optimizer.write_rows(name, rows[units[name]], leaves[name], gradient)
            for name, gradient in composition_gradients.items():
                optimizer.update(name, gradient)
        return loss.detach()


def _make_optimizer(encoder: Encoder, parameters: TrainingParameters) -> Optimizer:
    named = {name: value.detach() for name, value in encoder.named_parameters()}
    if parameters.optimizer == "adagrad":
        return AdaGrad(named, parameters.learning_rate)
    return Adam(named, encoder.tables(), parameters.learning_rate)
