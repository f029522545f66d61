"""Links to the user's files that stages read, so that ``dvc repro`` notices when one of them changes.

A stage's dependencies stand in dvc.yaml, and which files a run reads only in its parameters: so each of these
stages depends on a directory of links, ``inputs/STAGE``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from pathlib import Path

from paraforge.bitext.parameters import CatalogueSource, IngestParameters, MosesSource, SampleSource
from paraforge.configuration.parameters import Parameters
from paraforge.embeddings.paragram_parameters import ParagramParameters
from paraforge.embeddings.parameters import EmbeddingsParameters
from paraforge.errors import InputError
from paraforge.nmt.parameters import NmtParameters
from paraforge.selection.parameters import DecontaminationParameters, SelectParameters
from paraforge.shards.store import index_path
from paraforge.text.paths import expand, files_of

INPUTS = Path("inputs")


def link_inputs(parameters: Parameters, stages: Iterable[str] | None = None, root: Path = INPUTS) -> None:
    """Make the links of some stages, or of all, what the parameters say; links to other files are removed.

    Files that are not there have no link: the stage itself says what is missing.

    Args:
        parameters: all of params.yaml.
        stages: names of stages.
        root: directory of the links.
    """
    for stage in stages if stages is not None else READ_BY:
        _link(root / stage, READ_BY[stage](parameters))


def _link(directory: Path, paths: Iterable[Path]) -> None:
    wanted = {f"{place:03d}-{path.name}": path.absolute() for place, path in enumerate(paths)}
    directory.mkdir(parents=True, exist_ok=True)
    for link in directory.iterdir():
        if link.is_symlink() and wanted.get(link.name) != link.readlink():
            link.unlink()
    for name, path in wanted.items():
        # Where there are no links (Windows without the right to make them), DVC sees the parameters alone.
        with contextlib.suppress(FileExistsError, NotImplementedError, PermissionError):
            (directory / name).symlink_to(path)


def _found(patterns: Iterable[str]) -> list[Path]:
    paths: list[Path] = []
    for pattern in patterns:
        with contextlib.suppress(InputError):
            paths += files_of(pattern)
    return paths


def _ingest_files(parameters: IngestParameters) -> list[Path]:
    patterns: list[str] = []
    for source in parameters.sources:
        if isinstance(source, SampleSource | CatalogueSource):
            continue
        patterns += source.paths.values() if isinstance(source, MosesSource) else source.patterns
        patterns += [source.drop_rows] if source.drop_rows is not None else []
    return _found(patterns)


def _nmt_files(parameters: NmtParameters) -> list[Path]:
    if isinstance(parameters.bitext, Path):
        # The index has the SHA-256 of every shard.
        index = index_path(parameters.bitext)
        return [index] if index.is_file() else []
    return [] if parameters.bitext is None else _ingest_files(parameters.bitext)


def _paragram_files(parameters: ParagramParameters) -> list[Path]:
    named = [parameters.vectors, parameters.initial_vectors, *(file.path for file in parameters.pair_files)]
    return _found(path for path in named if path is not None and not _is_directory(path))


def _is_directory(path: str) -> bool:
    try:
        return Path(expand(path)).is_dir()
    except InputError:
        return False


def _select_files(parameters: SelectParameters) -> list[Path]:
    filters = [one for one in parameters.filters if isinstance(one, DecontaminationParameters)]
    return [file.location() for one in filters for file in one.files if file.location().is_file()]


def _embeddings_files(parameters: EmbeddingsParameters) -> list[Path]:
    named = [file.path for file in parameters.pair_files]
    for name in parameters.names:
        model = parameters.models[name]
        named += [path for path in (model.vectors, model.sentencepiece_model) if path is not None]
    sets = [*parameters.development, *parameters.test_sets]
    return _found([*named, *(f"{path}/**/*" if _is_directory(path) else path for path in sets)])


READ_BY: dict[str, Callable[[Parameters], list[Path]]] = {
    "ingest": lambda parameters: _ingest_files(parameters.ingest),
    "embeddings": lambda parameters: _embeddings_files(parameters.embeddings),
    "nmt": lambda parameters: _nmt_files(parameters.nmt),
    "paragram": lambda parameters: _paragram_files(parameters.paragram),
    "select": lambda parameters: _select_files(parameters.select),
}
