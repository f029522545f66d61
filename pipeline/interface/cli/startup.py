"""Imported before anything else: imports may take seconds, in which Ctrl-C is exit code 130, too."""

import sys
from pathlib import Path

from paraforge.base.interrupts import end_on_signals

if Path(sys.argv[0]).stem == "paraforge":
    end_on_signals()
