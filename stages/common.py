"""What every stage does around its work: logging, signals and exit codes."""

from __future__ import annotations

import dataclasses
import logging
import sys
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from paraforge.configuration import Parameters, load_parameters
from paraforge.configuration.inputs import link_inputs
from paraforge.errors import ParaforgeError, describe_os_error
from paraforge.interrupts import graceful_interrupts, last_words
from paraforge.logs import configure_logging

logger = logging.getLogger(__name__)


def plain(value: Any) -> Any:
    """A JSON value of dataclasses and pydantic models."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return value


def parameters_of(stage: str) -> Parameters:
    """What params.yaml says; `inputs/STAGE` then has links to the files that it names."""
    parameters = load_parameters()
    link_inputs(parameters, [stage])
    return parameters


def run_stage(name: str, main: Callable[[], None]) -> None:
    """Run a stage and exit: 0 when done, otherwise the error's exit code (see docs/errors.md)."""
    with last_words():
        configure_logging(name, brief=True)
        try:
            with graceful_interrupts():
                main()
        except ParaforgeError as error:
            logger.error("%s", error)
            sys.exit(error.exit_code)
        except OSError as error:
            # A full disk or a missing right is the machine's trouble, not a defect: say so in one line.
            logger.error("%s", describe_os_error(error))
            sys.exit(1)
