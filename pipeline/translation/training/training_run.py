"""Trains a translation model with fairseq's trainer on prepared bitext, and measures BLEU with the production
engine.

:mod:`paraforge.translation.training.processes` runs each training process as ``python -m
paraforge.translation.training.training_run DIRECTORY RANK``, and reads the JSON lines that it writes to
standard output. ``DIRECTORY/settings.json`` has its settings.
"""

import ctypes
import json
import logging
import os
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from filelock import FileLock

from paraforge.base.errors import InputError, Interrupted, ParaforgeError, describe_os_error
from paraforge.base.files import read_json
from paraforge.base.interrupts import graceful_interrupts, stop_requested
from paraforge.translation.decoding.device import is_out_of_memory
from paraforge.translation.models.checkpoint import is_copy, weights_only_state, write_checkpoint
from paraforge.translation.models.fairseq_compat import import_fairseq
from paraforge.translation.training.parameters import NmtParameters
from paraforge.translation.training.processes import join, leave

logger = logging.getLogger(__name__)

CHECKPOINT_SECONDS = 180.0  # the most work that is lost when the process dies
REPORT_SECONDS = 1.0
UPDATES_BETWEEN_TRIMS = 25
LAST = "checkpoint_last.pt"


class TrainingRun:
    """One model in training: fairseq's objects, the history of validations, and its paths."""

    def __init__(self, directory: Path, settings: dict[str, Any], rank: int = 0) -> None:
        """Build model and optimizer, or restore them from the last checkpoint.

        directory: directory of this training.
        settings: result of :func:`paraforge.translation.training.training.trainer_settings`.
        rank: number of this process among ``settings["ranks"]``.
        """
        import numpy as np
        import torch

        import_fairseq()
        from fairseq import options, tasks, utils
        from fairseq.dataclass.utils import convert_namespace_to_omegaconf
        from fairseq.logging import metrics
        from fairseq.trainer import Trainer

        from paraforge.translation.training import criterion

        self.directory = directory
        self.settings = settings
        self.parameters = NmtParameters.model_validate(settings["parameters"])
        torch.set_num_threads(settings["threads"])
        if settings["device"] != "cpu":
            torch.cuda.set_device(settings["device"])  # fairseq uses the current one
        # Adam's second moments of rare types become subnormal numbers, which are slow.
        torch.set_flush_denormal(True)
        # For sequences as short as sentences, fused attention on the CPU is slower than plain products.
        torch.backends.cuda.enable_flash_sdp(settings["device"] != "cpu")
        criterion.BlockwiseLabelSmoothedCrossEntropy.precision = getattr(torch, settings["precision"])
        arguments = [
            *settings["arguments"],
            *("--criterion", criterion.NAME),
            *("--save-dir", str(directory / "checkpoints"), "--no-progress-bar"),
        ]
        parsed = options.parse_args_and_arch(options.get_training_parser(), arguments)
        self.configuration = convert_namespace_to_omegaconf(parsed)
        self.ranks = join(rank, settings["ranks"], directory / settings["rendezvous"], self.configuration)
        np.random.seed(self.configuration.common.seed)
        utils.set_torch_seed(self.configuration.common.seed)
        metrics.reset()
        self.task = tasks.setup_task(self.configuration.task)
        model = self.task.build_model(self.configuration.model)
        loss = self.task.build_criterion(self.configuration.criterion)
        for name, parameter in model.named_parameters():
            if is_copy(name):
                parameter.requires_grad_(False)
        self.trainer = Trainer(self.configuration, self.task, model, loss)
        last = directory / "checkpoints" / LAST
        try:
            state = self.trainer.load_checkpoint(str(last))
        except InputError as error:
            remedy = "Remove the file, and the same command trains from the beginning."
            raise InputError(error.message, last, remedy=remedy) from error
        self.epochs = self._epochs(state["train_iterator"] if state else None)
        own = (state or {}).get("paraforge", {})
        self.history: list[dict[str, float]] = own.get("history", [])
        self.target_tokens: int = own.get("target_tokens", 0)
        self.finished: str | None = own.get("finished")
        self.task.load_dataset("valid", combine=False, epoch=1)
        self.parent = os.getppid()
        self._saved = self._reported = time.monotonic()
        # fairseq's own training time would be wrong if the clock is set.
        self._begun = time.monotonic() - (state or {}).get("previous_training_time", 0.0)
        self._recent: list[float] = own.get("recent_losses", [])

    def _epochs(self, state: dict[str, Any] | None) -> Any:
        """Return fairseq's iterator over the batches of an epoch, at the checkpoint's position."""
        epoch = state["epoch"] if state else 1
        epochs = self.trainer.get_train_iterator(
            epoch, load_dataset=True, disable_iterator_cache=self.task.has_sharded_data("train")
        )
        if state:
            # A checkpoint counts the batches of all processes, so that their number can change.
            done = state["iterations_in_epoch"] // self.ranks.count
            epochs.load_state_dict({**state, "iterations_in_epoch": done})
        self.trainer.lr_step(epoch)
        return epochs

    @property
    def updates(self) -> int:
        """The number of updates so far."""
        return int(self.trainer.get_num_updates())

    def epoch(self) -> float:
        """Return the passes over the pairs so far; a fairseq epoch is a pass over one part."""
        position = self.epochs.iterations_in_epoch / max(1, len(self.epochs))
        return float(self.epochs.epoch - 1 + position) / self.settings["parts"]

    def seconds(self) -> float:
        """Return the training time, including earlier runs."""
        return time.monotonic() - self._begun

    def train(self) -> str:
        """Train until a limit is reached, and return its name. Raises Interrupted, after writing a
        checkpoint, on SIGTERM, on Ctrl-C, or if the parent died."""
        from fairseq.data import iterators

        sharded = self.task.has_sharded_data("train")
        while self.finished is None:
            batches = iterators.GroupedIterator(
                self.epochs.next_epoch_itr(fix_batches_to_gpus=False, shuffle=True),
                self.parameters.training.accumulate // self.ranks.count,
            )
            self.trainer.begin_epoch(self.epochs.epoch)
            for samples in batches:
                self._update(samples)
                ended = not batches.has_next()
                if ended:
                    # fairseq also sets the learning rate at the end of an epoch; ours only changes by update.
                    self.trainer.lr_step(self.epochs.epoch)
                self.finished = self._after_update(ended)
                if self.finished is not None:
                    break
            else:
                self.epochs = self.trainer.get_train_iterator(
                    self.epochs.next_epoch_idx, load_dataset=sharded, disable_iterator_cache=sharded
                )
        return self.finished

    def _update(self, samples: list[dict[str, Any]]) -> None:
        seed = self.configuration.common.seed
        self.trainer.criterion.batch_seeds = self.ranks.batch_seeds(seed, self.updates, len(samples))
        try:
            # Otherwise fairseq would skip each batch that does not fit, perhaps all of them forever.
            logged = self.trainer.train_step(samples, raise_oom=True)
        except RuntimeError as error:
            if not is_out_of_memory(error) or not self.ranks.first:  # others do not report
                raise
            raise InputError(
                "out of memory: a batch does not fit",
                remedy="Halve training.batch_tokens of its section, and double training.accumulate.",
            ) from error
        self._own_tokens = sum(int(sample["ntokens"]) for sample in samples if sample)
        self._recent.append(float(logged["loss"]))
        if self.updates % UPDATES_BETWEEN_TRIMS == 0:
            trim_memory()

    def _report(self) -> None:
        if not self.ranks.first:
            return
        self._reported = time.monotonic()
        recent = self._recent[-20:]
        report(
            event="update",
            update=self.updates,
            epoch=round(self.epoch(), 3),
            # There is none right after a validation; the display then keeps the last one.
            **({"loss": round(sum(recent) / len(recent), 4)} if recent else {}),
            target_tokens=self.target_tokens,
            seconds=round(self.seconds(), 1),
        )

    def _after_update(self, epoch_ended: bool) -> str | None:
        """Validate and save if it is time. Returns the reason to end, or None."""
        asked_to_stop = stop_requested() or os.getppid() != self.parent
        # All processes must learn at the same update what any of them knows.
        tokens, stop, late = self.ranks.totals(
            self._own_tokens, asked_to_stop, self.ranks.first and self._is_late()
        )
        self.target_tokens += int(tokens)
        every = self.parameters.validation.every_updates
        reason = self._limit(epoch_ended, late > 0)
        whole_pass = epoch_ended and self.epochs.epoch % self.settings["parts"] == 0
        if reason or (self.updates % every == 0 if every else whole_pass):
            impatient = self.validate()
            reason = reason or ("patience" if impatient else None)
            self.finished = reason
            self.save()
            if self.ranks.first:
                self._forget_snapshots()  # after saving: a run killed before resumes with the old history
        elif stop or time.monotonic() - self._saved > CHECKPOINT_SECONDS:
            self.save()
        if stop and reason is None:
            raise Interrupted(
                "interrupted: the last checkpoint is kept; run the same command again to continue"
            )
        if time.monotonic() - self._reported > REPORT_SECONDS:
            self._report()
        return reason

    def _limit(self, epoch_ended: bool, late: bool) -> str | None:
        """Return the limit that this update reached, if any."""
        epochs = self.parameters.training.maximum_epochs
        if self.updates >= self.parameters.training.maximum_updates:
            return "maximum_updates"
        if late:
            return "maximum_minutes"
        if epoch_ended and epochs and self.epoch() >= epochs:
            return "maximum_epochs"
        return None

    def _is_late(self) -> bool:
        limit = self.parameters.training.maximum_minutes
        return limit is not None and self.seconds() >= 60 * limit

    def _validations_since_best(self) -> int:
        scores = [row["bleu"] for row in self.history]
        return len(scores) - 1 - scores.index(max(scores))

    def validate(self) -> bool:
        """Measure loss, BLEU and chrF on the held-out rows, and save the current weights. Returns whether
        BLEU has not improved for as many validations as patience allows."""
        from fairseq.logging import metrics

        self._report()
        with metrics.aggregate(new_root=True) as aggregated:
            iterator = self.trainer.get_valid_iterator("valid").next_epoch_itr(shuffle=False)
            for sample in iterator:
                self.trainer.valid_step(sample)
        impatient = False
        if self.ranks.first:
            self._score(aggregated.get_smoothed_values())
            patience = self.parameters.validation.patience
            impatient = bool(patience) and self._validations_since_best() >= patience
        return self.ranks.totals(impatient)[0] > 0

    def _score(self, values: dict[str, Any]) -> None:
        """Translate the held-out rows with the current weights, and add a row to the history."""
        import torch

        from paraforge.translation.training.validation import evaluate

        snapshot = snapshot_of(self.directory, self.updates)
        self.save_weights(snapshot)
        scores = evaluate(
            snapshot,
            self.directory,
            self.parameters,
            beam=self.parameters.validation.beam,
            threads=self.settings["threads"] * self.ranks.count,
        )
        torch.set_num_threads(self.settings["threads"])  # an engine may have changed it
        row = {
            "update": self.updates,
            "epoch": round(self.epoch(), 4),
            "seconds": round(self.seconds(), 1),
            "target_tokens": self.target_tokens,
            "train_loss": round(sum(self._recent) / max(1, len(self._recent)), 4),
            "valid_loss": round(float(values["loss"]), 4),
            "valid_perplexity": round(2.0 ** float(values["nll_loss"]), 4),
            "bleu": round(scores.bleu, 4),
            "chrf": round(scores.chrf, 4),
        }
        self._recent = []
        self.history.append(row)
        report(event="validation", **row)

    def _forget_snapshots(self) -> None:
        needed = needed_snapshots(self.directory, self.history, self.parameters)
        for path in (self.directory / "snapshots").glob("update-*.pt"):
            if path not in needed:
                path.unlink(missing_ok=True)

    def save(self) -> None:
        """Write the last checkpoint atomically."""
        from fairseq.utils import move_to_cpu

        self._saved = time.monotonic()
        if not self.ranks.first:
            return
        path = self.directory / "checkpoints" / LAST
        iterator = self.epochs.state_dict()
        extra = {
            "train_iterator": {
                **iterator,
                "iterations_in_epoch": iterator["iterations_in_epoch"] * self.ranks.count,
            },
            "val_loss": None,
            "previous_training_time": self.seconds(),
            "paraforge": {
                "history": self.history,
                "target_tokens": self.target_tokens,
                "finished": self.finished,
                "recent_losses": self._recent,
            },
        }
        self.trainer.consolidate_optimizer()
        state = move_to_cpu(self.trainer.state_dict())
        state["extra_state"].update(extra)
        # After an error, fairseq would append the checkpoint to the broken one.
        write_checkpoint(state, path)

    def save_weights(self, path: Path) -> None:
        """Write only weights and configuration, as plain values and without this machine's paths."""
        self.trainer.consolidate_optimizer()
        write_checkpoint(weights_only_state(self.trainer.state_dict()), path)


