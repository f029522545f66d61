"""Wrong pairs of the corpus under the same rules: how many would pass, and where their scores are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.corpus.scorer import Scale
from paraforge.corpus.scoring.wrong_pairs import RIGHT
from paraforge.corpus.selection.filters import numbers
from paraforge.interface.browse.rules import KEPT, Rules


@dataclass(frozen=True)
class WrongPairs:
    """A sample of pairs that are known to be wrong.

    table: their texts and scores, see :func:`paraforge.corpus.scoring.wrong_pairs.write_wrong_pairs`.
    scores: names of the corpus' scores; ``values`` has those that are judged by wrong pairs.
    values: by place of the score; NaN where a pair lacks it.
    weights: pairs of the corpus that each stands for.
    """

    table: pa.Table
    scores: Sequence[str]
    values: dict[int, npt.NDArray[np.float64]]
    weights: npt.NDArray[np.float64]

    def passing(self, rules: Rules) -> npt.NDArray[np.bool_]:
        """Which of them no score that they have would reject."""
        passes = np.ones(len(self.weights), bool)
        for test in rules.tests:
            if test.score in self.values:
                values = self.values[test.score]
                missing = np.isnan(values)
                inside = (values >= test.low) & (values <= test.high)
                passes &= np.where(missing, test.missing >= KEPT, inside)
        return passes

    def share(self, rules: Rules) -> float:
        """Share of the wrong pairs that would pass, each by its weight."""
        return float(np.average(self.passing(rules), weights=self.weights))

    def histogram(self, score: str, scale: Scale) -> list[int]:
        """Wrong pairs a bin of the score's scale; empty where they do not have the score."""
        values = self.values.get(self.scores.index(score))
        if values is None:
            return []
        known = ~np.isnan(values)
        places = scale.bin_of(values[known])
        counts = np.bincount(places, weights=self.weights[known], minlength=scale.bins)
        return [round(count) for count in counts.tolist()]


def wrong_pairs_of(table: pa.Table | None, scores: Sequence[str]) -> WrongPairs | None:
    """The sample as it is counted; None where the corpus has none."""
    if table is None or not table.num_rows:
        return None
    values = {}
    for place, name in enumerate(scores):
        # Only what can tell right from wrong: the length of a wrong pair says nothing.
        if name in table.column_names and f"{RIGHT}{name}" in table.column_names:
            found, missing = numbers(table[name])
            values[place] = np.where(missing, np.nan, found).astype(np.float32).astype(np.float64)
    return WrongPairs(table, scores, values, table["weight"].to_numpy().astype(np.float64))
