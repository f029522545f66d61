"""``python -m paraforge``: the command line."""

from paraforge.base.interrupts import end_on_signals

end_on_signals()

# isort: split
from paraforge.interface.cli import main  # noqa: E402 - signals are handled before the slow imports

main()
