"""Which words of two sentences differ, for showing them side by side."""

from __future__ import annotations

import re
from collections import Counter

Pieces = list[tuple[str, bool]]
"""A text cut into pieces, each with whether it is a word that the other side lacks."""

_WORD = re.compile(r"\w+(?:['’]\w+)*")


def marked_words(first: str, second: str) -> tuple[Pieces, Pieces]:
    """Cut both texts into pieces; words are compared without case and counted: a second 'the' may differ."""
    counts = [Counter(word.group().lower() for word in _WORD.finditer(text)) for text in (first, second)]
    return _marked(first, counts[1]), _marked(second, counts[0])


def _marked(text: str, others: Counter[str]) -> Pieces:
    left = others.copy()
    pieces: Pieces = []
    position = 0
    for word in _WORD.finditer(text):
        if word.start() > position:
            pieces.append((text[position : word.start()], False))
        key = word.group().lower()
        pieces.append((word.group(), left[key] <= 0))
        left[key] -= 1
        position = word.end()
    if position < len(text):
        pieces.append((text[position:], False))
    return pieces
