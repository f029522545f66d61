"""One of the training processes: its reports to the parent, and its end.

Run as ``python -m paraforge.translation.training.training_process DIRECTORY RANK`` by
:mod:`paraforge.translation.training.training`, which prepares ``DIRECTORY/settings.json`` and reads the JSON
lines that this process writes to standard output.
"""

import logging
import sys
import warnings
from contextlib import nullcontext
from pathlib import Path

from filelock import FileLock

from paraforge.base.errors import Interrupted, ParaforgeError, describe_os_error
from paraforge.base.files import read_json
from paraforge.base.interrupts import graceful_interrupts
from paraforge.translation.training.ranks import leave
from paraforge.translation.training.training_run import TrainingRun, report

ORPHAN_SECONDS = 600.0  # longer than an update and a validation


def main(directory: Path, rank: int = 0) -> int:
    """Train according to ``directory/settings.json``, as one of its processes. Returns the exit code."""
    # Libraries' output must not mix with the reports.
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s"
    )
    # fairseq is older than its dependencies, which warn about that repeatedly.
    warnings.simplefilter("ignore")
    try:
        # Processes whose parent was killed get time to notice, so that no two write here.
        lock = FileLock(directory / "trainer.lock", timeout=ORPHAN_SECONDS) if rank == 0 else nullcontext()
        with lock, graceful_interrupts():  # a signal ends the wait for the lock at once
            run = TrainingRun(directory, read_json(directory / "settings.json"), rank)
            if rank == 0:
                report(event="start", update=run.updates, history=run.history)
            reason = run.train()
            leave(run.ranks)
            if rank == 0:
                report(event="end", reason=reason, update=run.updates)
    except Interrupted as error:
        return error.exit_code
    except ParaforgeError as error:
        if rank == 0:
            report(event="error", message=str(error), exit_code=error.exit_code)
        return error.exit_code
    except OSError as error:
        if rank == 0:  # not only to the log, which a full disk cannot hold
            report(event="failed", message=describe_os_error(error))
        raise
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
