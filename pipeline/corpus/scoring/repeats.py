"""Finds what is repeated at once: letters within a word, words within a sentence."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from paraforge.base.compiled import compiled
from paraforge.base.text.tokens import TokenColumn

LONGEST_PHRASE: Final = 8
"""Tokens of the longest phrase that is looked for."""
LONGEST_PART: Final = 12
"""Letters of the longest part of a word that is looked for."""


def repeated_tokens(tokens: TokenColumn) -> npt.NDArray[np.bool_]:
    """Whether each token belongs to a phrase of at most eight tokens that repeats the one just before it."""
    return np.asarray(_repeated_tokens(tokens.ids, tokens.offsets, LONGEST_PHRASE))


def repeated_letters(words: Any) -> npt.NDArray[np.int64]:
    """How many characters of each word, of a pyarrow string array, repeat those just before them: (words,).

    Parts of four letters or more count from the second time, shorter ones from the third and single letters
    from the fourth: "couscous" has four, "Mississippi" and "murmur" none. The longest repetition counts.
    """
    texts = words.to_pylist()
    characters = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    offsets = np.cumsum([0, *map(len, texts)])
    return np.asarray(_repeated_letters(characters, offsets, LONGEST_PART))


@compiled
def _repeated_tokens(ids: Any, offsets: Any, longest: int) -> Any:
    repeated = np.zeros(len(ids), dtype=np.bool_)
    for row in range(len(offsets) - 1):
        first, last = offsets[row], offsets[row + 1]
        for period in range(1, min(longest, (last - first) // 2) + 1):
            run = 0
            for place in range(first + period, last):
                run = run + 1 if ids[place] == ids[place - period] else 0
                if run == period:
                    repeated[place - period + 1 : place + 1] = True
                elif run > period:
                    repeated[place] = True
    return repeated


@compiled
def _repeated_letters(characters: Any, offsets: Any, longest: int) -> Any:
    repeated = np.zeros(len(offsets) - 1, dtype=np.int64)
    for word in range(len(repeated)):
        first, last = offsets[word], offsets[word + 1]
        for period in range(1, min(longest, (last - first) // 2) + 1):
            least = period if period >= 4 else 2 * period if period >= 2 else 3
            run = 0
            for place in range(first + period, last):
                run = run + 1 if characters[place] == characters[place - period] else 0
                if run >= least:
                    repeated[word] = max(repeated[word], run)
    return repeated
