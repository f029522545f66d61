"""Marks the rows of a scored file that bounds reject, outside of the stage select."""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from paraforge.corpus.columns import COLUMNS
from paraforge.corpus.selection.fate import Counts, count_rows, fate_of, kept_mask
from paraforge.corpus.selection.filters import apply_filters
from paraforge.corpus.selection.filters.bounds import BoundsParameters
from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.corpus.selection.thresholds import settle, shares_asked_for, verdict

_REJECTED: Final = "rejected"


class Marking:
    """Bounds on scores, settled on the mismatched pairs of the file that they judge.

    Attributes:
        parameters: the selection with only these filters, with numbers for their minima.
        verdict: see :func:`paraforge.corpus.selection.thresholds.verdict`.
        counts: counts of the rows marked so far.
    """

    def __init__(
        self,
        bounds: Sequence[BoundsParameters],
        wrong_pairs: pa.Table,
        scores: Sequence[str],
        option: str | None = None,
    ) -> None:
        """bounds: the filters, in order. scores: scores to judge besides the filters'. option: the
        command-line option of the filters.

        Raises ConfigurationError: a minimum cannot be found because there are no mismatched pairs.
        """
        asked = SelectParameters(required=[], deciles=[], filters=list(bounds))
        self.parameters = settle(asked, wrong_pairs, option)
        self.verdict = verdict(self.parameters, shares_asked_for(asked), wrong_pairs, {}, scores)
        self.counts = Counts()
        self._filters = [one.built() for one in self.parameters.filters if isinstance(one, BoundsParameters)]

    def marked(self, rows: pa.Table) -> pa.Table:
        """Return the rows with the reason in `rejected` if a filter rejects them; earlier reasons stay."""
        if _REJECTED not in rows.column_names:
            rows = rows.append_column(COLUMNS[_REJECTED], pa.nulls(rows.num_rows, pa.string()))
        codes = apply_filters(self._filters, rows, kept_mask(rows), 0, 1)
        reasons = [reason for one in self._filters for reason in one.reasons]
        fate = fate_of(codes, reasons, rows[_REJECTED])
        rows = rows.set_column(rows.column_names.index(_REJECTED), COLUMNS[_REJECTED], fate)
        self.counts.add(count_rows(rows))
        return rows
