"""The built-in English scorer: vectors of words and of their trigrams, trained by scripts/train_scorer.py.

It is a directory as `WordScorer` writes it: `scorer.json`, which says what it was trained on, and
`vectors.safetensors`. Its card is README.md.
"""

import re
from pathlib import Path
from typing import Final

NAME: Final = "general"
DIRECTORY: Final = Path(__file__).parent


def is_english(language: str) -> bool:
    """Whether a language code or tag means English: ``en``, ``eng``, ``en-GB``, ``eng_Latn``, ``en|eng``."""
    codes = (re.split(r"[^a-z]", code.strip().lower())[0] for code in language.split("|"))
    return any(code in ("en", "eng") for code in codes)
