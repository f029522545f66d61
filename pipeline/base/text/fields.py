"""Rows of fields, and the numbers in them."""

from __future__ import annotations

import math

Row = tuple[int, list[str]]
"""Line number and fields."""


def finite_number(text: str | bytes) -> float | None:
    """The number that a field says, or None where it says none, or no finite one."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
