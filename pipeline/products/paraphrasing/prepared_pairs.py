"""Tagged pairs that are ready to train on, and what became of all pairs of the corpus."""

import itertools
from dataclasses import asdict, dataclass, field
from typing import Any

from paraforge.base.errors import IncompleteError
from paraforge.base.shards.store import ShardDirectory
from paraforge.products.paraphrasing.controls import Controls, untagged


@dataclass
class PairCounts:
    """What became of the corpus' pairs; the others add up to ``pairs``.

    unusable: a side is blank, or both are the same. leaked: a side is a test sentence.
    held_out: for validation. set_aside: a side is a held-out sentence, in another pair.
    used: trained on, in both directions.
    """

    pairs: int = 0
    unusable: int = 0
    leaked: int = 0
    held_out: int = 0
    set_aside: int = 0
    used: int = 0

    def check(self) -> None:
        """Raise IncompleteError unless the counts add up."""
        parts = self.unusable + self.leaked + self.held_out + self.set_aside + self.used
        if parts != self.pairs:
            raise IncompleteError(f"{self.pairs} pairs in, {parts} accounted for: {asdict(self)}")


@dataclass(frozen=True)
class PreparedPairs:
    """Shards to train on, what can be asked of the model, counts, and what a parse generator is trained on:
    texts with templates, and parses; None where sources have no full parses."""

    shards: ShardDirectory
    controls: Controls
    report: dict[str, Any] = field(default_factory=dict)
    parses: ShardDirectory | None = None

    def held_out_sources(self, count: int) -> list[str]:
        """The first ``count`` held-out sources, without tags."""
        tables = self.shards.tables(["source_text", "held_out"])
        sources = (
            text for table in tables for text in table.filter(table["held_out"])["source_text"].to_pylist()
        )
        return [untagged(source) for source in itertools.islice(sources, count)]
