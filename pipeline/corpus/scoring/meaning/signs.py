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
_TOGETHER: Final = 8
_LAST: Final = 255
_BEGIN, _END = -2, -3


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
def _matches(one: Any, other: Any, to_other: Any, to_one: Any, heads: Any, following: Any) -> None:
    """Match equal stems one to one: first those with an equal neighbour, then in order.

    heads: -1 in each place, as it is left. following: room for as many numbers as there are stems.
    """
    n, m = len(one), len(other)
    to_other[:n], to_one[:m] = -1, -1
    # Stems of the same last digits, from the first to the last.
    for j in range(m - 1, -1, -1):
        digits = other[j] & _LAST
        following[j], heads[digits] = heads[digits], j
    for strict in (True, False):
        for i in range(n):
            if to_other[i] >= 0:
                continue
            j = heads[one[i] & _LAST]
            while j >= 0:
                if one[i] == other[j] and to_one[j] < 0 and (not strict or _context(one, other, i, j) > 0):
                    to_other[i], to_one[j] = j, i
                    break
                j = following[j]
    for j in range(m):
        heads[other[j] & _LAST] = -1


@compiled
def _is_later(one: Any, other: Any, keys: Any) -> bool:
    """Whether a text comes behind another: a longer one, then by the first word that differs."""
    if len(one) != len(other):
        return len(one) > len(other)
    for place in range(len(one)):
        if keys[one[place]] != keys[other[place]]:
            return keys[one[place]] > keys[other[place]]
    return False


@compiled
def _context(one: Any, other: Any, i: int, j: int) -> int:
    """How many neighbours are equal; so are the ends of both sides."""
    before = one[i - 1] == other[j - 1] if i and j else i == j
    last_i, last_j = i == len(one) - 1, j == len(other) - 1
    behind = last_i == last_j and (last_i or one[i + 1] == other[j + 1])
    return int(before) + int(behind)


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
        listed = True
        for k in range(i + 1, n):
            # Up to here there are only commas: a list, which may come in any order.
            listed = listed and (k == i + 1 or properties[words[k - 1]] & CLAUSE > 0)
            there = to_other[k]
            if listed or there < 0 or there >= j or not properties[words[k]] & CONTENT:
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
def _add_distances(directions: Any, compared: Any, count: int, found: Any) -> None:
    """Distances of words in the same place.

    compared: word, other word and :func:`_context`, (_TOGETHER, 3); the first `count` rows hold.
    found: how many words of context 2 are far apart, and the greatest distances of contexts 1 and 2.
    """
    # Several sums at once: each is taken in order, so it waits for itself, but not for the others.
    for first in range(0, count, 4):
        p, q, r, s = (
            compared[first, 0],
            compared[first + 1, 0],
            compared[first + 2, 0],
            compared[first + 3, 0],
        )
        v, w, x, y = (
            compared[first, 1],
            compared[first + 1, 1],
            compared[first + 2, 1],
            compared[first + 3, 1],
        )
        one = two = three = four = np.float32(1)
        for k in range(directions.shape[1]):
            one -= directions[p, k] * directions[v, k]
            two -= directions[q, k] * directions[w, k]
            three -= directions[r, k] * directions[x, k]
            four -= directions[s, k] * directions[y, k]
        for place, distance in enumerate((one, two, three, four)):
            if first + place < count:
                context = compared[first + place, 2]
                found[context] = max(found[context], distance)
                found[0] += context == 2 and distance > 0.6


@compiled
def _note(table: Any, about: Any, bit: Any) -> None:
    """Add a word that is left over to the words of the same last digits, or forget them where ``bit`` is 0.

    table: words as bits, by the last digits of the stem before, the stem behind, their base and their stem,
    and in the last row all pronouns. about: see :func:`_signs`.
    """
    for row, key in enumerate((about[5], about[6], about[2], about[1])):
        if row != 2 or key >= 0:
            table[row, key & _LAST] = table[row, key & _LAST] | bit if bit else bit
    if about[3] or not bit:
        table[4, 0] = table[4, 0] | bit if bit else bit


