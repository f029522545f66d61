"""Runs a stage: sets up logging, handles signals and turns errors into exit codes."""

import dataclasses
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from paraforge.base.errors import ParaforgeError, describe_os_error, names_in_utf8
from paraforge.base.interrupts import last_words
from paraforge.base.logs import configure_logging
from paraforge.interface.configuration import Parameters, load_parameters
from paraforge.interface.configuration.choices import stale_words
from paraforge.interface.configuration.inputs import link_inputs
from paraforge.interface.project.files import check_versions
from paraforge.stages.watched import Watch

logger = logging.getLogger(__name__)
# What the stage of this process began with.
_watch: Watch | None = None


def plain(value: Any) -> Any:
    """Convert dataclasses and pydantic models to a JSON value."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return value


def parameters_of(stage: str) -> Parameters:
    """Read params.yaml, and link the files that it names in `inputs/STAGE`. Raises InputError if another
    version made the project, or a value is not allowed."""
    global _watch
    check_versions()
    watch = Watch(stage)
    # Once a run: composing takes half a second.
    if stage == "ingest" and (stale := stale_words(Path())):
        logger.warning("%s", stale)
    parameters = load_parameters()
    link_inputs(parameters, [stage])
    watch.note_files(parameters)
    _watch = watch
    return parameters


def run_stage(name: str, main: Callable[[], None]) -> None:
    """Run a stage and exit: 0 when done, otherwise the error's exit code (see docs/installation.md).

    A stage whose parameters or input files change while it runs fails: DVC would note the new ones beside
    output that was made with the old ones.
    """
    global _watch
    _watch = None
    with last_words():
        try:
            with names_in_utf8():
                configure_logging(name, brief=True)
                main()
                if _watch is not None:
                    _watch.check()
        except ParaforgeError as error:
            logger.error("%s", error)
            sys.exit(error.exit_code)
        except (OSError, MemoryError) as error:
            # A full disk, memory or a missing right is the machine's trouble, not a defect: one line says so.
            logger.error("%s", describe_os_error(error))
            sys.exit(1)
