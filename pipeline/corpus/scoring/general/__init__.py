"""The built-in English scorer: vectors of words and their trigrams, trained by scripts/train_scorer.py.

The directory has the format of `WordScorer`: `scorer.json`, which says what it was trained on, and
`vectors.safetensors`. Its card is README.md.
"""

from pathlib import Path
from typing import Final

from paraforge.base.text.language_codes import two_letters

NAME: Final = "general"
DIRECTORY: Final = Path(__file__).parent


def is_english(language: str) -> bool:
    """Return whether a language code or tag means English: ``en``, ``eng``, ``en-GB``, ``eng_Latn``,
    ``en|eng``."""
    return "en" in map(two_letters, language.split("|"))
