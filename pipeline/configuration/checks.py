"""Whether the files that the parameters name can be read, before a run reads them."""

from __future__ import annotations

from paraforge.bitext.parameters import IngestParameters
from paraforge.bitext.sources import problems
from paraforge.configuration.inputs import unreadable_files
from paraforge.configuration.parameters import Parameters


def check_files(parameters: Parameters) -> list[str]:
    """Everything wrong with files of the user's that shows without reading them whole; nothing is written."""
    bitext = parameters.nmt.bitext
    sources = {"ingest": parameters.ingest}
    if isinstance(bitext, IngestParameters):
        sources["nmt.bitext"] = bitext
    found = [f"{key}: {problem}" for key, section in sources.items() for problem in problems(section)]
    prefixes = tuple(f"{key}.sources." for key in sources)
    return found + [problem for problem in unreadable_files(parameters) if not problem.startswith(prefixes)]
