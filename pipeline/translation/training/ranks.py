"""Processes that train one model together: each computes some batches of an update, and gradients are summed.

On a CPU two processes of one thread train faster than one process of two: many small operations between
    matrix products do not benefit from threads, and threads that share a core wait for each other.
"""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any


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
