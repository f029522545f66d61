"""Links the user's files that parameters name into ``inputs/STAGE``, so that ``dvc repro`` notices changes,
and finds those that cannot be read.

dvc.yaml lists a stage's dependencies, but the parameters decide which files a run reads. So each stage with
such parameters depends on a directory of links. Their fields are marked with :class:`UserFile`.
"""

import contextlib
import importlib.util
import os
import types
import typing
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from paraforge.base.errors import InputError, MissingPackageError
from paraforge.base.files import files_below
from paraforge.base.shards.store import INDEX_NAME
from paraforge.base.text.paths import UserFile, expand, files_of
from paraforge.intake.bitext.examination import problems
from paraforge.intake.bitext.parameters import IngestParameters
from paraforge.interface.configuration.parameters import Parameters
from paraforge.translation.models.importers import importer_for
from paraforge.translation.models.model import MODEL_FILE
from paraforge.translation.training.parameters import languages_of

INPUTS = Path("inputs")
LINKED = (
    *("ingest", "nmt", "paragram", "score", "select", "lexicon", "embeddings", "paraphraser", "triplets"),
    "statistics",
)
"""The stages whose parameters can name a user's files; in dvc.yaml they depend on ``inputs/STAGE``."""


@dataclass(frozen=True)
class NamedFile:
    """A path in the parameters.

    key: the parameter, e.g. ``ingest.sources.0.path``. text: its value. marker: the field's marker.
    """

    key: str
    text: str
    marker: UserFile

    def files(self) -> list[Path]:
        """Return the files to read, sorted by name within a directory or pattern. Raises InputError if there
        is none, a variable is not set, or it is not a file (a pipe, a device)."""
        path = Path(expand(self.text))
        if path.is_dir():
            index = path / INDEX_NAME
            # The index of shards has the SHA-256 of every shard.
            files = [index] if index.is_file() else sorted(_visible_files(path))
            if not files:
                raise InputError("this directory has no files", path)
            return files
        paths = files_of(self.text)
        neighbors = {file for pattern in self.marker.neighbors for file in path.parent.glob(pattern)}
        return [*paths, *sorted(file for file in neighbors - set(paths) if file.is_file())]


def link_inputs(parameters: Parameters, stages: Iterable[str] | None = None, root: Path = INPUTS) -> None:
    """Update the links of some or all stages to match the parameters; links to other files are removed.

    A file that does not exist gets no link: the stage itself reports what is missing.

    parameters: all of params.yaml.
    stages: names of stages; those whose parameters cannot name files have no links.
    root: directory of the links.
    """
    for stage in LINKED if stages is None else set(stages) & set(LINKED):
        paths: list[Path] = []
        for named in named_files(parameters, stage):
            with contextlib.suppress(InputError):
                paths += named.files()
        _link(root / stage, paths)


def named_files(parameters: Parameters, stage: str) -> Iterator[NamedFile]:
    """Yield the paths that a stage's parameters name, in the order of the fields."""
    section = getattr(parameters, stage)
    if stage == "embeddings":
        # Models that are configured but not trained read nothing.
        section = section.model_copy(
            update={"models": {name: section.models[name] for name in section.names}}
        )
    yield from _find_named_files(section, type(section), (), stage)
    for name, pivot in parameters.pivots.items():
        if (section := getattr(pivot, stage, None)) is not None:
            yield from _find_named_files(section, type(section), (), f"pivots.{name}.{stage}")


def unreadable_files(parameters: Parameters) -> list[str]:
    """Return the problems of the files that the parameters name: one line per parameter, with its key."""
    problems = []
    for stage in LINKED:
        for named in named_files(parameters, stage):
            if named.text in named.marker.words or (named.marker.hub and _is_on_hub(named.text)):
                continue
            try:
                named.files()
            except InputError as error:
                problems.append(f"{named.key}: {error}")
    return problems


