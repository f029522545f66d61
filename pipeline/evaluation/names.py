"""Names of what is evaluated on, each of them used once."""

from __future__ import annotations

from collections.abc import Container


def free_name(name: str, taken: Container[str]) -> str:
    """The name, or where it is taken the name with a number: `dev (2)`."""
    free, number = name, 1
    while free in taken:
        number += 1
        free = f"{name} ({number})"
    return free
