"""What a model's directory holds, for people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from paraforge.files import read_json
from paraforge.models.model import MODEL_INDEX, open_model


def describe_model(path: Path) -> dict[str, Any]:
    """Origin, languages, engines, subwords, tags, sizes and fingerprint of a model. Raises InputError: no
    such model, or a part of it is missing."""
    model = open_model(path, verify=False)
    index = read_json(model.path / MODEL_INDEX) if (model.path / MODEL_INDEX).is_file() else {}
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