def _find_named_files(value: Any, annotation: Any, metadata: Iterable[Any], key: str) -> Iterator[NamedFile]:
    marker = next((item for item in metadata if isinstance(item, UserFile)), None)
    if marker is not None and isinstance(value, str | Path):
        yield NamedFile(key, str(value), marker)
    elif isinstance(value, BaseModel):  # for a union of models, the actual one
        for name, field in type(value).model_fields.items():
            yield from _find_named_files(
                getattr(value, name), field.annotation, field.metadata, f"{key}.{name}"
            )
    elif typing.get_origin(annotation) is typing.Annotated:
        kind, *inner = typing.get_args(annotation)
        yield from _find_named_files(value, kind, inner, key)
    elif typing.get_origin(annotation) in (typing.Union, types.UnionType):
        for argument in typing.get_args(annotation):
            yield from _find_named_files(value, argument, metadata, key)
    elif isinstance(value, list | dict) and typing.get_origin(annotation) is type(value):
        # Messages name filters as in params.yaml, although they are stored as a list.
        names = value if isinstance(value, dict) else [getattr(x, "reason", n) for n, x in enumerate(value)]
        for name, item in zip(names, value.values() if isinstance(value, dict) else value, strict=True):
            yield from _find_named_files(item, typing.get_args(annotation)[-1], (), f"{key}.{name}")


def _is_on_hub(text: str) -> bool:
    """Return whether this is ORGANIZATION/NAME on the Hub and not a local path."""
    from paraforge.translation.models.importing import is_hub_name

    return is_hub_name(text) and not Path(text).parent.is_dir()


def _visible_files(directory: Path) -> Iterator[Path]:
    for path in files_below(directory):
        if not any(part.startswith(".") for part in path.relative_to(directory).parts):
            yield path


def _link(directory: Path, paths: Iterable[Path]) -> None:
    # Links to relative paths are relative: those of a project that is moved or copied name its own files.
    targets = {
        _link_name(number, path): path if path.is_absolute() else Path(os.path.relpath(path, directory))
        for number, path in enumerate(paths)
    }
    directory.mkdir(parents=True, exist_ok=True)
    for link in directory.iterdir():
        if link.is_symlink() and targets.get(link.name) != link.readlink():
            link.unlink()
    for name, path in targets.items():
        # Without links (Windows without the permission), DVC only sees the parameters.
        with contextlib.suppress(FileExistsError, NotImplementedError, PermissionError):
            (directory / name).symlink_to(path)


def _link_name(number: int, path: Path) -> str:
    name = f"{number:03d}-{path.name}"
    # A name has at most 255 bytes, and a character at most four.
    return name if len(os.fsencode(name)) <= 255 else f"{number:03d}-{path.name[-60:]}"


def check_files(parameters: Parameters) -> list[str]:
    """Return all problems of a user's files that show without reading them whole. Writes nothing."""
    messages: list[str] = []
    models: list[str] = []
    examined: list[str] = []
    for _, place, pivot in parameters.by_pivot():
        prefix = ".".join([*place.parts, ""])
        sources = {"ingest": pivot.ingest}
        if isinstance(pivot.nmt.bitext, IngestParameters):
            sources["nmt.bitext"] = pivot.nmt.bitext
        for key, section in sources.items():
            examined.append(f"{prefix}{key}.sources.")
            messages += [
                f"{prefix}{key}: {message}"
                for message in problems(section, languages_of(pivot.nmt, prefix + key))
            ]
        for key, name in (("model", pivot.nmt.model), ("forward", pivot.nmt.forward or "none")):
            models += [f"{prefix}nmt.{key}: {problem}" for problem in _model_problems(name)]
    messages += [
        message for message in unreadable_files(parameters) if not message.startswith(tuple(examined))
    ]
    return messages or models


def _model_problems(name: str) -> list[str]:
    """Return the problem of a pretrained model: a local one of no known format, or one on the Hub without the
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
