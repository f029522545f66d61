"""The training loop: resume, update, evaluate, choose, save checkpoints, end. A `Task` defines what is
trained."""

import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import torch
from torch import Tensor, nn

from paraforge.base.devices import torch_threads
from paraforge.base.errors import InputError, Interrupted, describing
from paraforge.base.interrupts import graceful_interrupts, stop_requested
from paraforge.base.progress import progress
from paraforge.base.shards.pool import prefetch
from paraforge.embeddings.learning.checkpoint import CHECKPOINT, newest_checkpoint, save_checkpoint
from paraforge.embeddings.learning.optimizers import Optimizer

logger = logging.getLogger(__name__)

Batch = TypeVar("Batch")
Module = TypeVar("Module", bound=nn.Module)
Evaluate = Callable[[Any], float]
"""Development score of a module, higher is better."""
AVERAGE_EVERY: Final = 100
"""Updates between parameters that are averaged, because those of consecutive updates hardly differ."""


def divergence_error(what: str, updates: int) -> InputError:
    """Return the error that ends a diverged training; `what` is the reason, e.g. `the loss is nan`."""
    return InputError(
        f"the training diverged: {what} after {updates:,} updates",
        remedy="Lower learning_rate." if updates else "Start from smaller vectors.",
    )


def _check_parameters(module: nn.Module, updates: int) -> None:
    """Raise InputError if a parameter has NaN, infinity, or numbers whose squares overflow."""
    for name, value in module.named_parameters():
        if not bool(torch.linalg.vector_norm(value.detach()).isfinite()):
            raise divergence_error(f"{name} is not finite", updates)


@dataclass
class Record:
    """The progress and history of a run; with the tensors, everything needed to resume.

    position: examples seen in this epoch; seen: in all epochs. loss_sum: of `loss_terms` terms since the last
    entry of the history. averaged: number of parameters in the mean. counts: the task's own counts.
    best_updates: number of updates at the best score. without_gain: evaluations since then.
    finished: whether the training is over.
    history: one entry per evaluation or epoch: epoch from 1, examples seen, updates, loss (mean since the
        previous entry, None if nothing was trained on), score or None.
    """

    epoch: int = 0
    position: int = 0
    updates: int = 0
    seen: int = 0
    loss_sum: float = 0.0
    loss_terms: int = 0
    averaged: int = 0
    best_score: float | None = None
    best_updates: int | None = None
    without_gain: int = 0
    finished: bool = False
    counts: dict[str, int] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)

    @property
    def loss(self) -> float | None:
        """The mean loss since the last entry of the history, or else the loss in the history's last entry
        that has one; None if there is none."""
        if self.loss_terms:
            return self.loss_sum / self.loss_terms
        return next((entry["loss"] for entry in reversed(self.history) if entry["loss"] is not None), None)


@dataclass(frozen=True)
class TrainingStep:
    """The result of training on a batch.

    examples: examples of the epoch, trained on or not. updates: parameter updates.
    loss: sum of `terms` terms. counts: other counts.
    """

    examples: int
    updates: int
    loss: float
    terms: int
    counts: Mapping[str, int] = field(default_factory=dict)


class Task(Generic[Batch, Module]):
    """A task for the loop.

    module: the module to train, on the device. counted: name of examples in a history, e.g. `pairs`.
    size: examples per epoch. total: examples of the whole run, unless patience ends it.
    evaluate_every: examples or updates (see `clock`) between evaluations; 0 for the end of each epoch.
    patience: evaluations without improvement that end the run; None for never.
    average_after: share of the run after which parameters are averaged (Polyak and Juditsky 1992), and the
        mean is kept; None for never.
    prefetch: number of batches made in advance.
    """

    module: Module
    counted: str
    size: int
    total: int
    evaluate_every = 0
    patience: int | None = None
    average_after: float | None = None
    prefetch = 1
    optimizer: Optimizer

    def running(self) -> AbstractContextManager[object]:
        """Return a context for the training, e.g. one thread inside torch's operations if more do not pay
        off."""
        return torch_threads(1)

    def batches(self, record: Record) -> Iterator[Batch]:
        """Yield the remaining batches in order. This runs in another thread, so it reads the record at the
        start."""
        raise NotImplementedError

    def step(self, batch: Batch, updates: int) -> TrainingStep:
        """Train on a batch after this many updates."""
        raise NotImplementedError

    def clock(self, record: Record) -> int:
        """Return the progress in the units of `evaluate_every`: updates."""
        return record.updates

    def finish(self, record: Record) -> None:
        """Report on the whole run, if there is something to report."""


