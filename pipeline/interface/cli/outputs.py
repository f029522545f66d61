"""Whether a command may write to a path: the one check of outputs.

What exists is refused without ``--force``; with it, only what the command itself makes is replaced. It is
recognised by what such an output contains anyway: a description and known files, columns, keys, lines.
"""

import csv
import fnmatch
import gzip
import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from paraforge.base.errors import InputError
from paraforge.base.files import DIGESTS, sweep, write_whole

_READ_BYTES = 1 << 16
# A file in a directory with one of these, which has this key, is part of it, and is replaced by what makes
# the whole alone.
_WHOLE_DIRECTORIES = {"_manifest.json": ("files",), "_shards.json": ("shards",), "table.json": ("words",)}

# Not the names without underscore: other programs have files of these names.
_DATASETS = ("_manifest.json", "_shards.json")


@dataclass(frozen=True)
class DirectoryKind:
    """A directory that a command makes.

    what: for the message, e.g. "a lexicon".
    description: name of the JSON file that every such directory has.
    keys: what that file has, where it is an object.
    others: patterns of the other files' paths below it; if empty, the description lists them as `files`.
    """

    what: str
    description: str
    keys: tuple[str, ...]
    others: tuple[str, ...]


_TENSORS = "model.safetensors"
_NUMBER = "[0-9]" * 5
LEXICON = DirectoryKind("a lexicon", "lexicon.json", ("entries", "files"), ("*.parquet",))
TRAINED_MODEL = DirectoryKind(
    "a trained model",
    "encoder.json",
    ("architecture", "vocabularies"),
    (_TENSORS, "*.vocabulary.json", "sentencepiece.model", "README.md"),
)
CORPUS_PART = DirectoryKind(
    "an exported corpus",
    "_manifest.json",
    ("part_of", "files"),
    (f"*-{_NUMBER}.*", "_shards.json", "_README.md", ".huggingface.yaml", "_wrong_pairs.arrow"),
)
MERGED_CORPUS = DirectoryKind("a merged corpus", "_manifest.json", ("merged", "files"), CORPUS_PART.others)
GROUPS = DirectoryKind(
    "groups of a corpus", "_shards.json", ("groups", "shards"), (f"*-{_NUMBER}.parquet", ".huggingface.yaml")
)
TRIPLETS = DirectoryKind(
    "triplets", "_triplets.json", ("encoder", "files"), ("*.parquet", "_README.md", ".huggingface.yaml")
)
SIF = DirectoryKind("a SIF model", "sif.json", ("weighting", "components"), (_TENSORS, "words.json"))
SENTENCE_TRANSFORMER = DirectoryKind(
    "a sentence-transformers export",
    "modules.json",
    (),
    ("config_sentence_transformers.json", "README.md", "0_StaticEmbedding/*", "0_ParaforgeEncoder/*"),
)
TRANSLATION_MODEL = DirectoryKind("a translation model", "model.json", ("fingerprint", "files"), ())
_DIRECTORY_KINDS = (LEXICON, TRIPLETS, TRAINED_MODEL, SIF, SENTENCE_TRANSFORMER, TRANSLATION_MODEL)


@dataclass(frozen=True)
class FileKind:
    """A file that a command makes; ``is_one`` looks at an existing one, and may raise any error."""

    what: str
    is_one: Callable[[Path], bool]


def check_output_directory(output: Path, force: bool, *kinds: DirectoryKind) -> None:
    """Refuse to replace anything without `force`, and with it anything but an empty directory or one of these
    kinds in which nothing else was put. Raises InputError: it exists; it is left as it is; or nothing can be
    put there."""
    _check_place(output)
    if not _exists(output, force):
        return
    found = [_refusal(output, kind) for kind in kinds] if output.is_dir() else ["not a directory"]
    if None not in found:
        _refuse(output, f"not {' or '.join(kind.what for kind in kinds)} ({found[0]})")


def check_output_file(output: Path | None, force: bool, kind: FileKind | None = None) -> None:
    """Refuse to replace a file without `force`, and with it anything but an empty file or one of this kind.

    output: None is standard output, which is always right.
    kind: None where it is not known yet (the columns of a query): call again before writing.

    What killed writers of it left beside it is removed.

    Raises InputError: it exists; it is left as it is; or nothing can be put there.
    """
    if output is None:
        return
    _check_place(output)
    sweep(output.parent)
    if not _exists(output, force):
        return
    if not output.is_file():
        _refuse(output, "not a file")
    marks = _WHOLE_DIRECTORIES | {directory.description: directory.keys for directory in _DIRECTORY_KINDS}
    for mark, keys in marks.items():
        if _describes(output.parent / mark, keys):
            _refuse(output, f"part of the directory that {mark} describes")
    if kind is not None and output.stat().st_size and not _is_one(kind, output):
        _refuse(output, f"not {kind.what}")


def json_object(what: str, *keys: str) -> FileKind:
    """A JSON object that has these keys."""
    return FileKind(what, lambda path: _has_keys(json.loads(path.read_text(encoding="utf-8")), keys))


