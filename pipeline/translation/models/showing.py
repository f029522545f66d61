"""What a model's directory is, whichever kind of model: read from its description alone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from paraforge.base.errors import InputError
from paraforge.base.files import read_json
from paraforge.translation.models.model import MODEL_FILE, open_model

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


def describe_model(path: Path) -> dict[str, Any]:
    """Origin, languages, engines, subwords, tags, sizes and fingerprint of a model. Raises InputError: no
    such model, or a part of it is missing."""
    model = open_model(path, verify=False)
    index = read_json(model.path / MODEL_FILE) if (model.path / MODEL_FILE).is_file() else {}
    files = [file for file in model.path.rglob("*") if file.is_file()]
    architecture = index.get("architecture") or {}
    return {
        "origin": index.get("origin", "bare"),
        "imported from": index.get("imported_from") or "",
        "languages": f"{model.source_language or '?'} to {model.target_language or '?'}",
        "engines": ", ".join(model.folders),
        "subwords": ", ".join(
            dict.fromkeys(file.name for file in (model.source_sentencepiece, model.target_sentencepiece))
        ),
        "source prefix": " ".join(model.source_prefix),
        "source suffix": " ".join(model.source_suffix),
        "target prefix": " ".join(model.target_prefix),
        "maximum source tokens": model.maximum_source_tokens,
        "architecture": ", ".join(f"{name} {value}" for name, value in architecture.items()),
        "bytes": sum(file.stat().st_size for file in files),
        "fingerprint": model.fingerprint,
    }
