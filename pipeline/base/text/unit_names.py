"""Names of the units that sentences are cut into, without what cutting needs."""

from __future__ import annotations

from typing import Final, Literal

Unit = Literal["word", "trigram", "bare_word", "bare_trigram", "word_trigram", "sentencepiece"]
WORD: Final = "word"
WORD_UNITS: Final = (WORD, "bare_word")
"""Units that are words, so that a table of their vectors is one of word vectors."""
