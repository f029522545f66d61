"""Whether the files that the parameters name can be read, before a run reads them."""

from __future__ import annotations

from pathlib import Path

from paraforge.bitext.parameters import IngestParameters
from paraforge.bitext.sources import problems
from paraforge.configuration.inputs import unreadable_files
from paraforge.configuration.parameters import Parameters
from paraforge.errors import InputError
from paraforge.models.archives import is_archive
from paraforge.models.conversion import MODEL_FILE
from paraforge.models.importers import importer_for
from paraforge.text.paths import expand


def check_files(parameters: Parameters) -> list[str]:
    """Everything wrong with files of the user's that shows without reading them whole; nothing is written."""
    bitext = parameters.nmt.bitext
    sources = {"ingest": parameters.ingest}
    if isinstance(bitext, IngestParameters):
        sources["nmt.bitext"] = bitext
    found = [f"{key}: {problem}" for key, section in sources.items() for problem in problems(section)]
    prefixes = tuple(f"{key}.sources." for key in sources)
    found += [problem for problem in unreadable_files(parameters) if not problem.startswith(prefixes)]
    return found or _model_problems(parameters.nmt.model)


def _model_problems(name: str) -> list[str]:
    """What is wrong with a ready model that exists here: no format fits."""
    path = Path(expand(name))
    if name in ("train", "none") or not path.exists() or is_archive(path) or (path / MODEL_FILE).is_file():
        return []
    try:
        importer_for(path)
    except InputError as error:
        return [f"nmt.model: {error}"]
    return []
