"""DVC stages: each reads its section of params.yaml, calls the library and writes metrics."""

import sys

from paraforge.base.interrupts import end_on_signals

# While 'python -m paraforge.stages.NAME' imports this package: its other imports may take seconds, and a
# signal that arrives meanwhile is exit code 130, too.
if sys.argv[0] == "-m":
    end_on_signals()
