"""Whether a model is complete: its files, its embeddings, and whether an engine opens it."""

from __future__ import annotations

from pathlib import Path

from paraforge.decoding.translator import DecodingOptions, Hypotheses, Placement
from paraforge.engines import open_translator
from paraforge.models.importers.ctranslate2 import check_embeddings
from paraforge.models.model import open_model


def check_model(
    path: Path, engine: str, sentence: str = "", beam: int = 4, compute_type: str = "float32"
) -> Hypotheses | None:
    """Compare every file with its SHA-256, embeddings with vocabularies, and open the model.

    path: directory of the model. engine: what opens it. sentence: translated, if there is one.
    beam: width of the beam. compute_type: arithmetic of the engine.

    Returns the sentence's translations, or None without one. Raises InputError: something is missing, damaged
    or does not fit.
    """
    model = open_model(path, engine)
    folder = model.folders.get("ctranslate2")
    if folder is not None:
        check_embeddings(folder, folder)
    translator = open_translator(
        engine, model, DecodingOptions(beam=beam, compute_type=compute_type), Placement("cpu")
    )
    return next(iter(translator.translate([sentence])), None) if sentence else None
