"""Finds the lines of a source where the foreign side and the reference are misaligned.

A line that is missing from one file shifts all later lines. Their mean similarity to the source is then below
zero, because they translate each other less than random words do; aligned text has 0.1 to 0.5.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.corpus.scoring.pairs import by_source

logger = logging.getLogger(__name__)

LINES: Final = 500
"""Lines per block; a block is judged as a whole."""
FEWEST: Final = 100
"""The least number of lines with a similarity in a block."""
SHIFTED: Final = 0.0
"""A block with a lower mean similarity is misaligned."""
ALIGNED: Final = 0.1
"""A quarter of a source's blocks must reach this mean similarity, so that the words of the others are
known."""
_UNIT: Final = 10_000  # similarities have four digits, and integers add up to the same sum in any order


@dataclass(frozen=True)
class Stretch:
    """Misaligned lines of a source: the first and the last one (of whole blocks), and the mean similarity in
    them and in the best quarter of the source's blocks."""

    first: int
    last: int
    similarity: float
    usual: float


class Blocks:
    """Adds up similarities per block of lines, in 16 bytes of memory per block."""

    def __init__(self) -> None:
        self._sums: dict[str, npt.NDArray[np.float64]] = {}

    def add(self, rows: pa.Table) -> None:
        """Add rows with ``source``, ``line`` (from 1) and ``source_similarity``."""
        similarity = rows["source_similarity"].to_numpy()
        lines = rows["line"].to_numpy()
        for source, places in by_source(rows["source"]):
            known = places[~np.isnan(similarity[places])]
            if not len(known):
                continue
            block = ((lines[known] - 1) // LINES).astype(np.int64)
            units = np.rint(similarity[known].astype(np.float64) * _UNIT)
            first, end = int(block.min()), int(block.max()) + 1
            sums = self._sums.get(source, np.zeros((2, 0)))
            if end > sums.shape[1]:
                sums = self._sums[source] = np.pad(sums, ((0, 0), (0, end - sums.shape[1])))
            # Only the blocks of these rows, because a long source has many others.
            sums[:, first:end] += np.bincount(block - first, units), np.bincount(block - first)

    def out_of_step(self) -> dict[str, list[Stretch]]:
        """Return the misaligned stretches of each source that has some, in order."""
        stretches = {}
        for source, (units, counts) in sorted(self._sums.items()):
            judged = np.flatnonzero(counts >= FEWEST)
            means = units[judged] / counts[judged] / _UNIT
            usual = float(np.quantile(means, 0.75)) if len(means) else 0.0
            shifted = judged[means < SHIFTED]
            if usual < ALIGNED or not len(shifted):
                continue
            ends = np.flatnonzero(np.diff(shifted, append=np.iinfo(np.int64).max) > 1)
            stretches[source] = [
                Stretch(
                    int(run[0]) * LINES + 1,
                    int(run[-1] + 1) * LINES,
                    round(float(units[run].sum() / counts[run].sum() / _UNIT), 4),
                    round(usual, 4),
                )
                for run in np.split(shifted, ends[:-1] + 1)
            ]
        return stretches


def warn_of(stretches_of: dict[str, list[Stretch]]) -> None:
    """Warn of each source's stretches, and say what to do."""
    for source, stretches in stretches_of.items():
        listed = ", ".join(f"{stretch.first:,} to {stretch.last:,}" for stretch in stretches[:5])
        more = f" and {len(stretches) - 5:,} more" if len(stretches) > 5 else ""
        first = stretches[0]
        logger.warning(
            "%s is out of step in lines %s%s: there, reference and foreign side are not translations "
            "of each other (similarity %.2f, elsewhere %.2f). Compare the sides from line %s on; a "
            "line may be missing from one of them",
            f"source {source}" if source else "the file",
            listed,
            more,
            first.similarity,
            first.usual,
            f"{max(1, first.first - LINES):,}",
        )
