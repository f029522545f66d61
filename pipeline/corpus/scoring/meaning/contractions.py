"""Contractions, whichever apostrophe they have and however they are spaced; and `no.` before a number."""

from typing import Any

import numpy as np
import numpy.typing as npt

from paraforge.base.compiled import compiled
from paraforge.base.text.tokens import TokenColumn
from paraforge.corpus.scoring.meaning.words import APOSTROPHES, ENDINGS, NUMBER

_MARKS, _JOINED = len(APOSTROPHES), len(ENDINGS)
_NO, _POINT, _NUMBER = (_MARKS + 2 * _JOINED + place for place in range(3))


def with_contractions(side: TokenColumn, properties: npt.NDArray[np.uint8]) -> TokenColumn:
    """A side with the end of a contraction as one token: `isn't` has `isn` and `'t`, and so have here `isn’t`
    and `isn ' t`, which are three tokens. `no . 5` becomes `no. 5`.

    side: its tokens are rows of a :class:`~paraforge.corpus.scoring.meaning.words.WordBook`.
    properties: of its words, see :class:`~paraforge.corpus.scoring.meaning.words.WordTable`.
    """
    ids, offsets = np.empty_like(side.ids), np.zeros_like(side.offsets)
    size = _join(side.ids, side.offsets, properties, ids, offsets)
    return TokenColumn(ids[:size], offsets, side.vocabulary)


@compiled
def _join(ids: Any, offsets: Any, properties: Any, found: Any, found_offsets: Any) -> int:
    """Write the tokens with one in place of a mark and an ending, and where rows begin; gives how many."""
    count = 0
    for row in range(len(offsets) - 1):
        place, end = offsets[row], offsets[row + 1]
        while place < end:
            token = ids[place]
            if token < _MARKS and place + 1 < end and _MARKS <= ids[place + 1] < _MARKS + _JOINED:
                place += 1
                token = ids[place] + _JOINED
            elif token == _NO and place + 2 < end and ids[place + 1] == _POINT:
                numbered = properties[ids[place + 2]] & NUMBER > 0
                token, place = _NUMBER if numbered else token, place + numbered
            found[count] = token
            count += 1
            place += 1
        found_offsets[row + 1] = count
    return count
