"""Tables and headings for people, as text: with colours for a terminal, without for a file or a pipe."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

PLAIN_WIDTH = 120


def on_terminal(output: Path | None = None) -> bool:
    """Whether a person reads it: it goes to standard output, and that is a terminal."""
    return output is None and sys.stdout.isatty()


def text_width(terminal: bool, plain: int = PLAIN_WIDTH) -> int:
    """Columns to use: the terminal's, or ``plain``."""
    return shutil.get_terminal_size((plain, 24)).columns if terminal else plain


def rendered(show: Callable[[Console], None], terminal: bool, plain: int = PLAIN_WIDTH) -> str:
    """What ``show`` prints, without the spaces that tables end their lines with."""
    from paraforge.interface.query.output import printed

    return printed(show, text_width(terminal, plain), terminal)
