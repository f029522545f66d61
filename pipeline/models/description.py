"""What a model's directory holds, for people; and whether all of it is right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from paraforge.decoding.engines import open_translator
from paraforge.decoding.translator import DecodingOptions, Hypotheses, Placement
from paraforge.files import read_json
from paraforge.models.importers.ctranslate2 import check_embeddings
from paraforge.models.model import MODEL_INDEX, open_model


def describe_model(path: Path) -> dict[str, Any]:
    """Origin, languages, engines, subwords, tags, sizes and fingerprint of a model.

    Raises:
        InputError: no such model, or a part of it is missing.
    """
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


def check_model(
    path: Path, engine: str, sentence: str = "", beam: int = 4, compute_type: str = "float32"
) -> Hypotheses | None:
    """Compare every file with its SHA-256, embeddings with vocabularies, and open the model.

    Args:
        path: directory of the model.
        engine: what opens it.
        sentence: translated, if there is one.
        beam: width of the beam.
        compute_type: arithmetic of the engine.

    Returns:
        The sentence's translations, or None without one.

    Raises:
        InputError: something is missing, damaged or does not fit.
    """
    model = open_model(path, engine)
    folder = model.folders.get("ctranslate2")
    if folder is not None:
        check_embeddings(folder, folder)
    translator = open_translator(
        engine, model, DecodingOptions(beam=beam, compute_type=compute_type), Placement("cpu")
    )
    return next(iter(translator.translate([sentence])), None) if sentence else None
