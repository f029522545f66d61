"""Kinds of damage to a file on disk."""

from collections.abc import Callable
from pathlib import Path

Damage = Callable[[Path], None]


def flip(path: Path) -> None:
    """Flip one bit in the middle."""
    content = bytearray(path.read_bytes())
    if content:
        content[len(content) // 2] ^= 1
    path.write_bytes(content)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def remove(path: Path) -> None:
    path.unlink()


DAMAGES: tuple[Damage, ...] = (flip, truncate, empty, remove)


def apply(damage: Damage, path: Path) -> None:
    """Damage a file, but not the file that a link leads to."""
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)
    damage(path)
