"""Processes that train one model together: each takes some batches of an update, and gradients are summed.

On a CPU two processes of one thread train faster than one process of two: the many small operations between
matrix products gain nothing from threads, and threads that share a core with others wait for each other.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Ranks:
    """One of ``count`` processes, the ``rank``-th; rank 0 alone validates, writes and reports."""

    rank: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the process that validates, writes and reports."""
        return self.rank == 0

    def totals(self, *values: float) -> list[float]:
        """Return the sum of each value over all processes, which all have to call this."""
        if self.count == 1:
            return list(values)
        import torch
        from torch import distributed

        summed = torch.tensor(values, dtype=torch.float64)
        distributed.all_reduce(summed)
        return [float(value) for value in summed]

    def batch_seeds(self, seed: int, update: int, batches: int) -> list[int]:
        """Seeds of this process' batches of an update: those of the batches, whoever takes them.

        Batch k of an update goes to process k modulo ``count``: dropout is the same for any number of them.
        """
        first = (seed * 1_000_003 + update) * 1024
        return [first + self.rank + self.count * index for index in range(batches)]


def rank_count(batches: int, threads: int) -> int:
    """Return processes for updates of this many batches: the largest divisor of their number up to
    ``threads``."""
    return max(count for count in range(1, max(1, min(batches, threads)) + 1) if batches % count == 0)


def join(rank: int, count: int, rendezvous: Path, configuration: Any) -> Ranks:
    """Meet the other processes at a file, and set fairseq up for it.

    rank: of this process, from 0. count: of all processes.
    rendezvous: a file that does not exist yet, the same for all.
    configuration: fairseq's configuration, which is changed.
    """
    if count > 1:
        from fairseq.distributed import utils

        distributed = configuration.distributed_training
        distributed.distributed_world_size = count
        distributed.distributed_rank = rank
        distributed.distributed_backend = "gloo"
        distributed.distributed_init_method = f"file://{rendezvous}"
        distributed.distributed_no_spawn = True
        # Sums gradients once an update, and knows nothing of devices.
        distributed.ddp_backend = "legacy_ddp"
        # Otherwise rank 0 would send a pickle to the others.
        configuration.checkpoint.load_checkpoint_on_all_dp_ranks = True
        utils.distributed_init(configuration)
    return Ranks(rank, count)


def leave(ranks: Ranks) -> None:
    """Part from the other processes."""
    if ranks.count > 1:
        from torch import distributed

        distributed.destroy_process_group()
