"""From sentences to the tokens that a model reads, and from the tokens that it gives to text."""

from __future__ import annotations

from collections.abc import Sequence

from paraforge.translation.decoding.batching import SourceTokens
from paraforge.translation.decoding.translator import DecodingOptions
from paraforge.translation.models.model import TranslationModel
from paraforge.translation.models.subwords import BPE, open_subwords


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
        self._prefix = list(model.source_prefix)
        self._suffix = list(model.source_suffix)
        self._forced = list(model.target_prefix)
        maximum = min(options.maximum_source_tokens, model.maximum_source_tokens)
        # One place is for end-of-sentence.
        self._room = maximum - 1 - len(self._prefix) - len(self._suffix)

    def encode(self, sentences: list[str]) -> list[SourceTokens]:
        """Tokens of each sentence, tags included; none where nothing is left to translate."""
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
        return SourceTokens(sentence, [*self._prefix, *pieces[: self._room], *self._suffix], truncated)

    def encode_target(self, texts: list[str]) -> list[list[str]]:
        """Tokens of texts of the target side, without those that every hypothesis is made to begin with."""
        return [list(row) for row in self._target.encode(texts, out_type=str, num_threads=1)]

    def decode(self, tokens: Sequence[str]) -> str:
        """Text of target tokens, without the tokens that every hypothesis is made to begin with."""
        start = len(self._forced) if list(tokens[: len(self._forced)]) == self._forced else 0
        return str(self._target.decode(list(tokens[start:])))
