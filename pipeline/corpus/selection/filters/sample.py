"""Filter ``sample``: keeps a number of pairs drawn at random without replacement.

Every pair gets a pseudo-random 64-bit key from (seed, source, line, rank), and the sample is the pairs with
the smallest keys. So it does not depend on shard sizes, their order or the number of workers.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from paraforge.base.shards.lineage import LINEAGE, sampling_keys
from paraforge.corpus.selection.filters import AcceptedPairs, Filter, FilterParameters, Verdicts
from paraforge.corpus.selection.ordering import Ranked, rank


@dataclass(frozen=True)
class DrawnSample(Filter):
    """Rejects every pair that was not drawn. seed: seed of the draw. ranked: the corpus cut where the sample
    ends."""

    seed: int = 1
    ranked: Ranked = field(default_factory=lambda: Ranked([0], []))

    def verdicts(self, rows: pa.Table, shard: int) -> Verdicts:
        """See :class:`~paraforge.corpus.selection.filters.Filter`."""
        return (self.ranked.parts(sampling_keys(rows, self.seed), shard) > 1).astype(np.uint8)


class SampleParameters(FilterParameters):
    """A number of the pairs that earlier filters accept, drawn at random without replacement."""

    kind: Literal["sample"]
    size: int = Field(ge=1)
    seed: int = Field(1, description="another seed draws an independent sample")

    needs_all_pairs: ClassVar[bool] = True

    def columns(self) -> tuple[str, ...]:
        """Return the pair's lineage."""
        return ("source", "line")

    def refusal(self) -> str:
        """E.g. ``not among the 5,000 drawn at random``."""
        return f"not among the {self.size:,} drawn at random"

    def signature(self, fingerprint: str | None = None) -> tuple[str, str]:
        """E.g. ``sample:5000:seed1``."""
        return "sample", f"{self.size}:seed{self.seed}"

    def prepare(self, pairs: AcceptedPairs) -> Filter:
        """Draw from the pairs, or keep all if there are no more."""
        columns = tuple(name for name in LINEAGE if name in pairs.column_names)
        keys = pairs.each(lambda rows: sampling_keys(rows, self.seed), columns)
        # Rows with equal keys are drawn in row order.
        ranked = rank(
            keys, lambda count: [self.size], pairs.directory / self.reason, "no sample can be drawn"
        )
        return DrawnSample(self.reason, columns, None, self.seed, ranked)
