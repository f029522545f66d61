"""Results of end-to-end trainings on disk, so that a run of many folds resumes where it was killed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from paraforge.embeddings.fine_tuning.fit import Split
from paraforge.embeddings.fine_tuning.parameters import FineTuningParameters
from paraforge.embeddings.model import SentenceModel
from paraforge.files import hash_json, read_json_or_none, sha256_file, write_json

_VERSION: Final = 1
"""Of what a fit gives for the same input."""


class KeptFits:
    """A file a fit, named by the hash of the model, the examples, the settings and the seed."""

    def __init__(self, model: SentenceModel, directory: Path | None) -> None:
        """directory: None keeps and finds nothing."""
        self._directory = directory
        self._model = None if directory is None else _fingerprint(model)

    def find(
        self, split: Split, candidates: Sequence[FineTuningParameters], seed: int
    ) -> dict[str, Any] | None:
        """What was kept of this fit, if anything.

        Raises:
            InputError: the file is damaged.
        """
        place = self._place(split, candidates, seed)
        return None if place is None else read_json_or_none(place)

    def keep(
        self, split: Split, candidates: Sequence[FineTuningParameters], seed: int, result: dict[str, Any]
    ) -> None:
        """Write the result of a fit, as a whole or not at all."""
        place = self._place(split, candidates, seed)
        if place is not None:
            write_json(place, result)

    def _place(self, split: Split, candidates: Sequence[FineTuningParameters], seed: int) -> Path | None:
        if self._directory is None:
            return None
        key = hash_json(
            {
                "version": _VERSION,
                "model": self._model,
                "examples": asdict(split),
                "candidates": [candidate.model_dump(mode="json") for candidate in candidates],
                "seed": seed,
            }
        )
        return self._directory / f"{key}.json"


def _fingerprint(model: SentenceModel) -> str:
    """Hash of everything that a model gives vectors by."""
    tensors = {
        name: hashlib.sha256(value.detach().cpu().contiguous().numpy().tobytes()).hexdigest()
        for name, value in model.encoder.named_parameters()
    }
    pieces = model.sentencepiece_model
    return hash_json(
        {
            "architecture": model.parameters.model_dump(mode="json"),
            "tensors": tensors,
            "units": {unit: vocabulary.units for unit, vocabulary in model.vocabularies.items()},
            "pieces": None if pieces is None else sha256_file(pieces),
        }
    )
