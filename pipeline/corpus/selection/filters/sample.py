"""Filter ``sample``: keeps a number of pairs drawn at random without replacement.

Every pair gets a pseudo-random 64-bit key from (seed, source, line, rank), and the sample is the pairs with
the smallest keys. So it does not depend on shard sizes, their order or the number of workers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from paraforge.base.shards.lineage import LINEAGE, sampling_keys
from paraforge.corpus.selection.filters import Filter, FilterParameters
from paraforge.corpus.selection.ordering import rank

if TYPE_CHECKING:
    from paraforge.corpus.selection.select import Selection


class SampleParameters(FilterParameters):
    """Keeps a random sample of the pairs that earlier filters accept, drawn without replacement."""

    kind: Literal["sample"]
    size: int = Field(ge=1)
    seed: int = Field(1, description="another seed draws an independent sample")

    needs_all_pairs: ClassVar[bool] = True
    needs: ClassVar[tuple[str, ...]] = ("source", "line")

    def refusal(self) -> str:
        """Return e.g. ``not among the 5,000 drawn at random``."""
        return f"not among the {self.size:,} drawn at random"

    def signature(self, fingerprint: str | None = None) -> tuple[str, str]:
        """Return e.g. ``sample:5000:seed1``."""
        return "sample", f"{self.size}:seed{self.seed}"

    def prepare(self, pairs: Selection) -> Filter:
        """Draw from the pairs, or keep all if there are no more."""
        columns = tuple(name for name in LINEAGE if name in pairs.column_names)
        keys = pairs.each(lambda rows: sampling_keys(rows, self.seed), columns)
        # Rows with equal keys are drawn in row order.
        drawn = rank(keys, lambda count: [self.size], pairs.directory / self.reason)
        return Filter(
            self.reason, columns, lambda rows, shard: drawn.parts(sampling_keys(rows, self.seed), shard) > 1
        )
