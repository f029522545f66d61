"""Filter ``flag``: rejects pairs with a flag such as ``runaway``."""

from collections.abc import Mapping
from typing import ClassVar, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import field_validator

from paraforge.base.errors import did_you_mean
from paraforge.corpus.columns import COLUMNS, LABELS
from paraforge.corpus.selection.filters import AcceptedPairs, Filter, FilterParameters, ValueFilter

FLAGS = [name for name, column in COLUMNS.items() if pa.types.is_boolean(column.type)]


class FlagParameters(FilterParameters):
    """A flag column such as ``digit_mismatch`` or ``runaway``: a pair with the flag is rejected."""

    kind: Literal["flag"]
    column: str

    removed: ClassVar[Mapping[str, str]] = {
        "refuse": "pairs with the flag are rejected; leave the filter out to keep them"
    }

    @field_validator("column")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in FLAGS:
            raise ValueError(f"not a flag: flags are {', '.join(FLAGS)}{did_you_mean(name, FLAGS)}")
        return name

    def default_name(self) -> str:
        """Return the flag's name."""
        return self.column

    def columns(self) -> tuple[str, ...]:
        """Return the flag."""
        return (self.column,)

    def refusal(self) -> str:
        """E.g. ``translation cut off``."""
        return LABELS[self.column]

    def signature(self, fingerprint: str | None = None) -> tuple[str, str]:
        """E.g. ``not:runaway``."""
        return "not", self.column

    def prepare(self, pairs: AcceptedPairs) -> Filter:
        """See :class:`~paraforge.corpus.selection.filters.FilterParameters`; a missing flag is False."""
        return ValueFilter(
            self.reason, (self.column,), None, lambda flags: ~pc.fill_null(flags, False).to_numpy(), "accept"
        )
