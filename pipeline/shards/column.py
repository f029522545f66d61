"""What a column of the project is declared by."""

from __future__ import annotations

import pyarrow as pa


def column(name: str, kind: pa.DataType, description: str) -> pa.Field:
    """A column: its name, type and meaning."""
    return pa.field(name, kind, metadata={"description": description})
