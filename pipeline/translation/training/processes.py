"""Processes that train one model together: each computes some batches of an update, and gradients are summed.
Starts them with fast settings, follows their reports, and ends them.

On a CPU two processes of one thread train faster than one process of two: many small operations between
matrix products do not benefit from threads, and threads that share a core wait for each other.
"""

import json
import logging
import os
import select
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from paraforge.base.devices import cpu_has_amx
from paraforge.base.errors import IncompleteError, InputError, Interrupted
from paraforge.base.interrupts import stop_requested
from paraforge.base.progress import Progress, progress

logger = logging.getLogger(__name__)

LOG = "trainer.log"
_LOOK_SECONDS = 1.0
_KERNELS = 1024
"""How many matrix kernels oneDNN keeps on processors with AMX. Batches have many shapes, each needs its own
kernels, and generating those for AMX took half of the sample's training: 1.5 updates a second without,
4.2 with this cache, for about 0.5 GiB a process. On an AMD processor keeping them saved no time."""


def training_environment(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the environment variables of a training process.

    settings: the process' settings, with ``threads`` and ``device``.
    """
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": str(settings["threads"]),
        # Threads that spin while waiting take the processor from others on a shared core: measured, five
        # times slower. Without sharing, sleeping costs little.
        "OMP_WAIT_POLICY": "passive",
        "ONEDNN_PRIMITIVE_CACHE_CAPACITY": str(_KERNELS if cpu_has_amx() else 0),
        # Fewer, larger pages, because zeroing small ones takes a tenth of the time.
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    }
    if sys.platform == "linux":
        environment["GLOO_SOCKET_IFNAME"] = "lo"  # the processes are on one machine
    if settings["device"] == "cpu":
        # fairseq puts the gradients' norm on any visible GPU, wherever the gradients are.
        environment["CUDA_VISIBLE_DEVICES"] = ""
    return environment


@contextmanager
def training_processes(directory: Path, settings: Mapping[str, Any]) -> Iterator[list[subprocess.Popen[str]]]:
    """Start the training processes. If the block ends before them, they are asked to end and waited for."""
    environment = training_environment(settings)
    processes: list[subprocess.Popen[str]] = []
    (directory / LOG).unlink(missing_ok=True)  # its errors are an earlier run's
    with (directory / LOG).open("a", encoding="utf-8") as log:
        try:
            for rank in range(settings["ranks"]):
                processes.append(
                    subprocess.Popen(
                        [
                            *(sys.executable, "-m", "paraforge.translation.training.training_run"),
                            *(str(directory.resolve()), str(rank)),
                        ],
                        stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL,
                        stderr=log,
                        stdin=subprocess.DEVNULL,
                        env=environment,
                        cwd=Path(__file__).parents[3],
                        text=True,
                        encoding="utf-8",
                    )
                )
            yield processes
        finally:
            _end(processes)
            (directory / settings["rendezvous"]).unlink(missing_ok=True)


def _end(processes: Sequence[subprocess.Popen[str]]) -> None:
    """End the remaining processes, by force after a minute."""
    for process in processes:
        if process.poll() is None:
            process.terminate()
    for process in processes:
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def follow(
    processes: Sequence[subprocess.Popen[str]], maximum_updates: int, log: Path
) -> tuple[str, list[dict[str, float]]]:
    """Show the training's reports until it ends.

    processes: result of :func:`training_processes`. maximum_updates: for the display.
    log: the processes' log of errors.

    Returns the reason why it ended, and the validations.

    Raises:
        Interrupted: SIGTERM or Ctrl-C.
        InputError: a process rejected its input.
        IncompleteError: a process died.
    """
    messages = map(json.loads, _lines(processes))
    history: list[dict[str, float]] = []
    ended: dict[str, Any] = {}
    first: dict[str, Any] = next(messages, {"event": "died"})
    if first["event"] == "start":
        history.extend(first["history"])
        done = first["update"]
        with progress(total=maximum_updates, unit="updates", description="train", done=done) as bar:
            ended = _show(messages, bar, history, done)
    else:
        ended = first
    code = processes[0].wait()
    if ended.get("event") == "error":
        raise InputError(ended["message"])
    if stop_requested() or code == Interrupted.exit_code:
        raise Interrupted("interrupted: the last checkpoint is kept; run the same command again to continue")
    if code != 0 or ended.get("event") != "end":
        raise IncompleteError(
            f"the training process died ({code}): {ended.get('message') or _last_words(log)}; {log} has "
            "more; the same command resumes from the last checkpoint"
        )
    return str(ended["reason"]), history


def _last_words(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.is_file() else []
    errors = [line for line in lines[-200:] if "Error" in line and "Connection closed by peer" not in line]
    return (errors or lines or ["no message"])[-1].strip()[-300:]


def _lines(processes: Sequence[subprocess.Popen[str]]) -> Iterator[bytes]:
    """Yield the reports of the first process. All are asked to end when this process is."""
    assert processes[0].stdout is not None
    reports = processes[0].stdout.fileno()
    pending = b""
    is_stopping = False
    while True:
        if stop_requested() and not is_stopping:
            is_stopping = True
            for process in processes:
                if process.poll() is None:
                    process.terminate()
        if select.select([reports], [], [], _LOOK_SECONDS)[0]:
            received = os.read(reports, 1 << 16)
            if not received:
                return
            *lines, pending = (pending + received).split(b"\n")
            yield from lines


def _show(
    messages: Iterator[dict[str, Any]], bar: Progress, history: list[dict[str, float]], done: int
) -> dict[str, Any]:
    """Show reports and collect validations until the last one."""
    score = ""
    for message in messages:
        event = message.pop("event")
        if event in ("end", "error", "failed"):
            return {"event": event, **message}
        if event == "validation":
            history.append(message)
            score = f", BLEU {message['bleu']:.1f}"
            logger.info(
                "update %d, epoch %.2f: valid loss %.3f, BLEU %.2f, chrF %.2f",
                *(
                    message["update"],
                    message["epoch"],
                    message["valid_loss"],
                    message["bleu"],
                    message["chrf"],
                ),
            )
        bar.update(message["update"] - done)
        done = message["update"]
        if "loss" in message:
            bar.status(f"loss {message['loss']:.2f}{score}")
    return {}


@dataclass(frozen=True)
class Ranks:
    """One of ``count`` processes; only rank 0 validates, writes and reports."""

    rank: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """Whether this process validates, writes and reports."""
        return self.rank == 0

    def totals(self, *values: float) -> list[float]:
        """Return the sum of each value over all processes; all must call this."""
        if self.count == 1:
            return list(values)
        import torch
        from torch import distributed

        summed = torch.tensor(values, dtype=torch.float64)
        distributed.all_reduce(summed)
        return [float(value) for value in summed]

    def batch_seeds(self, seed: int, update: int, batches: int) -> list[int]:
        """Return the seeds of this process' batches of an update, which depend only on the batches.

        Batch k of an update goes to process k modulo ``count``, so dropout is the same for any number of
        processes.
        """
        first = (seed * 1_000_003 + update) * 1024
        return [first + self.rank + self.count * index for index in range(batches)]


def rank_count(batches: int, threads: int) -> int:
    """Return the number of processes for updates of this many batches: their largest divisor up to
    ``threads``."""
    return max(count for count in range(1, max(1, min(batches, threads)) + 1) if batches % count == 0)


def join(rank: int, count: int, rendezvous: Path, configuration: Any) -> Ranks:
    """Connect with the other processes through a file, and set up fairseq for it.

    rank: rank of this process, from 0. count: number of processes.
    rendezvous: a file that does not exist yet, the same for all.
    configuration: fairseq's configuration, which is modified.
    """
    chosen = configuration.distributed_training
    chosen.distributed_world_size = count  # fairseq's default is the number of GPUs
    if count > 1:
        from torch import distributed

        chosen.distributed_rank = rank
        # Sums gradients once per update, independent of devices.
        chosen.ddp_backend = "legacy_ddp"
        # Otherwise rank 0 would send a pickle to the others.
        configuration.checkpoint.load_checkpoint_on_all_dp_ranks = True
        # fairseq would put the path into a URL and into every checkpoint.
        store = distributed.FileStore(str(rendezvous), count)  # type: ignore[attr-defined]  # not declared
        # The others wait while the first validates, which can take longer than torch's half an hour.
        distributed.init_process_group(
            "gloo", store=store, rank=rank, world_size=count, timeout=timedelta(days=1)
        )
    return Ranks(rank, count)


def leave(ranks: Ranks) -> None:
    """Disconnect from the other processes."""
    if ranks.count > 1:
        from torch import distributed

        distributed.destroy_process_group()
