"""Trains an encoder on paraphrase pairs: mega-batches, negatives, mini-batch updates, checkpoints, model
choice."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from pathlib import Path

import torch
from torch import Tensor

from paraforge.embeddings.encoders.protocol import Encoder
from paraforge.embeddings.initial import check_finite
from paraforge.embeddings.loss import margin_loss, softmax_loss
from paraforge.embeddings.mega_batches import MiniBatch, PackedMegaBatch, encode, mega_batches, mini_batches
from paraforge.embeddings.negatives import ForbiddenCandidates, choose_negatives, negative_pool
from paraforge.embeddings.pair_store import PairStore
from paraforge.embeddings.parameters import TrainingParameters
from paraforge.embeddings.regularisation import Regularisation
from paraforge.embeddings.schedule import MIX, Schedule, generator_for
from paraforge.errors import InputError
from paraforge.files import hash_json
from paraforge.interrupts import check_interrupt, stop_requested
from paraforge.learning.ahead import ahead
from paraforge.learning.averaging import AVERAGE_EVERY, ParameterAverage
from paraforge.learning.checkpoint import Checkpoints
from paraforge.learning.divergence import check_parameters, diverged
from paraforge.learning.model_choice import BestParameters
from paraforge.learning.optimisers import AdaGrad, Adam, Optimiser, clip_
from paraforge.learning.state import TrainingReport, TrainingState
from paraforge.learning.threads import torch_threads
from paraforge.progress import progress

logger = logging.getLogger(__name__)

Evaluate = Callable[[Encoder], float]
"""Development score of an encoder, higher is better."""


class Trainer:
    """One training run. Results depend on the encoder, pairs and parameters alone, not on threads,
    checkpoints or interruptions.

    That holds to the bit for averaging encoders on the CPU; with compositional parameters, and on a GPU,
    for one number of threads and one machine.
    """

    def __init__(
        self,
        encoder: Encoder,
        store: PairStore,
        parameters: TrainingParameters,
        *,
        evaluate: Evaluate | None = None,
        checkpoints: Path | None = None,
        checkpoint_seconds: float = 300.0,
        threads: int = 1,
        device: str = "cpu",
        description: str = "train",
        observe: Callable[[TrainingState], None] | None = None,
    ) -> None:
        """Prepare a run.

        evaluate: called at the end of every epoch (or every `parameters.evaluate_every` pairs); the
            encoder ends as it was where the score was best, and training stops early after
            `parameters.patience` evaluations without gain.
        checkpoints: directory to resume from and to save to.
        observe: called after every mega-batch, e.g. to measure; what it raises ends the run.
        threads: of negative search and, for compositional encoders, of everything.

        Raises:
            InputError: the encoder's tables do not fit the pairs' vocabularies, or hold NaN.
        """
        self.encoder = encoder.to(device)
        self.store = store
        self.parameters = parameters
        self.state = TrainingState()
        self._evaluate = evaluate
        self._threads = threads
        self._device = torch.device(device)
        self._checkpoint_seconds = checkpoint_seconds
        self._description = description
        self._observe = observe
        _check_fit(encoder, store)
        self._tables = encoder.tables()
        self._composition = encoder.composition()
        self._schedule = Schedule(
            len(store),
            parameters.batch_size,
            parameters.largest_mega_batch,
            parameters.anneal,
            parameters.seed,
            store.sources if parameters.one_source else None,
        )
        self._regularisation = Regularisation(
            parameters.lambda_words,
            parameters.lambda_composition,
            {name: table.detach().clone() for name, table in self._tables.items()}
            if parameters.lambda_words
            else {},
            {name: anchor.to(device) for name, anchor in encoder.anchors().items()},
        )
        self._optimiser = _make_optimiser(encoder, parameters)
        sizes = {name: len(vocabulary) for name, vocabulary in store.vocabularies.items()}
        self._whole_tables = sizes if parameters.table_updates == "dense" else None
        self._autocast = parameters.precision == "bfloat16"
        self._average: ParameterAverage | None = None
        if parameters.average_after is not None:
            named = encoder.named_parameters()
            self._average = ParameterAverage({name: value.detach() for name, value in named})
        self._best = BestParameters(encoder, parameters.patience)
        self._checkpoints = None if checkpoints is None else Checkpoints(checkpoints, self._key())

    def run(self) -> TrainingReport:
        """Train to the end, from the newest checkpoint where there is one.

        Raises:
            Interrupted: SIGTERM or Ctrl-C; a checkpoint has been written.
            InputError: not a single pair could be told from another; or loss, vectors or parameters are not
                finite: no checkpoint is written then.
        """
        self._resume()
        begin = time.perf_counter()
        started_with = self.state.pairs
        outside = 0.0
        with ExitStack() as stack:
            # Operations of an averaging encoder are small: a second thread costs them more than it gains,
            # and without it their results do not depend on the number of threads.
            stack.enter_context(torch_threads(self._threads if self._composition else 1))
            # No encoder behaves otherwise in training, but cuDNN refuses a gradient outside of it.
            self.encoder.train()
            stack.callback(self.encoder.eval)
            pool = stack.enter_context(negative_pool(self._threads, self._device))
            shown = stack.enter_context(
                progress(
                    total=self._schedule.total_pairs(self.parameters.epochs),
                    unit="pairs",
                    description=self._description,
                    done=self.state.pairs,
                )
            )
            saved = time.perf_counter()
            packed = mega_batches(
                self.store,
                self._schedule,
                self.encoder,
                self.parameters,
                self.state.epoch,
                self.state.position,
                self.state.updates + self.state.empty_batches,
            )
            # Small mega-batches are packed several at once, so that two threads need not wait on each other
            # for each.
            upcoming = stack.enter_context(ahead(packed, 1 + 40 // self._schedule.mega_batch))
            for mega_batch in upcoming:
                if self.state.finished:
                    break
                self._train(mega_batch, pool)
                shown.update(len(mega_batch.place))
                shown.status(self._status())
                pause = time.perf_counter()
                self._end_of_mega_batch(mega_batch)
                due = time.perf_counter() - saved > self._checkpoint_seconds
                if self._checkpoints is not None and (due or stop_requested()):
                    self._save()
                    saved = time.perf_counter()
                outside += time.perf_counter() - pause
                if self._observe is not None:
                    self._observe(self.state)
                check_interrupt()
        if not self.state.updates:
            raise InputError(
                f"nothing to learn: of {self.state.pairs:,} pairs none has another to be told from, since "
                "all texts beside it in its mega-batch are identical to one of its own",
                remedy="Train on more pairs that differ.",
            )
        if self.state.passed_over:
            logger.warning(
                "%s of %s pairs seen were passed over: no text in their mega-batch that could be a negative",
                f"{self.state.passed_over:,}",
                f"{self.state.pairs:,}",
            )
        self.state.finished = True
        self._optimiser.synchronise()
        check_parameters(self.encoder, self.state.updates)
        if not self._best.settle() and self._average is not None:
            self._average.settle()
        if self._checkpoints is not None:
            self._save()
        seconds = time.perf_counter() - begin - outside
        return TrainingReport(self.state, seconds, (self.state.pairs - started_with) / max(seconds, 1e-9))

    def _train(self, mega_batch: PackedMegaBatch, pool: ThreadPoolExecutor | None) -> None:
        """Choose negatives with the current parameters, then go through the mini-batches."""
        place, pairs = mega_batch.place, len(mega_batch.place)
        batch_size = self.parameters.batch_size
        if self.parameters.loss == "softmax":
            # The mini-batch that its negatives are taken from: one left-over pair may have joined it.
            batch_size = pairs
        negatives = self._negatives(mega_batch, pool)
        losses = []
        sizes = []
        packed = mini_batches(mega_batch, negatives, batch_size, self._device, self._whole_tables)
        # A thread of its own for a single mini-batch would cost more than it packs.
        one = pairs <= batch_size
        with nullcontext(packed) if one else ahead(packed, 2) as batches:
            for batch in batches:
                losses.append(self._update(batch, mega_batch.forbidden))
                sizes.append(batch.pairs)
        trained = sum(sizes)
        self.state.pairs += pairs
        self.state.position = place.last
        self.state.passed_over += pairs - trained
        self.state.empty_batches += len(place.mini_batches(self.parameters.batch_size)) - len(sizes)
        if not trained:
            return
        total = float((torch.stack(losses).double() * torch.tensor(sizes, device=self._device)).sum())
        if not math.isfinite(total):
            raise diverged(f"the loss is {total}", self.state.updates + len(sizes))
        before = self.state.updates // AVERAGE_EVERY
        self.state.updates += len(sizes)
        if self.state.updates // AVERAGE_EVERY > before:
            self._enter_average()
        self.state.loss_sum += total
        self.state.loss_pairs += trained

    def _negatives(self, mega_batch: PackedMegaBatch, pool: ThreadPoolExecutor | None) -> Tensor:
        """The chosen negative of each side, (sides, pairs); none for a softmax over all of them."""
        parameters, place = self.parameters, mega_batch.place
        if parameters.loss == "softmax":
            return torch.empty((0, len(place)), dtype=torch.int64)
        for name, unit in self.encoder.table_units().items():
            self._optimiser.refresh(name, mega_batch.rows[unit].to(self._device))
        embeddings = encode(self.encoder, mega_batch.bags, self._device)
        # Of vectors that are not finite none would be a negative, and every pair would be passed over.
        if not bool(embeddings.norm(dim=1).isfinite().all()):
            raise diverged("the sentences' vectors are not finite", self.state.updates)
        chosen = choose_negatives(
            embeddings,
            len(place),
            two_sided=parameters.two_sided,
            strategy=parameters.negatives,
            forbidden=mega_batch.forbidden,
            generator=generator_for(parameters.seed, MIX, place.epoch, place.first),
            precision=parameters.negative_precision,
            pool=pool,
        )
        return chosen.cpu().view(-1, len(place))

    def _enter_average(self) -> None:
        """Let the parameters enter the mean, where its time has come."""
        after = self.parameters.average_after
        if self._average is None or after is None:
            return
        if self.state.pairs >= after * self._schedule.total_pairs(self.parameters.epochs):
            self._optimiser.synchronise()
            self._average.add()
            self.state.averaged = self._average.count

    def _loss(self, embeddings: Tensor, pairs: int, forbidden: ForbiddenCandidates) -> Tensor:
        """Of a mini-batch, which is all that `forbidden` is of where the loss is a softmax."""
        parameters = self.parameters
        if parameters.loss == "margin":
            return margin_loss(embeddings, pairs, parameters.margin)
        left, right = (side.to(self._device, non_blocking=True) for side in forbidden.of_other_sides())
        return softmax_loss(embeddings, pairs, (left, right), parameters.scale, parameters.two_sided)

    def _update(self, batch: MiniBatch, forbidden: ForbiddenCandidates) -> Tensor:
        """One mini-batch: forward, loss, gradient, update. Returns the loss without penalties."""
        rows, pairs = batch.rows, batch.pairs
        optimiser, units = self._optimiser, self.encoder.table_units()
        optimiser.begin_step()
        leaves = {
            name: optimiser.read_rows(name, rows[unit]).requires_grad_() for name, unit in units.items()
        }
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._autocast):
            embeddings = self.encoder(batch.bags, leaves)
        loss = self._loss(embeddings.float() if self._autocast else embeddings, pairs, forbidden)
        names = list(self._composition)
        gradients = torch.autograd.grad(loss, [*leaves.values(), *self._composition.values()])
        if self.parameters.clip is not None or self.parameters.lambda_composition:
            gradients = separate(gradients)
        row_gradients = dict(zip(leaves, gradients, strict=False))
        composition_gradients = dict(zip(names, gradients[len(leaves) :], strict=True))
        with torch.no_grad():
            for name, gradient in row_gradients.items():
                self._regularisation.add_row_gradient(name, rows[units[name]], leaves[name], gradient)
            for name, gradient in composition_gradients.items():
                self._regularisation.add_gradient(name, self._composition[name], gradient)
            if self.parameters.clip is not None:
                clip_(gradients, self.parameters.clip)
            for name, gradient in row_gradients.items():
                optimiser.write_rows(name, rows[units[name]], leaves[name], gradient)
            for name, gradient in composition_gradients.items():
                optimiser.update(name, gradient)
        return loss.detach()

    def _end_of_mega_batch(self, mega_batch: PackedMegaBatch) -> None:
        """Evaluate where it is due, and begin the next epoch at the end of one."""
        state, every = self.state, self.parameters.evaluate_every
        end_of_epoch = state.position >= len(self.store)
        if end_of_epoch:
            state.epoch += 1
            state.position = 0
        crossed = every and (state.pairs // every) > ((state.pairs - len(mega_batch.place)) // every)
        if not (crossed or (end_of_epoch and (not every or state.epoch == self.parameters.epochs))):
            return
        check_parameters(self.encoder, state.updates)
        score = None
        if self._evaluate is not None:
            self._optimiser.synchronise()
            averaged = nullcontext() if self._average is None else self._average.in_place_of_the_last()
            with torch.no_grad(), averaged:
                score = self._best.judge(float(self._evaluate(self.encoder)), state.updates, state)
        loss = state.loss
        state.loss_sum, state.loss_pairs = 0.0, 0
        state.history.append(
            {
                "epoch": state.epoch,
                "pairs": state.pairs,
                "updates": state.updates,
                "loss": loss,
                "score": score,
            }
        )
        logger.info(
            "epoch %d, %s pairs: loss %s%s",
            state.epoch if end_of_epoch else state.epoch + 1,
            f"{state.pairs:,}",
            "-" if loss is None else f"{loss:.4f}",
            "" if score is None else f", development score {score:.4f}",
        )

    def _status(self) -> str:
        state = self.state
        loss = state.latest_loss
        parts = [] if loss is None else [f"loss {loss:.4f}"]
        if state.best_score is not None:
            parts.append(f"best score {state.best_score:.4f}")
        return ", ".join(parts)

    def _key(self) -> str:
        shapes = {name: list(value.shape) for name, value in self.encoder.named_parameters()}
        return hash_json(
            {
                "parameters": self.parameters.model_dump(mode="json"),
                "encoder": repr(self.encoder),
                "shapes": shapes,
                "pairs": len(self.store),
                "data": self.store.fingerprint,
            }
        )

    def _tensors(self) -> dict[str, Tensor]:
        tensors = {f"parameter.{name}": value.detach() for name, value in self.encoder.named_parameters()}
        tensors |= {f"optimiser.{name}": value for name, value in self._optimiser.state.items()}
        if self._average is not None:
            tensors |= {f"average.{name}": value for name, value in self._average.means.items()}
        return tensors

    def _save(self) -> None:
        assert self._checkpoints is not None
        check_parameters(self.encoder, self.state.updates)
        tensors = self._tensors()
        if self._evaluate is not None:
            tensors |= self._best.tensors()
        self._checkpoints.save(self.state.updates, tensors, {"training": vars(self.state)})

    def _resume(self) -> None:
        if self._checkpoints is None:
            return
        expected = self._tensors()
        if self._evaluate is not None:
            expected |= self._best.shaped_like()
        found = self._checkpoints.newest(expected)
        if found is None:
            return
        tensors, content = found
        try:
            self.state = TrainingState(**content["training"])
        except (KeyError, TypeError) as error:
            raise InputError(f"damaged checkpoint: {error!r}", self._checkpoints.directory) from error
        for name, value in self._tensors().items():
            value.copy_(tensors[name])
        self._optimiser.steps = self.state.updates
        if self._average is not None:
            self._average.count = self.state.averaged
        if self.state.best_score is not None:
            self._best.resume(tensors)
        logger.info("going on from %s updates, %s pairs", f"{self.state.updates:,}", f"{self.state.pairs:,}")


def separate(gradients: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The same gradients, each in memory of its own, to be changed in place.

    Autograd gives one tensor for several parameters where their gradients are equal: both biases of an LSTM.
    """
    taken: set[int] = set()
    result = []
    for gradient in gradients:
        memory = gradient.untyped_storage().data_ptr()
        result.append(gradient.clone() if memory in taken else gradient)
        taken.add(memory)
    return tuple(result)


def _make_optimiser(encoder: Encoder, parameters: TrainingParameters) -> Optimiser:
    named = {name: value.detach() for name, value in encoder.named_parameters()}
    if parameters.optimiser == "adagrad":
        return AdaGrad(named, parameters.learning_rate)
    return Adam(
        named, frozenset(encoder.tables()), parameters.learning_rate, table_updates=parameters.table_updates
    )


def _check_fit(encoder: Encoder, store: PairStore) -> None:
    tables = encoder.tables()
    for name, unit in encoder.table_units().items():
        if unit not in store.vocabularies:
            known = ", ".join(store.unit_names)
            raise InputError(f"the encoder reads {unit} units, the pairs have {known}", store.directory)
        rows, size = len(tables[name]), len(store.vocabularies[unit])
        if rows != size:
            raise InputError(
                f"the encoder's {name} has {rows} rows, the pairs' {unit} vocabulary {size}",
                store.directory,
            )
    check_finite(encoder)
