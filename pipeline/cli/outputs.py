"""Whether a command may write where it is told to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipeline.errors import InputError


def check_output_directory(output: Path, force: bool, marks: Sequence[str]) -> None:
    """Refuse to replace anything without `force`, and with it what is not of the command's own kind: a file
    of pairs that was named last, a directory with other things in it.

    marks: names of files one of which a directory of this kind has.

    Raises:
        InputError: it is there, and stays as it is.
    """
    if not output.exists():
        return
    if not force:
        raise InputError("already there", output, remedy="Give --force to replace it.")
    own = output.is_dir() and (not any(output.iterdir()) or any((output / mark).is_file() for mark in marks))
    if not own:
        raise InputError(
            f"there is something else ({' or '.join(marks)} is missing), which --force does not replace",
            output,
            remedy="Name another directory, or remove it yourself.",
        )
