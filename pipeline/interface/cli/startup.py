"""Imported first, because other imports can take seconds, during which Ctrl-C must also give exit code
130."""

import sys
from pathlib import Path

from paraforge.base.interrupts import end_on_signals

if Path(sys.argv[0]).stem == "paraforge":
    end_on_signals()
