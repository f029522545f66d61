"""Converts between sentences and the pieces that an engine reads, limited to the model's positions."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paraforge.base.errors import InputError
from paraforge.translation.decoding.batching import SourceTokens
from paraforge.translation.decoding.translator import DecodingOptions
from paraforge.translation.models.model import TranslationModel
from paraforge.translation.models.model_file import ModelFile
from paraforge.translation.models.subwords import WORD_START, known_pieces, open_subwords

logger = logging.getLogger(__name__)

# The form of a model from which positions can be read without loading it.
_FOLDER = "ctranslate2"


def positions_of(folder: Path) -> tuple[int | None, int | None]:
    """Return the positions of a CTranslate2 model's encoder and decoder, from its list of variables.

    Returns the longest sequence of each side, including end-of-sentence, but not the start of a source, which
    some models' engine adds; None if positions are relative or computed, or the format is unknown.
    """
    try:
        file = ModelFile(folder)
    except InputError:
        return None, None
    names = (f"{side}/position_encodings/encodings" for side in ("encoder", "decoder"))
    source, target = (file.shape(name)[0] if name in file else None for name in names)
    if source is not None and file.configuration.get("add_source_bos"):
        source -= 1
    return source, target


def limited_options(options: DecodingOptions, model: TranslationModel) -> DecodingOptions:
    """Return options with their maxima lowered to the model's positions, if needed, with a warning.

    The decoder's maximum is one less than its positions, as in fairseq, which reserves the last one for
    end-of-sentence after the cap. So every engine cuts a hypothesis at the same place. Options within the
    model's limits stay unchanged, and so do the keys that depend on them.
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
    """The subwords of both sides, with the tags that the model expects around a sentence."""

    def __init__(self, model: TranslationModel, options: DecodingOptions) -> None:
        """Load the subwords of both sides. Raises InputError if a file is missing or damaged."""
        self._source = open_subwords(model.source_sentencepiece, model.source_language)
        self._target = open_subwords(model.target_sentencepiece, model.target_language)
        self._is_known = known_pieces(self._source)
        self._prefix = list(model.source_prefix)
        self._suffix = list(model.source_suffix)
        self._forced = list(model.target_prefix)
        maximum = min(options.maximum_source_tokens, model.maximum_source_tokens)
        # One position is for end-of-sentence, and at least one for text.
        self._room = max(1, maximum - 1 - len(self._prefix) - len(self._suffix))

    def encode(self, sentences: list[str]) -> list[SourceTokens]:
        """Return the tokens of each sentence with tags; none if nothing is left to translate."""
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
        # From only unknown pieces (emoji, another script) a model would invent a fluent sentence.
        failed = None if any(map(self._is_known, pieces)) else "unknown source"
        tokens = [*self._prefix, *pieces[: self._room], *self._suffix]
        return SourceTokens(sentence, tokens, truncated, failed)

    def encode_target(self, texts: list[str]) -> list[list[str]]:
        """Return the tokens of target texts, without the forced prefix of hypotheses."""
        return [list(row) for row in self._target.encode(texts, out_type=str, num_threads=1)]

    def decode(self, tokens: Sequence[str]) -> str:
        """Return the text of target tokens, without the forced prefix of hypotheses."""
        start = len(self._forced) if list(tokens[: len(self._forced)]) == self._forced else 0
        text = str(self._target.decode(list(tokens[start:])))
        # OPUS-MT can also give pieces of the source language, which keep their mark of a word's start.
        return text.replace(WORD_START, " ").strip() if WORD_START in text else text
