"""Pieces of a sentence as an engine reads them, no more than the model has positions, and text of pieces."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paraforge.base.errors import InputError
from paraforge.translation.decoding.batching import SourceTokens
from paraforge.translation.decoding.translator import DecodingOptions
from paraforge.translation.models.model import TranslationModel
from paraforge.translation.models.model_file import ModelFile
from paraforge.translation.models.subwords import BPE, known_pieces, open_subwords

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


class SentencePieces:
    """The subwords of both sides, with the tags that the model wants around a sentence."""

    def __init__(self, model: TranslationModel, options: DecodingOptions) -> None:
        """Load the subwords of both sides. Raises InputError: a file of them is missing or damaged."""
        self._source = open_subwords(model.source_sentencepiece, model.source_language)
        self._target = (
            self._source
            if model.target_sentencepiece == model.source_sentencepiece
            and model.source_sentencepiece.suffix != BPE  # Moses' rules are another language's
            else open_subwords(model.target_sentencepiece, model.target_language)
        )
        self._is_known = known_pieces(self._source)
        self._prefix = list(model.source_prefix)
        self._suffix = list(model.source_suffix)
        self._forced = list(model.target_prefix)
        maximum = min(options.maximum_source_tokens, model.maximum_source_tokens)
        # One place is for end-of-sentence.
        self._room = maximum - 1 - len(self._prefix) - len(self._suffix)

    def encode(self, sentences: list[str]) -> list[SourceTokens]:
        """Return tokens of each sentence, tags included; none where nothing is left to translate."""
        return [
            self._framed(sentence, pieces)
            for sentence, pieces in zip(
                sentences, self._source.encode(sentences, out_type=str, num_threads=1), strict=True
            )
        ]

    def _framed(self, sentence: str, pieces: list[str]) -> SourceTokens:
        if not pieces:
            return SourceTokens(sentence, [])
        truncated = len(pieces) > self._room
        # Of nothing but unknown pieces (emoji, another script) a model invents a fluent sentence.
        failed = None if any(map(self._is_known, pieces)) else "unknown source"
        tokens = [*self._prefix, *pieces[: self._room], *self._suffix]
        return SourceTokens(sentence, tokens, truncated, failed)

    def encode_target(self, texts: list[str]) -> list[list[str]]:
        """Return tokens of texts of the target side, without those that every hypothesis is made to begin
        with."""
        return [list(row) for row in self._target.encode(texts, out_type=str, num_threads=1)]

    def decode(self, tokens: Sequence[str]) -> str:
        """Return text of target tokens, without the tokens that every hypothesis is made to begin with."""
        start = len(self._forced) if list(tokens[: len(self._forced)]) == self._forced else 0
        return str(self._target.decode(list(tokens[start:])))