def table(what: str, form: str, columns: Sequence[str]) -> FileKind:
    """A table that has these columns.

    form: csv, tsv, json, jsonl or parquet.
    """

    def is_one(path: Path) -> bool:
        if form == "parquet":
            import pyarrow.parquet as pq

            return set(columns) <= set(pq.read_schema(path).names)
        with (
            gzip.open(path, "rt", encoding="utf-8", newline="")
            if path.suffix == ".gz"
            else path.open(encoding="utf-8", newline="") as file
        ):
            if form == "json":
                rows = json.load(file)
                return isinstance(rows, list) and all(_has_keys(row, columns) for row in rows[:1])
            if form == "jsonl":
                return _has_keys(json.loads(file.readline(_READ_BYTES)), columns)
            separator = "\t" if form == "tsv" else ","
            return set(columns) <= set(next(csv.reader(file, delimiter=separator)))

    return FileKind(f"{what} with the columns {', '.join(columns)}", is_one)


def text_lines(what: str, *patterns: str, repeated: bool = False) -> FileKind:
    """A text whose first lines match these regular expressions as a whole, one each.

    repeated: there is one expression, and all lines match it (of a large file, those of its beginning).
    """

    def is_one(path: Path) -> bool:
        from paraforge.base.text.compression import open_bytes

        with open_bytes(path) as file:
            beginning = file.read(_READ_BYTES)
        lines = beginning.decode("utf-8", errors="replace").removesuffix("\n").split("\n")
        if repeated:
            whole = lines if len(beginning) < _READ_BYTES else lines[:-1]
            return all(re.fullmatch(patterns[0], line) for line in whole)
        return len(lines) >= len(patterns) and all(map(re.fullmatch, patterns, lines))

    return FileKind(what, is_one)


def write_or_print(text: str, output: Path | None) -> None:
    """Print a text, or write it to a file, which has it as a whole or not at all."""
    if output is None:
        typer.echo(text)
        return
    write_whole(output, f"{text}\n")


def numpy_array() -> FileKind:
    """A ``.npy`` file."""

    def is_one(path: Path) -> bool:
        with path.open("rb") as file:
            return file.read(6) == b"\x93NUMPY"

    return FileKind("an array of NumPy", is_one)


def _check_place(output: Path) -> None:
    """Refuse what is below a file or in a directory that cannot be written to, and anything new in a dataset,
    which readers would take for part of it and the next publication would remove."""
    parents = Path(os.path.realpath(output.parent), output.name).parents
    nearest = next(parent for parent in parents if parent.exists())
    writable = any(os.access(place, os.W_OK | os.X_OK) for place in (nearest, output) if place.is_dir())
    if nearest.is_dir() and not writable:
        raise InputError("cannot be written to", nearest, remedy="Give another name, or the right to write.")
    for parent in parents:
        if not parent.is_dir():
            if parent.exists():
                raise InputError("not a directory", parent, remedy="Give another name.")
            continue
        for mark in () if output.exists() else _DATASETS:
            if _describes(parent / mark, _WHOLE_DIRECTORIES[mark]):
                raise InputError(
                    f"part of the directory that {mark} describes", output, remedy="Give another name."
                )


def _exists(output: Path, force: bool) -> bool:
    if not output.exists() and not output.is_symlink():
        return False
    if not force:
        raise InputError("already there", output, remedy="Give --force to replace it, or another name.")
    return True


def _refusal(output: Path, kind: DirectoryKind) -> str | None:
    """Why a directory is not of a kind, None where it is, or is empty."""
    if not any(output.iterdir()):
        return None
    try:
        description = json.loads((output / kind.description).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return f"without a readable {kind.description}"
    if not _has_keys(description, kind.keys):
        return f"its {kind.description} lacks {' or '.join(kind.keys)}"
    known = (kind.description, DIGESTS, *(kind.others or description["files"]))
    names = (path.relative_to(output).as_posix() for path in output.rglob("*") if not path.is_dir())
    foreign = [name for name in names if not any(fnmatch.fnmatchcase(name, pattern) for pattern in known)]
    return f"{min(foreign)} was put into it" if foreign else None


def _describes(path: Path, keys: Sequence[str]) -> bool:
    """Whether a file describes its directory; a damaged one may have."""
    try:
        return _has_keys(json.loads(path.read_text(encoding="utf-8")), keys)
    except (ValueError, RecursionError):
        return True
    except OSError:
        return False


def _is_one(kind: FileKind, path: Path) -> bool:
    try:
        return kind.is_one(path)
    except (OSError, ValueError, csv.Error, StopIteration, RecursionError, InputError):
        return False


def _has_keys(value: Any, keys: Sequence[str]) -> bool:
    return not keys or (isinstance(value, dict) and set(keys) <= set(value))


def _refuse(output: Path, why: str) -> None:
    raise InputError(
        f"{why}, so --force does not replace it", output, remedy="Give another name, or remove it yourself."
    )
