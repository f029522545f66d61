"""Both sides of pairs as the signs read them: contractions in one form, and the sides in an order that does
not depend on which is which."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from paraforge.base.compiled import compiled
from paraforge.base.text.tokens import TokenColumn
from paraforge.corpus.scoring.meaning.words import APOSTROPHES, CLAUSE, ENDINGS, NUMBER, WordTable

MOST_TOKENS: Final = 512
"""Tokens of a side that are looked at: the first ones of a longer text."""
_MARKS, _JOINED = len(APOSTROPHES), len(ENDINGS)
_NO, _POINT, _NUMBER, _ANSWER = (_MARKS + 2 * _JOINED + place for place in range(4))


def sides_of(
    first: TokenColumn, second: TokenColumn, rows: npt.NDArray[np.int32], words: WordTable
) -> tuple[TokenColumn, TokenColumn, npt.NDArray[np.bool_]]:
    """Both sides of each pair, in an order of their own, and whether they are turned; tokens are rows of
    `words`.

    The end of a contraction is one token: `isn't` has `isn` and `'t`, and so have here `isn’t` and `isn ' t`,
    which are three tokens. `no . 5` becomes `no. 5`, and the answer of `no , I do` is no negation.

    rows, words: of the vocabulary, see :meth:`~paraforge.corpus.scoring.meaning.words.WordBook.numbered`.
    """
    turned = np.zeros(len(first), np.bool_)
    # Room for a side in the other's place.
    ids = np.empty((2, len(first.ids) + len(second.ids)), np.int32)
    offsets = np.zeros((2, len(first) + 1), np.int64)
    _read(
        first.ids, first.offsets, second.ids, second.offsets, rows, words.properties, words.keys, ids,
        offsets, turned,
    )  # fmt: skip
    earlier, later = (
        TokenColumn(ids[side, : offsets[side, -1]], offsets[side], first.vocabulary) for side in (0, 1)
    )
    return earlier, later, turned


@compiled
def _read(
    first: Any, first_offsets: Any, second: Any, second_offsets: Any, rows: Any, properties: Any, keys: Any,
    found: Any, offsets: Any, turned: Any,
) -> None:  # fmt: skip
    """The shorter side comes first, and of sides of one size the one whose first word that differs is
    earlier."""
    for row in range(len(turned)):
        one, other = found[0, offsets[0, row] :], found[1, offsets[1, row] :]
        size = _join(first[first_offsets[row] : first_offsets[row + 1]], rows, properties, one)
        other_size = _join(second[second_offsets[row] : second_offsets[row + 1]], rows, properties, other)
        turned[row] = size > other_size
        if size == other_size:
            for place in range(size):
                if keys[one[place]] != keys[other[place]]:
                    turned[row] = keys[one[place]] > keys[other[place]]
                    break
        if turned[row]:
            for place in range(size):
                one[place], other[place] = other[place], one[place]
            size, other_size = other_size, size
        offsets[0, row + 1], offsets[1, row + 1] = offsets[0, row] + size, offsets[1, row] + other_size


@compiled
def _join(ids: Any, rows: Any, properties: Any, found: Any) -> int:
    """Write a side's tokens with one in place of a mark and an ending; gives how many."""
    count = place = 0
    while place < len(ids) and count < MOST_TOKENS:
        token = rows[ids[place]]
        if token < _MARKS and place + 1 < len(ids) and _MARKS <= rows[ids[place + 1]] < _MARKS + _JOINED:
            place += 1
            token = rows[ids[place]] + _JOINED
        elif token == _NO and place + 2 < len(ids):
            behind = properties[rows[ids[place + 2]]]
            if rows[ids[place + 1]] == _POINT and behind & NUMBER:
                token, place = _NUMBER, place + 1
            elif properties[rows[ids[place + 1]]] & CLAUSE and not behind & CLAUSE:
                begins = place == 0 or properties[rows[ids[place - 1]]] & CLAUSE > 0
                token = _ANSWER if begins else token
        found[count] = token
        count += 1
        place += 1
    return count
