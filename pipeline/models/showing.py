"""What a model's directory is, whichever kind of model: read from its description alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from paraforge.errors import InputError
from paraforge.files import read_json

# The file that describes a model of each kind. A translation model has a reader of its own.
_KINDS = {
    "encoder.json": "sentence embeddings",
    "decoders.json": "decoders of neighbouring sentences",
    "sif.json": "SIF sentence embeddings",
    "table.json": "word vectors",
    "modules.json": "sentence-transformers model",
}


def describe(model: Path) -> dict[str, Any]:
    """Kind, architecture, sizes and origin of a model, as names and values.

    model: its directory; of decoders perhaps with what they are read by (`@unrolled:3`) behind it.

    Raises InputError: no such model, or its description is damaged.
    """
    directory = model if model.exists() else Path(str(model).partition("@")[0])
    for name, kind in _KINDS.items():
        if (directory / name).is_file():
            content = read_json(directory / name)
            files = [file for file in directory.rglob("*") if file.is_file()]
            size = sum(file.stat().st_size for file in files)
            return {"kind": kind, **dict(_flat(content)), "bytes": size}
    if not directory.is_dir():
        raise InputError("no such directory of a model", model)
    from paraforge.models.description import describe_model

    return {"kind": "translation model", **describe_model(directory)}


def _flat(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Every value by its dotted key; a list of plain values is one."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _flat(inner, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list) and any(isinstance(one, dict | list) for one in value):
        for place, inner in enumerate(value):
            yield from _flat(inner, f"{key}.{place}" if key else str(place))
    elif value not in (None, "", [], {}):
        yield key, ", ".join(map(str, value)) if isinstance(value, list) else value
