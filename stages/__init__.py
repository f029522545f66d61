"""DVC stages: each reads its section of params.yaml, calls the library and writes metrics."""

import sys

from paraforge.base.interrupts import end_on_signals

# 'python -m paraforge.stages.NAME' imports this package first. Later imports may take seconds; a signal
# during them must also end the process with exit code 130.
if sys.argv[0] == "-m":
    end_on_signals()
