"""Trains a network to predict the neighbours of sentences: order, updates, checkpoints, model choice."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from paraforge.embeddings.initial import check_finite
from paraforge.embeddings.trainer import separate
from paraforge.errors import InputError
from paraforge.files import hash_json
from paraforge.interrupts import check_interrupt, stop_requested
from paraforge.learning.ahead import ahead
from paraforge.learning.checkpoint import Checkpoints
from paraforge.learning.divergence import check_parameters, diverged
from paraforge.learning.model_choice import BestParameters
from paraforge.learning.optimisers import Adam, clip_
from paraforge.learning.threads import torch_threads
from paraforge.progress import progress
from paraforge.unrolling.network import SentencePredictor
from paraforge.unrolling.parameters import PredictionParameters
from paraforge.unrolling.permutation import Permutation
from paraforge.unrolling.state import PredictionState
from paraforge.unrolling.triples import TripleBatch, TripleStore

logger = logging.getLogger(__name__)

Evaluate = Callable[[SentencePredictor], float]
"""Development score of a network, higher is better."""
_PACKED_AHEAD = 4


class PredictionTrainer:
    """One training run. Its result depends on network, triples and parameters alone, not on checkpoints or
    interruptions; to the bit for one machine and number of threads."""

    def __init__(
        self,
        network: SentencePredictor,
        store: TripleStore,
        parameters: PredictionParameters,
        *,
        evaluate: Evaluate | None = None,
        checkpoints: Path | None = None,
        checkpoint_seconds: float = 300.0,
        threads: int = 1,
        device: str = "cpu",
        description: str = "train",
        observe: Callable[[PredictionState], None] | None = None,
    ) -> None:
        """Prepare a run.

        evaluate: called every `parameters.evaluate_every` updates, or at the end of each epoch, and at the
            end; the network ends as it was where the score was best.
        checkpoints: directory to resume from and to save to.
        observe: called after every update, e.g. to measure; what it raises ends the run.

        Raises:
            InputError: the network has another number of words than the triples, or NaN in its parameters.
        """
        if len(network.words) != len(store.vocabulary):
            raise InputError(
                f"the network has {len(network.words)} words, the triples {len(store.vocabulary)}",
                store.directory,
            )
        check_finite(network)
        self.network = network.to(device)
        self.store = store
        self.parameters = parameters
        self.state = PredictionState()
        self._evaluate = evaluate
        self._checkpoint_seconds = checkpoint_seconds
        self._threads = threads
        self._device = torch.device(device)
        self._description = description
        self._observe = observe
        self._named = dict(network.named_parameters())
        self._optimiser = Adam(
            {name: value.detach() for name, value in self._named.items()},
            frozenset(),
            parameters.learning_rate,
        )
        self._products = torch.bfloat16 if parameters.precision == "bfloat16" else None
        self._best = BestParameters(network, parameters.patience)
        self._checkpoints = None if checkpoints is None else Checkpoints(checkpoints, self._key())

    def run(self) -> float:
        """Train to the end, from the newest checkpoint where there is one.

        Returns sentences a second of this process, without evaluations and checkpoints.

        Raises:
            Interrupted: SIGTERM or Ctrl-C; a checkpoint has been written.
            InputError: loss or parameters are not finite: no checkpoint is written then.
        """
        self._resume()
        begin = saved = time.perf_counter()
        started_with = self.state.triples
        outside = 0.0
        with ExitStack() as stack:
            stack.enter_context(torch_threads(self._threads))
            self.network.train()
            stack.callback(self.network.eval)
            shown = stack.enter_context(
                progress(
                    total=self._total(),
                    unit="sentences",
                    description=self._description,
                    done=self.state.triples,
                )
            )
            for batch in stack.enter_context(ahead(self._batches(), _PACKED_AHEAD)):
                if self.state.finished:
                    break
                self._update(batch)
                shown.update(len(batch))
                shown.status(self._status())
                pause = time.perf_counter()
                self._end_of_update()
                due = time.perf_counter() - saved > self._checkpoint_seconds
                if self._checkpoints is not None and (due or stop_requested()):
                    self._save()
                    saved = time.perf_counter()
                outside += time.perf_counter() - pause
                if self._observe is not None:
                    self._observe(self.state)
                check_interrupt()
        self.state.finished = True
        check_parameters(self.network, self.state.updates)
        self._best.settle()
        if self._checkpoints is not None:
            self._save()
        seconds = time.perf_counter() - begin - outside
        return (self.state.triples - started_with) / max(seconds, 1e-9)

    def _updates_of_epoch(self) -> int:
        return -(-len(self.store) // self.parameters.batch_size)

    def _updates(self) -> int:
        """Of the whole run, where no patience ends it."""
        whole = self.parameters.epochs * self._updates_of_epoch()
        return whole if self.parameters.updates is None else min(whole, self.parameters.updates)

    def _total(self) -> int:
        """Triples of the whole run."""
        epochs, rest = divmod(self._updates(), self._updates_of_epoch())
        return epochs * len(self.store) + rest * self.parameters.batch_size

    def _batches(self) -> Iterator[TripleBatch]:
        """What is left to do, from where the state is."""
        epoch, position, left = self.state.epoch, self.state.position, self._updates() - self.state.updates
        size, triples = self.parameters.batch_size, len(self.store)
        while left > 0:
            order = Permutation(triples, self.parameters.seed, epoch)
            for first in range(position, triples, size):
                if left > 0:
                    yield self.store.batch(order(np.arange(first, min(first + size, triples))))
                left -= 1
            epoch, position = epoch + 1, 0

    def _update(self, batch: TripleBatch) -> None:
        """One update by the mean over the words that a batch predicts."""
        words = len(batch.previous.ids) + len(batch.following.ids)
        total = self.network(batch.to(self._device), self._products)
        value = float(total.detach())
        if not math.isfinite(value):
            raise diverged(f"the loss is {value}", self.state.updates)
        gradients = separate(torch.autograd.grad(total / words, list(self._named.values())))
        if self.parameters.clip is not None:
            clip_(gradients, self.parameters.clip)
        self._optimiser.begin_step()
        with torch.no_grad():
            for name, gradient in zip(self._named, gradients, strict=True):
                self._optimiser.update(name, gradient)
        state = self.state
        state.updates += 1
        state.triples += len(batch)
        state.position += len(batch)
        state.words += words
        state.loss_sum += value
        state.loss_words += words

    def _end_of_update(self) -> None:
        """Evaluate where it is due, and begin the next epoch at the end of one."""
        state, every = self.state, self.parameters.evaluate_every
        end_of_epoch = state.position >= len(self.store)
        if end_of_epoch:
            state.epoch += 1
            state.position = 0
        last = state.updates >= self._updates()
        if not (last or (state.updates % every == 0 if every else end_of_epoch)):
            return
        check_parameters(self.network, state.updates)
        score = None
        if self._evaluate is not None:
            self.network.eval()
            with torch.no_grad():
                score = self._best.judge(float(self._evaluate(self.network)), state.updates, state)
            self.network.train()
        state.history.append(
            {
                "epoch": state.epoch,
                "updates": state.updates,
                "triples": state.triples,
                "loss": state.loss,
                "score": score,
            }
        )
        logger.info(
            "%s updates, %s triples: loss %.4f nats a word%s",
            f"{state.updates:,}",
            f"{state.triples:,}",
            state.loss,
            "" if score is None else f", development score {score:.4f}",
        )
        state.loss_sum, state.loss_words = 0.0, 0

    def _status(self) -> str:
        state = self.state
        # After an entry of the history the sums begin anew: its loss is shown until there is another one.
        text = f"loss {state.loss if state.loss_words else state.history[-1]['loss']:.4f}"
        best = self.state.best_score
        return text if best is None else f"{text}, best score {best:.4f}"

    def _key(self) -> str:
        return hash_json(
            {
                "parameters": self.parameters.model_dump(mode="json"),
                "network": self.network.architecture.model_dump(mode="json"),
                "triples": self.store.fingerprint,
            }
        )

    def _tensors(self) -> dict[str, Tensor]:
        tensors = {f"parameter.{name}": value.detach() for name, value in self._named.items()}
        return tensors | {f"optimiser.{name}": value for name, value in self._optimiser.state.items()}

    def _save(self) -> None:
        assert self._checkpoints is not None
        check_parameters(self.network, self.state.updates)
        tensors = self._tensors()
        if self._evaluate is not None:
            tensors |= self._best.tensors()
        self._checkpoints.save(self.state.updates, tensors, {"training": vars(self.state)})

    def _resume(self) -> None:
        if self._checkpoints is None:
            return
        expected = self._tensors()
        judged = self._best.shaped_like() if self._evaluate is not None else {}
        found = self._checkpoints.newest(expected | judged)
        if found is None:
            return
        tensors, content = found
        try:
            self.state = PredictionState(**content["training"])
        except (KeyError, TypeError) as error:
            raise InputError(f"damaged checkpoint: {error!r}", self._checkpoints.directory) from error
        with torch.no_grad():
            for name, value in expected.items():
                value.copy_(tensors[name])
        self._optimiser.steps = self.state.updates
        if self.state.best_score is not None:
            self._best.resume(tensors)
        logger.info(
            "going on from %s updates, %s triples", f"{self.state.updates:,}", f"{self.state.triples:,}"
        )