class Trainer(Generic[Batch, Module]):
    """One training run. Its result depends only on the task and the evaluation, not on checkpoints or
    interruptions.

    record: progress and history.
    rate: examples per second of this process, without evaluations and checkpoints; set by `run`.
    """

    def __init__(
        self,
        task: Task[Batch, Module],
        *,
        evaluate: Callable[[Module], float] | None = None,
        checkpoints: Path | None = None,
        checkpoint_seconds: float = 300.0,
        description: str = "train",
    ) -> None:
        """Prepare a run.

        evaluate: returns the development score; the module gets the parameters with the highest one.
        checkpoints: directory of this run alone, to resume from and to save to.
        """
        self.task = task
        self.module = task.module
        self.record = Record()
        self.rate = 0.0
        self._evaluate = evaluate
        self._checkpoint_seconds = checkpoint_seconds
        self._description = description
        self._named = {name: value.detach() for name, value in task.module.named_parameters()}
        averaged = {} if task.average_after is None else self._named
        self._means = {name: torch.zeros_like(value) for name, value in averaged.items()}
        self._best: dict[str, Tensor] = {}  # copies on the CPU
        self._checkpoints = checkpoints

    def run(self) -> Record:
        """Train to the end, from the newest checkpoint, if any.

        Raises:
            Interrupted: SIGTERM or Ctrl-C; a checkpoint has been written.
            InputError: loss or parameters are not finite; no checkpoint is written then.
        """
        self._resume()
        task, record = self.task, self.record
        begin = saved = time.perf_counter()
        started_with = record.seen
        outside = 0.0
        with ExitStack() as stack:
            stack.enter_context(graceful_interrupts())
            stack.enter_context(task.running())
            # No module behaves differently in training mode, but cuDNN requires it for gradients.
            self.module.train()
            stack.callback(self.module.eval)
            shown = stack.enter_context(
                progress(total=task.total, unit=task.counted, description=self._description, done=record.seen)
            )
            # Packing consists of many small operations, which do not benefit from threads.
            one_thread = partial(torch.set_num_threads, 1)
            batches = prefetch(task.batches(record), task.prefetch, one_thread)
            for batch in stack.enter_context(batches):
                if record.finished:
                    break
                before = task.clock(record)
                step = self._step(batch)
                shown.update(step.examples)
                shown.status(self._status())
                pause = time.perf_counter()
                self._end_of_step(before)
                due = time.perf_counter() - saved > self._checkpoint_seconds
                if self._checkpoints is not None and (due or stop_requested()):
                    self._save()
                    saved = time.perf_counter()
                outside += time.perf_counter() - pause
                if stop_requested():
                    raise Interrupted()
        task.finish(record)
        record.finished = True
        task.optimizer.synchronize()
        _check_parameters(self.module, record.updates)
        if self._means and not record.averaged:
            logger.warning("too few updates for average_after: parameters are not averaged")
        self._set_parameters(self._best or self._mean())
        self.rate = (record.seen - started_with) / max(time.perf_counter() - begin - outside, 1e-9)
        if self._checkpoints is not None:
            self._save()
        return record

    def _step(self, batch: Batch) -> TrainingStep:
        record = self.record
        step = self.task.step(batch, record.updates)
        if not math.isfinite(step.loss):
            raise divergence_error(f"the loss is {step.loss}", record.updates + step.updates)
        before = record.updates // AVERAGE_EVERY
        record.seen += step.examples
        record.position += step.examples
        record.updates += step.updates
        record.loss_sum += step.loss
        record.loss_terms += step.terms
        for name, count in step.counts.items():
            record.counts[name] = record.counts.get(name, 0) + count
        if self._means and record.updates // AVERAGE_EVERY > before:
            assert self.task.average_after is not None
            if record.seen >= self.task.average_after * self.task.total:
                self.task.optimizer.synchronize()
                record.averaged += 1
                for name, mean in self._means.items():
                    mean.lerp_(self._named[name], 1.0 / record.averaged)
        return step

    def _end_of_step(self, before: int) -> None:
        """Evaluate if it is due since the clock `before` the step, and start the next epoch at the end of
        one."""
        task, record = self.task, self.record
        number = record.epoch + 1
        end_of_epoch = record.position >= task.size
        if end_of_epoch:
            record.epoch += 1
            record.position = 0
        every = task.evaluate_every
        crossed = every and task.clock(record) // every > before // every
        last = record.seen >= task.total
        if not (crossed or last or (end_of_epoch and not every)):
            return
        _check_parameters(self.module, record.updates)
        score = self._judge()
        loss = record.loss_sum / record.loss_terms if record.loss_terms else None
        record.loss_sum, record.loss_terms = 0.0, 0
        record.history.append(
            {
                "epoch": number,
                task.counted: record.seen,
                "updates": record.updates,
                "loss": loss,
                "score": score,
            }
        )
        # Runs without checkpoints are small, and there are many of them.
        logger.log(
            logging.DEBUG if self._checkpoints is None else logging.INFO,
            "epoch %d, %s %s: loss %s%s",
            number,
            f"{record.seen:,}",
            task.counted,
            "-" if loss is None else f"{loss:.4f}",
            "" if score is None else f", development score {score:.4f}",
        )

    def _judge(self) -> float | None:
        """Return the development score, and copy the parameters if it is the highest so far. NaN becomes
        None, an evaluation without improvement."""
        if self._evaluate is None:
            return None
        record, patience = self.record, self.task.patience
        self.task.optimizer.synchronize()
        self.module.eval()
        with torch.no_grad(), self._use_average():
            score = float(self._evaluate(self.module))
            if math.isfinite(score) and (record.best_score is None or score > record.best_score):
                record.best_score, record.best_updates, record.without_gain = score, record.updates, 0
                self._best = self._copies()
            else:
                record.without_gain += 1
                record.finished = patience is not None and record.without_gain >= patience
        self.module.train()
        if not math.isfinite(score):
            logger.warning("the development score is %s: this evaluation is ignored", score)
            return None
        return score

    def _mean(self) -> dict[str, Tensor]:
        """Return the mean of the parameters; empty before the first."""
        return self._means if self.record.averaged else {}

    def _set_parameters(self, values: Mapping[str, Tensor]) -> None:
        for name, value in values.items():
            self._named[name].copy_(value)

    @contextmanager
    def _use_average(self) -> Iterator[None]:
        """Use the mean as parameters inside the block, if there is one, and restore them afterward."""
        last = {name: self._named[name].clone() for name in self._mean()}
        self._set_parameters(self._mean())
        try:
            yield
        finally:
            self._set_parameters(last)

    def _status(self) -> str:
        loss, best = self.record.loss, self.record.best_score
        parts = [] if loss is None else [f"loss {loss:.4f}"]
        return ", ".join(parts if best is None else [*parts, f"best score {best:.4f}"])

    def _tensors(self) -> dict[str, Tensor]:
        tensors = {f"parameter.{name}": value for name, value in self._named.items()}
        tensors |= {f"optimizer.{name}": value for name, value in self.task.optimizer.state.items()}
        return tensors | {f"average.{name}": value for name, value in self._means.items()}

    def _best_tensors(self) -> dict[str, Tensor]:
        """Return the best parameters by their names in a checkpoint; before the first evaluation, the
        current ones."""
        best = {} if self._evaluate is None else self._best or self._copies()
        return {f"best.{name}": value for name, value in best.items()}

    def _copies(self) -> dict[str, Tensor]:
        return {name: value.cpu().clone() for name, value in self._named.items()}

    def _save(self) -> None:
        assert self._checkpoints is not None
        _check_parameters(self.module, self.record.updates)
        state = {"training": vars(self.record)}
        save_checkpoint(self._checkpoints, self._tensors() | self._best_tensors(), state)

    def _resume(self) -> None:
        if self._checkpoints is None:
            return
        expected = self._tensors()
        checkpoint = newest_checkpoint(self._checkpoints, expected | self._best_tensors())
        if checkpoint is None:
            return
        tensors, content = checkpoint
        with describing(self._checkpoints / CHECKPOINT, "damaged checkpoint"):
            self.record = Record(**content["training"])
        for name, value in expected.items():
            value.copy_(tensors[name])
        self.task.optimizer.steps = self.record.updates
        if self.record.best_score is not None:
            self._best = {name: tensors[f"best.{name}"] for name in self._named}
        logger.info(
            "resuming after %s updates, %s %s",
            f"{self.record.updates:,}",
            f"{self.record.seen:,}",
            self.task.counted,
        )
