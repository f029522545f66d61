"""Filter ``sample``: a number of pairs drawn at random without replacement."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from paraforge.base.shards.lineage import LINEAGE, sampling_keys
from paraforge.corpus.selection.filters import AcceptedPairs, Filter, FilterParameters, NamedFilter, Verdicts
from paraforge.corpus.selection.sampling import Sample, draw_sample


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

        return DrawnSample(self.reason, self.seed, columns, draw_sample(scan, self.size))
