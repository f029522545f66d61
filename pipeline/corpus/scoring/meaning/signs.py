"""Signs that two sentences differ in meaning, of their words: what one negates, counts, names or turns round.

Words of the same stem are matched; what is left over on both sides is compared where it is. All signs are the
same when the sides are exchanged, and 0 for a sentence and itself.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
from numba.cpython.unsafe import numbers

from paraforge.base.compiled import compiled
from paraforge.base.text.tokens import TokenColumn
from paraforge.corpus.scoring.meaning.numbers import missing_numbers
from paraforge.corpus.scoring.meaning.order import cosine, exchanges_of
from paraforge.corpus.scoring.meaning.sides import MOST_TOKENS, sides_of
from paraforge.corpus.scoring.meaning.words import (
    AFFIXED,
    CONTENT,
    DENIAL,
    LINK,
    NEGATION,
    NUMBER,
    Directions,
    WordTable,
)

_trailing_zeros: Any = numbers.trailing_zeros
NAMES: Final = (
    "negation_odd", "negations", "negation_near", "affixes", "antonyms_far", "antonyms_near",
    "antonyms_in_place", "flipped", "flipped_twice", "denials", "numbers_replaced", "numbers_alone",
    "gender", "gender_in_place",
    "person", "person_in_place", "exchange", "exchange_linked", "exchange_passive", "replaced_in_place",
    "replaced_near", "replacements", "places_exchanged", "exchanged_places", "place_taken", "places_taken",
    "turns", "left_over",
)  # fmt: skip
"""The signs, in the order of their columns. The last is none by itself: it says how much else differs."""
_LAST: Final = 255
_DENYING: Final = NEGATION | AFFIXED | DENIAL
_BEGIN, _END = -2, -3


def signs_of(
    first: TokenColumn,
    second: TokenColumn,
    rows: npt.NDArray[np.int32],
    words: WordTable,
    directions: Directions,
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int16]]:
    """The signs of each pair.

    first, second: tokens of both sides, over one vocabulary. rows, words, directions: of its words, see
    :meth:`~paraforge.corpus.scoring.meaning.words.WordBook.numbered`.

    Returns signs, (pairs, len(NAMES)), each 0 to 2; and counts, (pairs, 6): negations of the first and of the
    second side, pairs of antonyms, numbers that one side has, pronouns of others, words exchanged.
    """
    signs = np.zeros((len(first), len(NAMES)), np.float32)
    counts = np.zeros((len(first), 6), np.int16)
    earlier, later, turned = sides_of(first, second, rows, words)
    matches = np.empty(len(earlier.ids), np.int64)
    crossed, numbered = np.zeros((2, len(first)), np.bool_)
    _signs(
        earlier.ids, earlier.offsets, later.ids, later.offsets, *words, *directions, matches, crossed,
        numbered, signs, counts,
    )  # fmt: skip
    counts[turned, :2] = counts[turned, 1::-1]
    numbers_missing = missing_numbers(earlier, later, numbered, words)
    exchanges = exchanges_of(earlier, later, crossed, words, matches, directions)
    signs[:, 10:12], counts[:, 3] = numbers_missing[:, :2].clip(0, 2), numbers_missing[:, 2]
    signs[:, 16:19], counts[:, 5] = exchanges[:, :3].clip(0, 2), exchanges[:, 4]
    signs[:, 22] = (exchanges[:, 3] - 1).clip(0) / np.float32(1.5)
    signs[:, 23] = exchanges[:, 4].clip(0, 2)
    signs[:, 24], signs[:, 25] = exchanges[:, 5].clip(0, 1), exchanges[:, 6].clip(0, 2)
    signs[:, 26] = (exchanges[:, 7] / 2).clip(0, 2)
    # What is larger here is smaller there: an antonym and an exchange leave the meaning as it was.
    converse = (signs[:, 6] == 1) & (counts[:, 2] == 1) & (signs[:, 0] == 0) & (exchanges[:, 4] > 0)
    signs[np.ix_(converse, [*range(3, 9), *range(16, 19), *range(22, 27)])] = 0
    return signs, counts


@compiled
def _matches(one: Any, other: Any, to_other: Any, to_one: Any, heads: Any, following: Any) -> int:
    """Match equal stems one to one, first those with an equal neighbour, then in order; gives how many of
    `one` are left over.

    one, other: with _BEGIN before and _END behind them. heads: -1 in each place, as it is left. following:
    room for twice as many numbers as there are stems.
    """
    n, m = len(one) - 2, len(other) - 2
    # Stems of the same last digits, from the first to the last.
    for j in range(m - 1, -1, -1):
        digits = other[j + 1] & _LAST
        following[0, j], heads[digits] = heads[digits], j
        to_one[j] = -1
    rest = following[1]
    left = 0
    for i in range(n):
        stem = one[i + 1]
        j = heads[stem & _LAST]
        while j >= 0 and not (
            stem == other[j + 1] and to_one[j] < 0 and (one[i] == other[j] or one[i + 2] == other[j + 2])
        ):
            j = following[0, j]
        to_other[i] = j
        if j >= 0:
            to_one[j] = i
        else:
            rest[left] = i
            left += 1
    alone = left
    for place in range(left):
        stem = one[rest[place] + 1]
        j = heads[stem & _LAST]
        while j >= 0 and not (stem == other[j + 1] and to_one[j] < 0):
            j = following[0, j]
        if j >= 0:
            to_other[rest[place]], to_one[j] = j, rest[place]
            alone -= 1
    for j in range(m):
        heads[other[j + 1] & _LAST] = -1
    return alone


@compiled
def _near(words: Any, properties: Any, to_other: Any, i: int) -> int:
    """On how many sides of a word the next word that names something is matched."""
    found = 0
    for step in (-1, 1):
        k = i + step
        while 0 <= k < len(words) and not properties[words[k]] & CONTENT:
            k += step
        found += 0 <= k < len(words) and to_other[k] >= 0
    return found


@compiled
def _note(tables: Any, lonely: Any, place: int, bit: Any) -> None:
    """Add the bit of a word that is left over to the words of the same last digits; forget all where it is 0.

    tables: words as bits, 64 at once, by the last digits of the stem before, the stem behind, their base and
    their stem, and in the last row all pronouns. lonely: see :func:`_signs`.
    """
    block = place // 64
    before, behind, base = lonely[place, 5] & _LAST, lonely[place, 6] & _LAST, lonely[place, 2]
    stem = lonely[place, 1] & _LAST
    tables[block, 0, before] = tables[block, 0, before] | bit if bit else bit
    tables[block, 1, behind] = tables[block, 1, behind] | bit if bit else bit
    if base >= 0:
        base &= _LAST
        tables[block, 2, base] = tables[block, 2, base] | bit if bit else bit
    tables[block, 3, stem] = tables[block, 3, stem] | bit if bit else bit
    if lonely[place, 3]:
        tables[block, 4, 0] = tables[block, 4, 0] | bit if bit else bit


@compiled
def _signs(
    first: Any, first_offsets: Any, second: Any, second_offsets: Any,
    keys: Any, stems: Any, properties: Any, values: Any, persons: Any, magnitudes: Any, bases: Any,
    opposed: Any, offsets: Any, directions: Any, scales: Any, matches: Any, crossed: Any,
    numbered: Any, signs: Any, counts: Any,
) -> None:  # fmt: skip
    to_a = np.empty(MOST_TOKENS, np.int64)
    room_a, room_b = np.empty(MOST_TOKENS + 2, np.int32), np.empty(MOST_TOKENS + 2, np.int32)
    room_a[0] = room_b[0] = _BEGIN
    people, heads = np.empty(7, np.int64), np.full(_LAST + 1, -1, np.int32)
    following = np.empty((2, MOST_TOKENS), np.int32)
    # Of each word that is left over: its place, stem, base, person, properties, and the stems beside it.
    lonely = np.empty((MOST_TOKENS, 7), np.int64)
    tables = np.zeros((MOST_TOKENS // 64, 5, _LAST + 1), np.uint64)
    distances = np.zeros(3, np.float32)
    for row in range(len(signs)):
        a = first[first_offsets[row] : first_offsets[row + 1]]
        b = second[second_offsets[row] : second_offsets[row + 1]]
        to_b = matches[first_offsets[row] : first_offsets[row + 1]]
        stems_a, stems_b = room_a[: len(a) + 2], room_b[: len(b) + 2]
        for i in range(len(a)):
            stems_a[i + 1] = stems[a[i]]
        for j in range(len(b)):
            stems_b[j + 1] = stems[b[j]]
        stems_a[len(a) + 1] = stems_b[len(b) + 1] = _END
        loose = _matches(stems_a, stems_b, to_b, to_a, heads, following)
        people[:] = 0
        negations = denials = affixed = near = 0
        total_a = total_b = left_a = left_b = 0
        furthest = -1
        for i in range(len(a)):
            kind, person = properties[a[i]], persons[a[i]]
            numbered[row] |= kind & NUMBER > 0
            if to_b[i] >= 0 and kind & (CONTENT | LINK):
                crossed[row] |= to_b[i] < furthest
                furthest = max(furthest, to_b[i])
            if person:
                people[person] += 1
            left_a += kind & CONTENT > 0 and to_b[i] < 0
            if kind & _DENYING:
                total_a += (kind & NEGATION > 0) + (kind & AFFIXED > 0)
                negations += kind & NEGATION > 0
                denials += kind & DENIAL > 0 and to_b[i] < 0
                if kind & NEGATION and to_b[i] < 0:
                    near = max(near, _near(a, properties, to_b, i))
        for j in range(len(b)):
            kind, person = properties[b[j]], persons[b[j]]
            numbered[row] |= kind & NUMBER > 0
            if person:
                people[person] -= 1
            left_b += kind & CONTENT > 0 and to_a[j] < 0
            if kind & _DENYING:
                total_b += (kind & NEGATION > 0) + (kind & AFFIXED > 0)
                negations -= kind & NEGATION > 0
                denials -= kind & DENIAL > 0 and to_a[j] < 0
                if kind & NEGATION and to_a[j] < 0:
                    near = max(near, _near(b, properties, to_a, j))
        sign = signs[row]
        odd = negations & 1
        # Words left over on both sides: antonyms, pronouns, other words in the same place.
        far = close = in_place = gender_in_place = person_in_place = 0
        distances[:] = 0
        left = 0
        for j in range(len(b) if loose else 0):
            if to_a[j] < 0:
                word = b[j]
                lonely[left, 0], lonely[left, 1], lonely[left, 2] = j, stems_b[j + 1], bases[word]
                lonely[left, 3], lonely[left, 4] = persons[word], properties[word]
                lonely[left, 5], lonely[left, 6] = stems_b[j], stems_b[j + 2]
                _note(tables, lonely, left, np.uint64(1) << np.uint64(left & 63))
                left += 1
        for i in range(len(a)):
            if to_b[i] >= 0:
                continue
            before, one, behind = stems_a[i], stems_a[i + 1], stems_a[i + 2]
            base, kind, person = bases[a[i]], properties[a[i]], persons[a[i]]
            low = high = 0
            if one < len(offsets) - 1:
                low, high = offsets[one], offsets[one + 1]
            for block in range((left + 63) // 64):
                candidates = tables[block, 0, before & _LAST] | tables[block, 1, behind & _LAST]
                candidates |= tables[block, 2, one & _LAST]
                if base >= 0:
                    candidates |= tables[block, 3, base & _LAST]
                for k in range(low, high):
                    candidates |= tables[block, 3, opposed[k] & _LAST]
                if person:
                    candidates |= tables[block, 4, 0]
                while candidates:
                    there = 64 * block + np.int64(_trailing_zeros(candidates))
                    candidates &= candidates - np.uint64(1)
                    j = lonely[there, 0]
                    if to_a[j] >= 0:
                        continue
                    context = int(before == lonely[there, 5]) + int(behind == lonely[there, 6])
                    other_person = lonely[there, 3]
                    if person and other_person:
                        if person + other_person == 9 and min(person, other_person) == 4:
                            gender_in_place = max(gender_in_place, context)
                        elif person != other_person:
                            person_in_place = max(person_in_place, context)
                        continue
                    # 2 where one is the other with a negative affix, 1 for other antonyms.
                    against = 0
                    if base == lonely[there, 1] or lonely[there, 2] == one:
                        against = 2
                    else:
                        for k in range(low, high):
                            against |= int(opposed[k] == lonely[there, 1])
                    if against:
                        affixed += against == 2
                        far += context == 0
                        close += context == 1
                        in_place += context == 2
                        to_b[i], to_a[j] = len(b), len(a)
                        break
                    both = kind & lonely[there, 4]
                    if context and both & CONTENT and not both & NUMBER:
                        distance = np.float32(1) - cosine(a[i], b[j], directions, scales)
                        distances[context] = max(distances[context], distance)
                        distances[0] += context == 2 and distance > 0.6
                if to_b[i] >= 0:
                    break
        for place in range(left):
            _note(tables, lonely, place, np.uint64(0))
        for i in range(len(a)):
            if to_b[i] == len(b):
                to_b[i] = -1
        flips = abs(negations) + far + close + in_place
        gender = min(max(people[4], 0), max(-people[5], 0)) + min(max(-people[4], 0), max(people[5], 0))
        more = fewer = 0
        for k in range(1, 7):
            more += max(people[k], 0)
            fewer += max(-people[k], 0)
        person = min(more, fewer) - gender
        sign[0], sign[1], sign[2] = odd, min(abs(negations), 2), min(near, 2) if odd else 0
        sign[3], sign[4], sign[5], sign[6] = min(affixed, 2), min(far, 2), min(close, 2), min(in_place, 2)
        sign[7], sign[8] = flips & 1, 2 if flips and not flips & 1 else 0
        sign[9] = min(abs(denials), 2)
        sign[12], sign[13], sign[14], sign[15] = (
            min(gender, 2),
            gender_in_place,
            min(person, 2),
            person_in_place,
        )
        sign[19], sign[20], sign[21] = distances[2], distances[1], min(distances[0], 2)
        sign[27] = min(left_a, left_b, 8) / 4
        counts[row, 0], counts[row, 1] = total_a, total_b
        counts[row, 2] = far + close + in_place
        counts[row, 4] = gender + person
