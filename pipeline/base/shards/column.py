"""What a column of the project is declared by, and which columns of other files have texts."""

from __future__ import annotations

import pyarrow as pa


def column(name: str, kind: pa.DataType, description: str) -> pa.Field:
    """A column: its name, type and meaning."""
    return pa.field(name, kind, metadata={"description": description})


def holds_text(kind: pa.DataType) -> bool:
    """Whether a column of this type has texts: strings of any layout, perhaps as a dictionary."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return kind in (pa.string(), pa.large_string(), pa.string_view())