@compiled
def _signs(
    first: Any, first_offsets: Any, second: Any, second_offsets: Any,
    keys: Any, stems: Any, properties: Any, values: Any, persons: Any, magnitudes: Any, bases: Any,
    opposed: Any, offsets: Any, directions: Any, signs: Any, counts: Any,
) -> None:  # fmt: skip
    to_b, to_a = np.empty(MOST_TOKENS, np.int64), np.empty(MOST_TOKENS, np.int64)
    numbers_a, numbers_b = np.empty(MOST_TOKENS), np.empty(MOST_TOKENS)
    sure_a, sure_b = np.empty(MOST_TOKENS, np.bool_), np.empty(MOST_TOKENS, np.bool_)
    room_a, room_b = np.empty(MOST_TOKENS, np.int32), np.empty(MOST_TOKENS, np.int32)
    people, heads = np.empty(7, np.int64), np.full(_LAST + 1, -1, np.int64)
    following = np.empty(MOST_TOKENS, np.int64)
    # Of each word that is left over: its place, stem, base, person, properties, and the stems beside it.
    lonely = np.empty((MOST_TOKENS, 7), np.int64)
    tables = np.zeros((MOST_TOKENS // 64, 5, _LAST + 1), np.uint64)
    compared, distances = np.zeros((_TOGETHER, 3), np.int64), np.zeros(3, np.float32)
    for row in range(len(signs)):
        a = first[first_offsets[row] : first_offsets[row + 1]][:MOST_TOKENS]
        b = second[second_offsets[row] : second_offsets[row + 1]][:MOST_TOKENS]
        # Which side comes first decides nothing.
        turned = _is_later(a, b, keys)
        if turned:
            a, b = b, a
        stems_a, stems_b = room_a[: len(a)], room_b[: len(b)]
        for i in range(len(a)):
            stems_a[i] = stems[a[i]]
        for j in range(len(b)):
            stems_b[j] = stems[b[j]]
        _matches(stems_a, stems_b, to_b, to_a, heads, following)
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
        far = close = in_place = gender_in_place = person_in_place = 0
        distances[:] = 0
        waiting = 0
        left = 0
        for j in range(len(b)):
            if to_a[j] < 0:
                about = lonely[left]
                about[0], about[1], about[2], about[3] = j, stems_b[j], bases[b[j]], persons[b[j]]
                about[4] = properties[b[j]]
                about[5] = stems_b[j - 1] if j else _BEGIN
                about[6] = stems_b[j + 1] if j + 1 < len(b) else _END
                _note(tables[left // 64], about, np.uint64(1) << np.uint64(left & 63))
                left += 1
        for i in range(len(a)):
            if to_b[i] >= 0:
                continue
            one, base, kind = stems_a[i], bases[a[i]], properties[a[i]]
            before = stems_a[i - 1] if i else _BEGIN
            behind = stems_a[i + 1] if i + 1 < len(a) else _END
            person = persons[a[i]]
            low = high = 0
            if one < len(offsets) - 1:
                low, high = offsets[one], offsets[one + 1]
            for block in range((left + 63) // 64):
                table = tables[block]
                candidates = table[0, before & _LAST] | table[1, behind & _LAST] | table[2, one & _LAST]
                if base >= 0:
                    candidates |= table[3, base & _LAST]
                for k in range(low, high):
                    candidates |= table[3, opposed[k] & _LAST]
                if person:
                    candidates |= table[4, 0]
                place = 64 * block - 1
                while candidates:
                    place += 1
                    candidate = candidates & np.uint64(1)
                    candidates >>= np.uint64(1)
                    about = lonely[place]
                    if not candidate or to_a[about[0]] >= 0:
                        continue
                    context = int(before == about[5]) + int(behind == about[6])
                    if person and about[3]:
                        if person + about[3] == 9 and min(person, about[3]) == 4:
                            gender_in_place = max(gender_in_place, context)
                        elif person != about[3]:
                            person_in_place = max(person_in_place, context)
                        continue
                    # 2 where one is the other with a negative affix, 1 for other antonyms.
                    against = 0
                    if base == about[1] or about[2] == one:
                        against = 2
                    else:
                        for k in range(low, high):
                            against |= int(opposed[k] == about[1])
                    if against:
                        affixed += against == 2
                        far += context == 0
                        close += context == 1
                        in_place += context == 2
                        to_b[i], to_a[about[0]] = len(b), len(a)
                        break
                    both = kind & about[4]
                    if context and both & CONTENT and not both & NUMBER:
                        compared[waiting, 0], compared[waiting, 1] = a[i], b[about[0]]
                        compared[waiting, 2] = context
                        waiting += 1
                        if waiting == len(compared):
                            _add_distances(directions, compared, waiting, distances)
                            waiting = 0
                if to_b[i] >= 0:
                    break
        for place in range(left):
            _note(tables[place // 64], lonely[place], np.uint64(0))
        _add_distances(directions, compared, waiting, distances)
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
        sign[19], sign[20], sign[21] = distances[2], distances[1], min(distances[0], 2)
        sign[22], sign[23] = max(0, stayed - 1) / np.float32(1.5), min(places, 2)
        counts[row, int(turned)], counts[row, int(not turned)] = total_a, total_b
        counts[row, 2] = far + close + in_place
        counts[row, 3] = surely_a + surely_b
        counts[row, 4] = gender + person
        counts[row, 5] = places
