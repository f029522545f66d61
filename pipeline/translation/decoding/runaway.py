"""Hypotheses that repeat themselves over and over, as no text does."""

from __future__ import annotations

import re
from collections.abc import Sequence

# A loop is a block of at most _LONGEST_BLOCK words or tokens, or _LONGEST_LETTERS letters, _REPEATS times or
# more. tests/translation/decoding/test_runaway.py measures how many human sentences have one.
_LONGEST_BLOCK = 8
_LONGEST_LETTERS = 12
_REPEATS = 3
_LEAST_WORDS = 5
_LEAST_TOKENS = 24
_LEAST_LETTERS = 8
_WORD = re.compile(r"\w+")
_LETTER_LOOP = re.compile(rf"([^\W\d_]{{1,{_LONGEST_LETTERS}}}?)\1{{{_REPEATS - 1},}}")


def is_runaway(text: str, tokens: Sequence[object], ended: bool = True) -> bool:
    """Whether a hypothesis repeats itself as no text does, whatever engine made it.

    It does if the same letters come three times or more within a word, over eight letters or more
    ("necktitititit"), the same words over five words or more, or the same tokens over 24 tokens or more;
    blocks without a letter or digit do not count, for a line of dashes is no fault. At the length cap it is
    enough that the second half is a block of at most eight tokens over and over.

    text: detokenised hypothesis. tokens: target tokens without end of sentence.
    ended: whether the engine reached end of sentence by itself.
    """
    if not ended and _repeats_to_the_end(tokens):
        return True
    if any(match.end() - match.start() >= _LEAST_LETTERS for match in _LETTER_LOOP.finditer(text)):
        return True
    return _has_loop(_WORD.findall(text), _LEAST_WORDS) or _has_loop(tokens, _LEAST_TOKENS)


def _repeats_to_the_end(tokens: Sequence[object]) -> bool:
    tail = list(tokens[len(tokens) // 2 :])
    longest = min(_LONGEST_BLOCK, len(tail) // 2)
    return any(tail[period:] == tail[:-period] for period in range(1, longest + 1))


def _has_loop(items: Sequence[object], least: int) -> bool:
    """Whether a block of items comes three times or more in a row, and over ``least`` items or more."""
    for period in range(1, min(_LONGEST_BLOCK, len(items) // _REPEATS) + 1):
        wanted = max(_REPEATS * period, least) - period
        run = 0
        for place in range(period, len(items)):
            run = run + 1 if items[place] == items[place - period] else 0
            if run >= wanted:
                block = items[place - period : place]
                if any(letter.isalnum() for item in block for letter in str(item)):
                    return True
    return False
