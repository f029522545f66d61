"""Signs that two sentences differ in meaning, of their words: what one negates, counts, names or turns round.

Words of the same stem are matched; what is left over on both sides is compared where it is. All signs are the
same when the sides are exchanged, and 0 for a sentence and itself.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from paraforge.base.compiled import compiled
from paraforge.base.text.tokens import TokenColumn
from paraforge.corpus.scoring.meaning.words import (
    AFFIXED,
    CLAUSE,
    CONTENT,
    DENIAL,
    LINK,
    NEGATION,
    NUMBER,
    PASSIVE,
    WordTable,
)

MOST_TOKENS: Final = 512
"""Tokens of a side that are looked at: the first ones of a longer text."""
NAMES: Final = (
    "negation_odd", "negations", "negation_near", "affixes", "antonyms_far", "antonyms_near",
    "antonyms_in_place", "flipped", "flipped_twice", "denials", "numbers_replaced", "numbers_alone",
    "gender", "gender_in_place",
    "person", "person_in_place", "exchange", "exchange_linked", "exchange_passive", "replaced_in_place",
    "replaced_near", "replacements", "places_exchanged", "exchanged_places",
)  # fmt: skip
"""The signs, in the order of their columns."""
_MOST: Final = 2


def signs_of(
    first: TokenColumn, second: TokenColumn, words: WordTable, directions: npt.NDArray[np.float32]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int16]]:
    """The signs of each pair.

    first, second: tokens of both sides, over one vocabulary. words: what is known of it.
    directions: vectors of length 1 of its words, (words, dimension).

    Returns signs, (pairs, len(NAMES)), each 0 to 2; and counts, (pairs, 6): negations of the first and of the
    second side, pairs of antonyms, numbers that one side has, pronouns of others, words exchanged.
    """
    signs = np.zeros((len(first), len(NAMES)), np.float32)
    counts = np.zeros((len(first), 6), np.int16)
    _signs(first.ids, first.offsets, second.ids, second.offsets, *words, directions, signs, counts)
    return signs, counts


@compiled
def _matches(one: Any, other: Any, to_other: Any, to_one: Any) -> None:
    """Match equal stems one to one: first those with an equal neighbour, then in order."""
    n, m = len(one), len(other)
    to_other[:n], to_one[:m] = -1, -1
    for strict in (True, False):
        for i in range(n):
            if to_other[i] >= 0:
                continue
            for j in range(m):
                if to_one[j] < 0 and one[i] == other[j] and (not strict or _context(one, other, i, j) > 0):
                    to_other[i], to_one[j] = j, i
                    break


@compiled
def _is_later(one: Any, other: Any) -> bool:
    """Whether a text comes behind another: a longer one, then by the first word that differs."""
    if len(one) != len(other):
        return len(one) > len(other)
    for place in range(len(one)):
        if one[place] != other[place]:
            return one[place] > other[place]
    return False


@compiled
def _context(one: Any, other: Any, i: int, j: int) -> int:
    """How many neighbours are equal; so are the ends of both sides."""
    before = one[i - 1] == other[j - 1] if i and j else i == j
    last_i, last_j = i == len(one) - 1, j == len(other) - 1
    behind = last_i == last_j and (last_i or one[i + 1] == other[j + 1])
    return int(before) + int(behind)


@compiled
def _is_opposed(one: int, other: int, base_one: int, base_other: int, opposed: Any, offsets: Any) -> int:
    """2 where one is the other with a negative affix, 1 for other antonyms, 0 for none."""
    if base_one == other or base_other == one:
        return 2
    if one < len(offsets) - 1:
        for place in range(offsets[one], offsets[one + 1]):
            if opposed[place] == other:
                return 1
    return 0


@compiled
def _numbers(words: Any, properties: Any, values: Any, magnitudes: Any, found: Any, sure: Any) -> int:
    """The numbers that a side says, and which are surely meant as numbers; gives how many."""
    count, place = 0, 0
    while place < len(words):
        word = words[place]
        place += 1
        if not properties[word] & NUMBER:
            continue
        value = values[word]
        single = np.isnan(value) or value == 1 or value == 2
        if np.isnan(value):
            value = 1.0
            place -= 1
        while place < len(words) and properties[words[place]] & NUMBER:
            following = words[place]
            if magnitudes[following] > 0:
                value *= magnitudes[following]
            elif value >= 20 and value < 100 and value % 10 == 0 and 0 < values[following] < 10:
                value += values[following]
            else:
                break
            single = single and magnitudes[following] > 0 and np.isnan(values[word])
            place += 1
        found[count], sure[count] = value, not single
        count += 1
    return count


@compiled
def _missing(found: Any, count: int, sure: Any, others: Any, other_count: int) -> tuple[int, int]:
    """How many numbers the other side has not: all, and those that are surely meant."""
    missing = surely = 0
    for place in range(count):
        there = repeats = 0
        for k in range(other_count):
            there += others[k] == found[place]
        for k in range(place):
            repeats += found[k] == found[place]
        if repeats >= there:
            missing += 1
            surely += sure[place]
    return missing, surely


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
def _exchanges(words: Any, properties: Any, stems: Any, to_other: Any, wanted: int) -> int:
    """Words of one kind that what is before them here is behind them there, and the other way round."""
    n = len(words)
    count = 0
    furthest = -1
    for p in range(n):
        j = to_other[p]
        if j >= 0 and properties[words[p]] & wanted and furthest > j:
            k = p + 1
            # Only up to the end of the clause: clauses and lists may come in any order.
            while k < n and not properties[words[k]] & CLAUSE:
                if 0 <= to_other[k] < j and properties[words[k]] & CONTENT:
                    count += 1
                    break
                k += 1
        if properties[words[p]] & CLAUSE:
            furthest = -1
        elif j >= 0 and properties[words[p]] & CONTENT:
            furthest = max(furthest, j)
    return count


@compiled
def _places(one: Any, other: Any, words: Any, properties: Any, to_other: Any) -> tuple[int, int]:
    """Of two matched words in another order: how many of their four neighbours stayed where they were, at
    most over all such words, and how many such words have two or more. A phrase that moves takes its
    neighbours along; words that are exchanged leave them."""
    n, m = len(one), len(other)
    most = count = 0
    for i in range(n):
        j = to_other[i]
        if j < 0 or not properties[words[i]] & CONTENT:
            continue
        for k in range(i + 1, n):
            there = to_other[k]
            if there < 0 or there >= j or not properties[words[k]] & CONTENT:
                continue
            listed = True
            for between in range(i + 1, k):
                listed = listed and properties[words[between]] & CLAUSE > 0
            if listed:
                continue
            before = (one[i - 1] == other[there - 1]) if i and there else i == there
            behind = one[i + 1] == other[there + 1]
            ahead = one[k - 1] == other[j - 1]
            last = (one[k + 1] == other[j + 1]) if k + 1 < n and j + 1 < m else n - k == m - j
            stayed = int(before) + int(behind) + int(ahead) + int(last)
            most = max(most, stayed)
            count += stayed > 1
    return most, count


@compiled
def _signs(
    first: Any, first_offsets: Any, second: Any, second_offsets: Any,
    keys: Any, stems: Any, properties: Any, values: Any, persons: Any, magnitudes: Any, bases: Any,
    opposed: Any, offsets: Any, directions: Any, signs: Any, counts: Any,
) -> None:  # fmt: skip
    to_b, to_a = np.empty(MOST_TOKENS, np.int64), np.empty(MOST_TOKENS, np.int64)
    numbers_a, numbers_b = np.empty(MOST_TOKENS), np.empty(MOST_TOKENS)
    sure_a, sure_b = np.empty(MOST_TOKENS, np.bool_), np.empty(MOST_TOKENS, np.bool_)
    people = np.empty(7, np.int64)
    for row in range(len(signs)):
        a = first[first_offsets[row] : first_offsets[row + 1]][:MOST_TOKENS]
        b = second[second_offsets[row] : second_offsets[row + 1]][:MOST_TOKENS]
        # Which side comes first decides nothing.
        if _is_later(keys[a], keys[b]):
            a, b, turned = b, a, True
        else:
            turned = False
        stems_a, stems_b = stems[a], stems[b]
        _matches(stems_a, stems_b, to_b, to_a)
        people[:] = 0
        negations = denials = affixed = near = passive = 0
        total_a = total_b = 0
        for i in range(len(a)):
            kind = properties[a[i]]
            people[persons[a[i]]] += 1
            total_a += (kind & NEGATION > 0) + (kind & AFFIXED > 0)
            passive += kind & PASSIVE > 0
            if kind & NEGATION:
                negations += 1
                if to_b[i] < 0:
                    near = max(near, _near(a, properties, to_b, i))
            if kind & DENIAL and to_b[i] < 0:
                denials += 1
        for j in range(len(b)):
            kind = properties[b[j]]
            people[persons[b[j]]] -= 1
            total_b += (kind & NEGATION > 0) + (kind & AFFIXED > 0)
            passive -= kind & PASSIVE > 0
            if kind & NEGATION:
                negations -= 1
                if to_a[j] < 0:
                    near = max(near, _near(b, properties, to_a, j))
            if kind & DENIAL and to_a[j] < 0:
                denials -= 1
        sign = signs[row]
        odd = negations & 1
        # Words left over on both sides: antonyms, pronouns, other words in the same place.
        far = close = in_place = gender_in_place = person_in_place = replacements = 0
        replaced = replaced_near = np.float32(0)
        for i in range(len(a)):
            if to_b[i] >= 0:
                continue
            one = stems_a[i]
            person = persons[a[i]]
            for j in range(len(b)):
                if to_a[j] >= 0:
                    continue
                if person and persons[b[j]]:
                    context = _context(stems_a, stems_b, i, j)
                    if person + persons[b[j]] == 9 and min(person, persons[b[j]]) == 4:
                        gender_in_place = max(gender_in_place, context)
                    elif person != persons[b[j]]:
                        person_in_place = max(person_in_place, context)
                    continue
                against = _is_opposed(one, stems_b[j], bases[a[i]], bases[b[j]], opposed, offsets)
                both = properties[a[i]] & properties[b[j]]
                if not against and not both & CONTENT:
                    continue
                context = _context(stems_a, stems_b, i, j)
                if against:
                    affixed += against == 2
                    far += context == 0
                    close += context == 1
                    in_place += context == 2
                    to_b[i], to_a[j] = len(b), len(a)
                    break
                if context and not both & NUMBER:
                    distance = np.float32(1)
                    for k in range(directions.shape[1]):
                        distance -= directions[a[i], k] * directions[b[j], k]
                    if context == 2:
                        replaced = max(replaced, distance)
                        replacements += int(distance > 0.6)
                    else:
                        replaced_near = max(replaced_near, distance)
        for i in range(len(a)):
            if to_b[i] == len(b):
                to_b[i] = -1
        flips = abs(negations) + far + close + in_place
        found_a = _numbers(a, properties, values, magnitudes, numbers_a, sure_a)
        found_b = _numbers(b, properties, values, magnitudes, numbers_b, sure_b)
        missing_a, surely_a = _missing(numbers_a, found_a, sure_a, numbers_b, found_b)
        missing_b, surely_b = _missing(numbers_b, found_b, sure_b, numbers_a, found_a)
        both_missing = min(missing_a, missing_b) if surely_a + surely_b else 0
        gender = min(max(people[4], 0), max(-people[5], 0)) + min(max(-people[4], 0), max(people[5], 0))
        more = fewer = 0
        for k in range(1, 7):
            more += max(people[k], 0)
            fewer += max(-people[k], 0)
        person = min(more, fewer) - gender
        exchange = _exchanges(a, properties, stems, to_b, CONTENT)
        linked = _exchanges(a, properties, stems, to_b, LINK)
        stayed, places = _places(stems_a, stems_b, a, properties, to_b)
        found = (
            odd, abs(negations), near if odd else 0, affixed, far, close, in_place,
            flips & 1, 2 if flips and not flips & 1 else 0, abs(denials),
            both_missing, abs(surely_a - surely_b), gender, gender_in_place, person, person_in_place,
            exchange, linked, min(exchange, abs(passive)),
        )  # fmt: skip
        for k in range(len(found)):
            sign[k] = min(found[k], 2)
        sign[19], sign[20], sign[21] = replaced, replaced_near, min(replacements, 2)
        sign[22], sign[23] = max(0, stayed - 1) / np.float32(1.5), min(places, 2)
        counts[row, int(turned)], counts[row, int(not turned)] = total_a, total_b
        counts[row, 2] = far + close + in_place
        counts[row, 3] = surely_a + surely_b
        counts[row, 4] = gender + person
        counts[row, 5] = places
