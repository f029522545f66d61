"""Runs a stage: sets up logging, handles signals and turns errors into exit codes."""

import dataclasses
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from paraforge.base.interrupts import errors_in_words
from paraforge.base.logs import configure_logging
from paraforge.interface.configuration import Parameters as Parameters
from paraforge.interface.configuration import load_parameters
from paraforge.interface.configuration.choices import stale_words
from paraforge.interface.configuration.inputs import link_inputs
from paraforge.interface.project.files import check_versions
from paraforge.stages.watched import unchanged

logger = logging.getLogger(__name__)


def plain(value: Any) -> Any:
    """Convert dataclasses and pydantic models to a JSON value."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return value


def parameters_of(stage: str) -> Parameters:
    """Read params.yaml, and make links in `inputs/STAGE` to the files that it names.

    Raises InputError if the project was made by another version, or if a value is not allowed.
    """
    check_versions()
    # Only in the first stage, because composing the parameters takes half a second.
    if stage == "ingest" and (stale := stale_words(Path())):
        logger.warning("%s", stale)
    parameters = load_parameters()
    link_inputs(parameters, [stage])
    return parameters


def run_stage(name: str, main: Callable[[Parameters], None]) -> None:
    """Run a stage of the project here; if it fails, exit with the error's exit code (docs/installation.md).

    A stage fails if its parameters or input files change while it runs: DVC would record the new ones for an
    output that was made with the old ones.
    """

    def tell(message: str) -> None:
        logger.error("%s", message)
        logger.debug("raised here:", exc_info=True)

    with errors_in_words(tell):
        configure_logging(name, brief=True)
        with unchanged(name, partial(parameters_of, name)) as parameters:
            main(parameters)
