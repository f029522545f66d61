"""How long a sentence a model has positions for, and options that ask for no more."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from paraforge.base.errors import InputError
from paraforge.translation.decoding.translator import DecodingOptions
from paraforge.translation.models.model import TranslationModel
from paraforge.translation.models.model_file import ModelFile

logger = logging.getLogger(__name__)

# The form in which positions can be looked up without loading the model.
_FOLDER = "ctranslate2"


def positions_of(folder: Path) -> tuple[int | None, int | None]:
    """Positions of encoder and decoder of a CTranslate2 model, from its list of variables.

    Returns of each side the longest sequence, end-of-sentence included; None where the file has no positions
    (they are relative, or computed) or is in a format that is not known here.
    """
    try:
        file = ModelFile(folder)
    except InputError:
        return None, None
    names = (f"{side}/position_encodings/encodings" for side in ("encoder", "decoder"))
    source, target = (file.shape(name)[0] if name in file else None for name in names)
    return source, target


def limited_options(options: DecodingOptions, model: TranslationModel) -> DecodingOptions:
    """Options whose maxima are those of the model where it has positions for less, which is said.

    The decoder's are one fewer than its positions, as in fairseq, which keeps the last one for an
    end-of-sentence after the cap: so every engine cuts a hypothesis at the same place.
    Options that the model can do come back as they are, and with them the keys of what was made with them.
    """
    if _FOLDER not in model.folders:
        return options
    source, target = positions_of(model.folders[_FOLDER])
    changes: dict[str, Any] = {}
    if source is not None and source < min(options.maximum_source_tokens, model.maximum_source_tokens):
        changes["maximum_source_tokens"] = max(2, source)
    if target is not None and target - 1 < options.maximum_target_tokens:
        changes["maximum_target_tokens"] = max(2, target - 1)
    for name, value in changes.items():
        side = name.split("_")[1]
        logger.info(
            "%s is %d instead of %d: the model has %d positions for a %s",
            *(name, value, getattr(options, name), source if side == "source" else target, side),
        )
    return options.with_changes(**changes) if changes else options