def snapshot_of(directory: Path, update: float) -> Path:
    """Return a training's weights at a validation."""
    return directory / "snapshots" / f"update-{int(update):08d}.pt"


def needed_snapshots(
    directory: Path, history: Sequence[Mapping[str, float]], parameters: NmtParameters
) -> list[Path]:
    """Return the snapshots that the end of a training can need: the best one, and the last few for
    averaging."""
    best = max(history, key=lambda row: row["bleu"])
    return [
        snapshot_of(directory, row["update"]) for row in (best, *history[-parameters.validation.average :])
    ]


def trim_memory() -> None:
    """Release the C library's free memory, because batches of many shapes leave gaps that add up to
    gigabytes."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # only in glibc
    if trim is not None:
        trim(0)


def report(**values: Any) -> None:
    """Send the parent process a JSON object on one line."""
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


ORPHAN_SECONDS = 600.0  # longer than an update and a validation


def main(directory: Path, rank: int = 0) -> int:
    """Train according to ``directory/settings.json``, as one of its processes. Returns the exit code."""
    # Libraries' output must not mix with the reports.
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s"
    )
    # fairseq is older than its dependencies, which warn about that repeatedly.
    warnings.simplefilter("ignore")
    try:
        # Processes whose parent was killed get time to notice, so that no two write here.
        lock = FileLock(directory / "trainer.lock", timeout=ORPHAN_SECONDS) if rank == 0 else nullcontext()
        with lock, graceful_interrupts():  # a signal ends the wait for the lock at once
            run = TrainingRun(directory, read_json(directory / "settings.json"), rank)
            if rank == 0:
                report(event="start", update=run.updates, history=run.history)
            reason = run.train()
            leave(run.ranks)
            if rank == 0:
                report(event="end", reason=reason, update=run.updates)
    except Interrupted as error:
        return error.exit_code
    except ParaforgeError as error:
        if rank == 0:
            report(event="error", message=str(error), exit_code=error.exit_code)
        return error.exit_code
    except OSError as error:
        if rank == 0:  # not only to the log, which a full disk cannot hold
            report(event="failed", message=describe_os_error(error))
        raise
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
