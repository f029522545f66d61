"""Filter ``flag``: a mark of the translation or of the pair, such as ``runaway``."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, field_validator

from paraforge.corpus.columns import COLUMNS, LABELS
from paraforge.corpus.selection.filters import AcceptedPairs, Filter, FilterParameters, NamedFilter, Verdicts

FLAGS = [name for name, column in COLUMNS.items() if pa.types.is_boolean(column.type)]


@dataclass(frozen=True)
class FlagFilter(NamedFilter):
    """Refuses a pair whose flag ``column`` equals ``refused``; a missing flag is False."""

    column: str
    refused: bool = True

    @property
    def columns(self) -> tuple[str, ...]:
        """The flag."""
        return (self.column,)

    def verdicts(self, rows: pa.Table, shard: int) -> Verdicts:
        """See :class:`~paraforge.corpus.selection.filters.Filter`."""
        flags = pc.fill_null(rows.column(self.column), False).to_numpy()
        return (flags == self.refused).astype(np.uint8)


class FlagParameters(FilterParameters):
    """A flag column such as ``digit_mismatch`` or ``runaway``."""

    kind: Literal["flag"]
    column: str
    refuse: bool = Field(True, description="the value that is rejected")

    @field_validator("column")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in FLAGS:
            raise ValueError(f"not a flag: flags are {', '.join(FLAGS)}")
        return name

    def default_name(self) -> str:
        """The flag's name."""
        return self.column

    def columns(self) -> tuple[str, ...]:
        """The flag."""
        return (self.column,)

    def refusal(self) -> str:
        """E.g. ``translation cut off``."""
        return LABELS[self.column] if self.refuse else f"not marked '{LABELS[self.column]}'"

    def signature(self, fingerprint: str | None = None) -> tuple[str, str]:
        """E.g. ``not:runaway``."""
        return "not" if self.refuse else "only", self.column

    def prepare(self, pairs: AcceptedPairs) -> Filter:
        """See :class:`~paraforge.corpus.selection.filters.FilterParameters`."""
        return FlagFilter(self.reason, self.column, self.refuse)
