"""At most k pairs of one reference, where references that differ in case, punctuation or spaces are one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.selection.filters import Verdicts
from pipeline.selection.normalisation import normalise
from pipeline.shards.groups import GroupRanker
from pipeline.shards.keys import text_keys


def reference_keys(rows: pa.Table) -> npt.NDArray[np.uint64]:
    """128-bit keys (n x 2) of the normalised references of n rows.

    A reference without any letter or digit is compared as it stands.
    """
    if not rows.num_rows:
        return np.empty((0, 2), np.uint64)
    references = pc.fill_null(rows.column("reference"), "")
    normalised = normalise(references)
    return text_keys(pc.if_else(pc.equal(normalised, ""), references, normalised))


@dataclass(frozen=True)
class NearDuplicates:
    """Refuses a pair with ``per_reference`` accepted pairs of the same normalised reference before it.

    Attributes:
        name: the reason.
        per_reference: pairs kept of one reference.
        ranker: has ranked the references of the pairs that earlier filters accepted.
        starts: for each shard, how many such pairs earlier shards have.
    """

    name: str
    per_reference: int
    ranker: GroupRanker
    starts: list[int] = field(default_factory=list)

    @property
    def reasons(self) -> tuple[str, ...]:
        """The filter's name."""
        return (self.name,)

    @property
    def columns(self) -> tuple[str, ...]:
        """None that hold a value of use: the references were read while ranking."""
        return ("rejected",)

    def verdicts(self, rows: pa.Table, shard: int) -> Verdicts:
        """See :class:`~pipeline.selection.filters.Filter`."""
        start = self.starts[shard]
        earlier, _ = self.ranker.ranks(start, start + rows.num_rows)
        return (earlier >= self.per_reference).astype(np.uint8)


def rank_references(
    name: str, per_reference: int, keys: Iterable[npt.NDArray[np.uint64]], directory: Path
) -> NearDuplicates:
    """Prepare the filter, out of core.

    Args:
        name: reason of the pairs refused.
        per_reference: pairs kept of one reference, at least 1.
        keys: :func:`reference_keys` of each shard's pairs that are still accepted, in shard order.
        directory: new or empty, for the ranker's files.
    """
    ranker = GroupRanker(directory)
    starts = []
    for shard_keys in keys:
        starts.append(ranker.rows)
        ranker.add(shard_keys)
    ranker.finish()
    # The look-up tables are opened before threads ask for them.
    ranker.ranks(0, 0)
    return NearDuplicates(name, per_reference, ranker, starts)
