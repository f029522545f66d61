"""Filter ``near_duplicates``: keeps at most k pairs per reference, ignoring case, punctuation and spaces."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, starmap
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from paraforge.base.shards.groups import GroupRanks, rank_groups
from paraforge.base.shards.lineage import text_keys
from paraforge.base.text.normalisation import folded, normalise
from paraforge.corpus.selection.filters import Filter, FilterParameters

if TYPE_CHECKING:
    from paraforge.corpus.selection.select import Selection


def near_duplicate_keys(texts: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.uint64]:
    """Return 128-bit keys (n x 2) of n texts (without nulls) that are equal if only case, punctuation, spaces
    and invisible characters differ. For a text without letters and digits, punctuation counts."""
    if not len(texts):
        return np.empty((0, 2), np.uint64)
    normalised = normalise(texts)
    return text_keys(pc.if_else(pc.equal(normalised, ""), folded(texts), normalised))


def sentence_keys(columns: Sequence[pa.ChunkedArray]) -> npt.NDArray[np.uint64]:
    """Return :func:`near_duplicate_keys` of each row's texts, (rows, columns, 2); 0, 0 for no text."""
    keys = np.zeros((len(columns[0]), len(columns), 2), np.uint64)
    for place, column in enumerate(columns):
        texts = pc.fill_null(column, "")
        keys[:, place] = near_duplicate_keys(texts)
        keys[blank(texts), place] = 0
    return keys


def blank(texts: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Return which texts are empty or white space."""
    found: npt.NDArray[np.bool_] = pc.equal(pc.utf8_length(pc.utf8_trim_whitespace(texts)), 0).to_numpy()
    return found


def reference_keys(rows: pa.Table) -> npt.NDArray[np.uint64]:
    """Return :func:`near_duplicate_keys` of the references of n rows; null counts as empty."""
    return near_duplicate_keys(pc.fill_null(rows.column("reference"), ""))


class NearDuplicatesParameters(FilterParameters):
    """At most N pairs whose references are the same except for case, punctuation and spaces."""

    kind: Literal["near_duplicates"]
    per_reference: int = Field(
        1,
        ge=1,
        description="how many pairs with the same normalized reference to keep; the first ones are kept",
    )

    needs_all_pairs: ClassVar[bool] = True
    needs: ClassVar[tuple[str, ...]] = ("reference",)
    usual_name: ClassVar[str] = "near_duplicate"

    def refusal(self) -> str:
        """Return e.g. ``same reference as an earlier pair``."""
        number = self.per_reference
        return "same reference as " + ("an earlier pair" if number == 1 else f"{number:,} earlier pairs")

    def signature(self, fingerprint: str | None = None) -> tuple[str, str]:
        """Return e.g. ``ndup:1``."""
        return "ndup", str(self.per_reference)

    def prepare(self, pairs: Selection) -> Filter:
        """Rank the references of the pairs; memory does not grow with them."""
        rows_of = list(pairwise(pairs.starts))
        keys = zip(pairs.each(reference_keys, ["reference"]), starmap(np.arange, rows_of), strict=True)
        rank_groups(keys, pairs.directory / self.reason)
        ranks = GroupRanks(pairs.directory / self.reason)

        def judge(rows: pa.Table, shard: int) -> npt.NDArray[np.bool_]:
            return ranks.of(*rows_of[shard])[0] >= self.per_reference

        # No columns are needed, because the references were read while ranking.
        return Filter(self.reason, ("rejected",), judge)
