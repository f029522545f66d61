"""Filter ``sample``: a number of pairs drawn at random without replacement.

Every pair gets a pseudo-random 64-bit key from (seed, source, line, rank); the sample is the pairs with the
smallest keys. So neither shard sizes, nor their order, nor the number of workers can change it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field

from paraforge.base.shards.lineage import LINEAGE, sampling_keys
from paraforge.corpus.selection.filters import AcceptedPairs, Filter, FilterParameters, NamedFilter, Verdicts
from paraforge.corpus.selection.quantiles import OrderStatistic, Scan, order_statistics


@dataclass(frozen=True)
class Sample:
    """Which rows are drawn: those whose key is below a threshold, and some of those that equal it.

    population: number of rows drawn from. size: number of rows drawn.
    threshold: None where every row is drawn.
    ties: for each shard, rows of earlier shards whose key equals the threshold; empty where all such rows are
        drawn.
    """

    population: int
    size: int
    threshold: OrderStatistic | None
    ties: list[int] = field(default_factory=list)

    def draws(self, keys: npt.NDArray[np.uint64], shard: int) -> npt.NDArray[np.bool_]:
        """Whether each of the shard's rows, given in row order, is in the sample."""
        if self.threshold is None:
            return np.ones(len(keys), bool)
        threshold = np.uint64(self.threshold.key)
        drawn = keys < threshold
        tied = np.flatnonzero(keys == threshold)
        if not self.ties:  # the usual case: every row with the threshold's key is drawn
            drawn[tied] = True
            return drawn
        drawn[tied] = self.ties[shard] + np.arange(len(tied)) <= self.threshold.ties_below
        return drawn


def draw_sample(scan: Scan[Any], size: int, directory: Path | None = None) -> Sample:
    """Choose ``size`` rows without replacement; all of them where there are no more.

    scan: applies a function to the keys (see :func:`sampling_keys`) of each shard's candidate rows.
    size: how many, at least 1. directory: for a file of all keys.
    """
    if size < 1:
        raise ValueError("a sample has at least one pair")
    count, statistics = order_statistics(scan, lambda n: [size - 1] if n > size else [], directory)
    if not statistics:
        return Sample(count, count, None)
    if statistics[0].ties_below + 1 == statistics[0].ties:
        return Sample(count, size, statistics[0])
    threshold = np.uint64(statistics[0].key)
    ties = [0]
    for equal in scan(lambda keys: int(np.count_nonzero(keys == threshold))):
        ties.append(ties[-1] + equal)
    return Sample(count, size, statistics[0], ties[:-1])


@dataclass(frozen=True)
class DrawnSample(NamedFilter):
    """The filter that rejects every pair that was not drawn.

    name: the reason. seed: of the draw. columns: the lineage that keys are made from.
    sample: which keys are drawn.
    """

    seed: int
    columns: tuple[str, ...]
    sample: Sample

    def verdicts(self, rows: pa.Table, shard: int) -> Verdicts:
        """See :class:`~paraforge.corpus.selection.filters.Filter`."""
        return (~self.sample.draws(sampling_keys(rows, self.seed), shard)).astype(np.uint8)


class SampleParameters(FilterParameters):
    """A number of the pairs that earlier filters accept, drawn at random without replacement."""

    kind: Literal["sample"]
    size: int = Field(ge=1)
    seed: int = Field(1, description="another seed draws an independent sample")

    needs_all_pairs: ClassVar[bool] = True

    def columns(self) -> tuple[str, ...]:
        """What every pair is known by."""
        return ("source", "line")

    def refusal(self) -> str:
        """E.g. ``not among the 5,000 drawn at random``."""
        return f"not among the {self.size:,} drawn at random"

    def signature(self, fingerprint: str | None = None) -> tuple[str, str]:
        """E.g. ``sample:5000:seed1``."""
        return "sample", f"{self.size}:seed{self.seed}"

    def prepare(self, pairs: AcceptedPairs) -> Filter:
        """Draw from the pairs."""
        columns = tuple(name for name in LINEAGE if name in pairs.column_names)

        def scan(function: Callable[[Any], Any]) -> Iterable[Any]:
            return pairs.each(lambda rows: function(sampling_keys(rows, self.seed)), columns)

        return DrawnSample(self.reason, self.seed, columns, draw_sample(scan, self.size, pairs.directory))
