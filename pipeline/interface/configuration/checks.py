"""Finds problems in files that the parameters name."""

import importlib.util
from pathlib import Path

from paraforge.base.errors import InputError, MissingPackageError
from paraforge.base.text.paths import expand
from paraforge.intake.bitext.examination import problems
from paraforge.intake.bitext.parameters import IngestParameters
from paraforge.interface.configuration.inputs import unreadable_files
from paraforge.interface.configuration.parameters import Parameters
from paraforge.translation.models.importers import importer_for
from paraforge.translation.models.model import MODEL_FILE
from paraforge.translation.training.parameters import languages_of


def check_files(parameters: Parameters) -> list[str]:
    """Return all problems of a user's files that show without reading them whole. Writes nothing."""
    found: list[str] = []
    models: list[str] = []
    looked_at: list[str] = []
    for _, place, one in parameters.by_pivot():
        above = ".".join([*place.parts, ""])
        sources = {"ingest": one.ingest}
        if isinstance(one.nmt.bitext, IngestParameters):
            sources["nmt.bitext"] = one.nmt.bitext
        for key, section in sources.items():
            looked_at.append(f"{above}{key}.sources.")
            found += [
                f"{above}{key}: {each}" for each in problems(section, languages_of(one.nmt, above + key))
            ]
        for key, name in (("model", one.nmt.model), ("forward", one.nmt.forward or "none")):
            models += [f"{above}nmt.{key}: {problem}" for problem in _model_problems(name)]
    found += [one for one in unreadable_files(parameters) if not one.startswith(tuple(looked_at))]
    return found or models


def _model_problems(name: str) -> list[str]:
    """Return the problem of a ready model: a local one of no known format, or one on the Hub without the
    package that downloads it."""
    path = Path(expand(name))
    if name in ("train", "none") or (path / MODEL_FILE).is_file():
        return []
    if not path.exists():
        is_installed = importlib.util.find_spec("huggingface_hub") is not None
        return [] if is_installed else [str(MissingPackageError("huggingface_hub", "hub"))]
    try:
        importer_for(path)
    except InputError as error:
        return [str(error)]
    return []
