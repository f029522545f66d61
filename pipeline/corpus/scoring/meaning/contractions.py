"""Contractions, whichever apostrophe they have and however they are spaced."""

from typing import Final

import numpy as np

from paraforge.base.text.ragged import offsets_of
from paraforge.base.text.tokens import TokenColumn

_APOSTROPHES: Final = frozenset("'’‘ʼ")
_ENDINGS: Final = ("t", "s", "m", "d", "re", "ve", "ll")


def with_contractions(first: TokenColumn, second: TokenColumn) -> tuple[TokenColumn, TokenColumn]:
    """Both sides, over one vocabulary, with the end of a contraction as one token: `isn't` has `isn`
    and `'t`, and so have here `isn’t` and `isn ' t`, which are three tokens."""
    places = {word: place for place, word in enumerate(first.vocabulary)}
    marks = [places[mark] for mark in _APOSTROPHES if mark in places]
    if not marks:
        return first, second
    wholes = {ending: f"'{ending}" for ending in _ENDINGS if ending in places}
    vocabulary = [*first.vocabulary, *(whole for whole in wholes.values() if whole not in places)]
    places = {word: place for place, word in enumerate(vocabulary)}
    is_mark, joined = np.zeros(len(vocabulary), bool), np.full(len(vocabulary), -1, np.int32)
    is_mark[marks] = True
    for ending, whole in wholes.items():
        joined[places[ending]] = places[whole]
    sides = []
    for side in (first, second):
        begins = np.zeros(len(side.ids), bool)
        begins[:-1] = is_mark[side.ids[:-1]] & (joined[side.ids[1:]] >= 0)
        # Not the last token of one row and the first of the next.
        begins[side.offsets[1:][side.lengths > 0] - 1] = False
        ends = np.flatnonzero(begins) + 1
        ids = side.ids.copy()
        ids[ends - 1] = joined[ids[ends]]
        dropped = np.bincount(side.row_numbers[ends], minlength=len(side))
        sides.append(TokenColumn(np.delete(ids, ends), offsets_of(side.lengths - dropped), vocabulary))
    return sides[0], sides[1]
