"""Finds signs that two sentences differ in meaning (negations, antonyms, numbers and persons of only one
side), and combines them into a score.

Words with the same stem are matched, and the remaining words of both sides are compared. The signs are
symmetric, and 0 for a sentence and itself.
"""

from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from paraforge.base.compiled import compiled
from paraforge.base.files import read_json
from paraforge.base.text.tokens import TokenColumn
from paraforge.corpus.scoring.meaning.words import (
    AFFIXED,
    APOSTROPHES,
    CLAUSE,
    CONTENT,
    DENIAL,
    ENDINGS,
    NEGATION,
    NUMBER,
    WordTable,
    missing_numbers,
    said_numbers,
)

NAMES: Final = (
    "negation_odd", "negations", "negation_near", "affixes", "antonyms", "antonyms_near", "antonyms_in_place",
    "flipped", "flipped_twice", "denials", "numbers", "gender", "gender_in_place", "person",
    "person_in_place", "replaced_in_place", "replaced_near", "replacements", "left_over",
)  # fmt: skip
"""The signs, in the order of their columns. The last one measures the remaining differences, and does not
count alone."""
(
    _NEGATION_ODD, _NEGATIONS, _NEGATION_NEAR, _AFFIXES, _ANTONYMS, _ANTONYMS_NEAR, _ANTONYMS_IN_PLACE,
    _FLIPPED, _FLIPPED_TWICE, _DENIALS, _NUMBERS, _GENDER, _GENDER_IN_PLACE, _PERSON,
    _PERSON_IN_PLACE, _REPLACED_IN_PLACE, _REPLACED_NEAR, _REPLACEMENTS, _LEFT_OVER,
) = range(len(NAMES))  # fmt: skip
# What is added up for each side: negations, the same and words negated by an affix, unmatched denials, how
# near unmatched negations are to matched words, and unmatched content words.
_NEGATED, _NEGATED_OR_AFFIXED, _DENIED, _NEAR, _REMAINING = range(5)
MOST_TOKENS: Final = 512
"""Only this many first tokens of a side are used."""
WEIGHTS: Final = Path(__file__).parent / "weights.json"
"""A layer of a few units, in the order of :data:`NAMES`; fitted by
``experiments/train_contradiction.py``."""
_DIGITS: Final = 6
_UNLIKE: Final = np.float32(0.6)
# No word of the other side has the stem; or one has, but another neighbor.
_NONE: Final = -1
_LATER: Final = -2
_MARKS, _JOINED = len(APOSTROPHES), len(ENDINGS)
_NO, _POINT, _NUMBER_SIGN, _ANSWER = (_MARKS + 2 * _JOINED + place for place in range(4))


def signs_of(
    first: TokenColumn,
    second: TokenColumn,
    rows: npt.NDArray[np.int32],
    words: WordTable,
    directions: npt.NDArray[np.float32],
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int16]]:
    """Return the signs of each pair.

    first, second: tokens of both sides, over one vocabulary. rows, words: of its words, see
    :meth:`~paraforge.corpus.scoring.meaning.words.WordBook.numbered`. directions: of the vocabulary, vectors
    of length 1, (words, dimension).

    Returns signs, (pairs, len(NAMES)), each 0 to 2; and counts, (pairs, 5): negations of the first and of the
    second side, pairs of antonyms, numbers that only one side has, pronouns of another person or gender.
    """
    signs = np.zeros((len(first), len(NAMES)), np.float32)
    counts = np.zeros((len(first), 5), np.int16)
    places = np.zeros(len(words.keys), np.int64)
    places[rows] = np.arange(len(rows))
    sides = (first.ids, first.offsets, second.ids, second.offsets)
    _signs(*sides, rows, words, directions, places, signs, counts)
    return signs, counts


@compiled
def _read(ids: Any, rows: Any, properties: Any, tokens: Any) -> int:
    """Write a side's words, with a contraction's apostrophe and ending as one word. Returns their number.

    `isn't` has the tokens `isn` and `'t`; `isn’t` and `isn ' t` become the same. `no . 5` becomes `no. 5`,
    and the answer of `no , I do` is not a negation.
    """
    count = place = 0
    while place < len(ids) and count < MOST_TOKENS:
        token = rows[ids[place]]
        if token < _MARKS and place + 1 < len(ids) and _MARKS <= rows[ids[place + 1]] < _MARKS + _JOINED:
            place += 1
            token = rows[ids[place]] + _JOINED
        elif token == _NO and place + 2 < len(ids):
            behind = properties[rows[ids[place + 2]]]
            if rows[ids[place + 1]] == _POINT and behind & NUMBER:
                token, place = _NUMBER_SIGN, place + 1
            elif properties[rows[ids[place + 1]]] & CLAUSE and not behind & CLAUSE:
                begins = place == 0 or properties[rows[ids[place - 1]]] & CLAUSE > 0
                token = _ANSWER if begins else token
        tokens[count] = token
        count += 1
        place += 1
    return count


@compiled
def _is_later(first: Any, second: Any, keys: Any) -> bool:
    """Return whether the first side comes later in a canonical order: the shorter side is first; if the
    lengths are equal, the one whose first differing word has the smaller key.
    """
    if len(first) != len(second):
        return len(first) > len(second)
    for place in range(len(first)):
        if keys[first[place]] != keys[second[place]]:
            return bool(keys[first[place]] > keys[second[place]])
    return False


@compiled
def _match(first: Any, second: Any, to_second: Any, to_first: Any) -> None:
    """Match equal stems of both sides one to one, first those with an equal neighbor, then in order; -1 for
    none."""
    n, m = len(first), len(second)
    to_second[:n], to_first[:m] = _NONE, _NONE
    for i in range(n):
        for j in range(m):
            if first[i] == second[j] and to_first[j] < 0:
                to_second[i] = _LATER
                if _context(first, second, i, j) > 0:
                    to_second[i], to_first[j] = j, i
                    break
    for i in range(n):
        if to_second[i] == _LATER:
            to_second[i] = _NONE
            for j in range(m):
                if first[i] == second[j] and to_first[j] < 0:
                    to_second[i], to_first[j] = j, i
                    break


@compiled
def _context(first: Any, second: Any, i: int, j: int) -> int:
    """Count the sides on which two words have the same neighboring stem or both end their sentence."""
    before = first[i - 1] == second[j - 1] if i and j else i == j
    last = i + 1 == len(first), j + 1 == len(second)
    behind = last[0] and last[1] if last[0] or last[1] else first[i + 1] == second[j + 1]
    return int(before) + int(behind)


@compiled
def _near(words: Any, properties: Any, to_other: Any, i: int) -> int:
    """Count the sides of a word on which the next content word is matched."""
    count = 0
    for step in (-1, 1):
        k = i + step
        while 0 <= k < len(words) and not properties[words[k]] & CONTENT:
            k += step
        count += 0 <= k < len(words) and to_other[k] >= 0
    return count


@compiled
def _side(
    words: Any, properties: Any, persons: Any, to_other: Any, sums: Any, people: Any, sign: Any
) -> bool:
    """Add up a side's properties in `sums`, and its pronouns' persons, with `sign`, in `people`.

    Returns whether it has numbers.
    """
    numbers = False
    sums[:] = 0
    for i in range(len(words)):
        kind = properties[words[i]]
        is_matched = to_other[i] >= 0
        numbers |= kind & NUMBER > 0
        people[persons[words[i]]] += sign
        sums[_REMAINING] += kind & CONTENT > 0 and not is_matched
        sums[_NEGATED] += kind & NEGATION > 0
        sums[_NEGATED_OR_AFFIXED] += (kind & NEGATION > 0) + (kind & AFFIXED > 0)
        sums[_DENIED] += kind & DENIAL > 0 and not is_matched
        if kind & NEGATION and not is_matched:
            sums[_NEAR] = max(sums[_NEAR], _near(words, properties, to_other, i))
    return numbers


@compiled
def _opposition(stem: int, base: int, antonyms: Any, other_stem: int, other_base: int) -> int:
    """Return 2 if one word is the other with a negative affix, 1 for other antonyms, 0 otherwise.

    antonyms: the stems of the first word's antonyms.
    """
    if base == other_stem or other_base == stem:
        return 2
    for antonym in antonyms:
        if antonym == other_stem:
            return 1
    return 0


@compiled
def _cosine(first: Any, second: Any) -> Any:
    """Return the cosine of two words, summed in order, so that every processor gives the same last digits."""
    total = np.float32(0)
    for k in range(len(first)):
        total += first[k] * second[k]
    return total


@compiled
def _compare(
    a: Any, b: Any, stems_a: Any, stems_b: Any, to_b: Any, to_a: Any, words: Any, directions: Any,
    places: Any, sign: Any,
) -> int:  # fmt: skip
    """Compare every two unmatched words, and add antonyms, pronouns of another person and replaced words to
    a pair's signs. Antonyms are matched with each other.

    Returns the number of antonyms of which one is a negation: `Nobody` is counted as a negation, so it is not
    also an opposite of `everybody`.
    """
    negated = 0
    for i in range(len(a)):
        if to_b[i] >= 0:
            continue
        stem, base = stems_a[i], words.bases[a[i]]
        antonyms_of = words.opposed[:0]
        if stem < len(words.opposed_offsets) - 1:
            antonyms_of = words.opposed[words.opposed_offsets[stem] : words.opposed_offsets[stem + 1]]
        for j in range(len(b)):
            if to_a[j] >= 0:
                continue
            person, other_person = words.persons[a[i]], words.persons[b[j]]
            if person and other_person:
                if person != other_person:
                    he_or_she = person + other_person == 9 and min(person, other_person) == 4
                    column = _GENDER_IN_PLACE if he_or_she else _PERSON_IN_PLACE
                    sign[column] = max(sign[column], _context(stems_a, stems_b, i, j))
                continue
            against = _opposition(stem, base, antonyms_of, stems_b[j], words.bases[b[j]])
            both = words.properties[a[i]] & words.properties[b[j]]
            if not against and both & CONTENT and not both & NUMBER:
                context = _context(stems_a, stems_b, i, j)
                if context:
                    distance = 1 - _cosine(directions[places[a[i]]], directions[places[b[j]]])
                    column = _REPLACED_IN_PLACE if context == 2 else _REPLACED_NEAR
                    sign[column] = max(sign[column], distance)
                    sign[_REPLACEMENTS] += context == 2 and distance > _UNLIKE
            if against:
                sign[_AFFIXES] += against == 2
                if (words.properties[a[i]] ^ words.properties[b[j]]) & NEGATION:
                    negated += 1
                else:
                    sign[_ANTONYMS + _context(stems_a, stems_b, i, j)] += 1
                to_b[i], to_a[j] = MOST_TOKENS, MOST_TOKENS
                break
    return negated


@compiled
def _missing(a: Any, b: Any, values: Any, magnitudes: Any, numbers: Any, sure: Any) -> int:
    """Return how many numbers only one of the two sides has. numbers, sure: (2, MOST_TOKENS), overwritten."""
    n = said_numbers(a, values, magnitudes, numbers[0], sure[0])
    m = said_numbers(b, values, magnitudes, numbers[1], sure[1])
    of_a = missing_numbers(numbers[0, :n], sure[0], numbers[1, :m])
    return int(of_a + missing_numbers(numbers[1, :m], sure[1], numbers[0, :n]))


@compiled
def _add_up(sums: Any, people: Any, negated: int, missing: int, sign: Any, counts: Any) -> None:
    """Complete a pair's signs, which have what :func:`_compare` found, and write its last three counts.

    sums: of both sides. people: pronouns of each person, those of the second side subtracted.
    """
    negations = abs(sums[0, _NEGATED] - sums[1, _NEGATED])
    denials = abs(sums[0, _DENIED] - sums[1, _DENIED])
    opposites = int(sign[_ANTONYMS] + sign[_ANTONYMS_NEAR] + sign[_ANTONYMS_IN_PLACE])
    flips = negations + opposites
    he, she = people[4], people[5]
    gender = min(max(he, 0), max(-she, 0)) + min(max(-he, 0), max(she, 0))
    more = fewer = 0
    for k in range(1, 7):
        more += max(people[k], 0)
        fewer += max(-people[k], 0)
    person = min(more, fewer) - gender
    sign[_NEGATION_ODD], sign[_NEGATIONS] = negations & 1, negations
    sign[_NEGATION_NEAR] = max(sums[0, _NEAR], sums[1, _NEAR]) if negations & 1 else 0
    sign[_FLIPPED], sign[_FLIPPED_TWICE] = flips & 1, 2 if flips and not flips & 1 else 0
    sign[_DENIALS], sign[_NUMBERS], sign[_GENDER], sign[_PERSON] = denials, missing, gender, person
    sign[_LEFT_OVER] = min(sums[0, _REMAINING], sums[1, _REMAINING], 8) / 4
    for k in range(len(sign)):
        sign[k] = min(sign[k], np.float32(2))
    counts[2], counts[3], counts[4] = opposites + negated, missing, gender + person


@compiled
def _signs(
    first: Any, first_offsets: Any, second: Any, second_offsets: Any, rows: Any, words: Any,
    directions: Any, places: Any, signs: Any, counts: Any,
) -> None:  # fmt: skip
    """Write the signs and counts of each pair; see :func:`signs_of`."""
    read, matches = np.empty((2, 2, MOST_TOKENS), np.int64)
    both_stems = np.empty((2, MOST_TOKENS), np.int32)
    sums, people = np.empty((2, 5), np.int64), np.empty(7, np.int64)
    numbers, sure = np.empty((2, MOST_TOKENS)), np.empty((2, MOST_TOKENS), np.bool_)
    for row in range(len(signs)):
        first_ids = first[first_offsets[row] : first_offsets[row + 1]]
        second_ids = second[second_offsets[row] : second_offsets[row + 1]]
        a = read[0, : _read(first_ids, rows, words.properties, read[0])]
        b = read[1, : _read(second_ids, rows, words.properties, read[1])]
        turned = _is_later(a, b, words.keys)
        if turned:
            a, b = b, a
        stems_a, stems_b = both_stems[0, : len(a)], both_stems[1, : len(b)]
        for k in range(len(a)):
            stems_a[k] = words.stems[a[k]]
        for k in range(len(b)):
            stems_b[k] = words.stems[b[k]]
        to_b, to_a = matches[0], matches[1]
        _match(stems_a, stems_b, to_b, to_a)
        people[:] = 0
        numbered = _side(a, words.properties, words.persons, to_b, sums[0], people, np.int64(1))
        numbered |= _side(b, words.properties, words.persons, to_a, sums[1], people, np.int64(-1))
        negated = _compare(a, b, stems_a, stems_b, to_b, to_a, words, directions, places, signs[row])
        missing = _missing(a, b, words.values, words.magnitudes, numbers, sure) if numbered else 0
        _add_up(sums, people, negated, missing, signs[row], counts[row])
        counts[row, 0] = sums[int(turned), _NEGATED_OR_AFFIXED]
        counts[row, 1] = sums[1 - int(turned), _NEGATED_OR_AFFIXED]


@lru_cache(maxsize=1)
def _weights() -> tuple[Any, ...]:
    about = read_json(WEIGHTS)
    return tuple(np.asarray(about[name], np.float64) for name in ("hidden", "hidden_bias", "output", "bias"))


def contradiction(signs: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Combine the signs of each pair, (pairs, signs), into a number from 0 to 1, (pairs,).

    A pair without any sign has 0. The last sign, that other words are left over, does not count alone.
    """
    least = _probability(np.zeros((1, signs.shape[1]), np.float32))[0]
    strength = np.where(signs[:, :-1].any(axis=1), (_probability(signs) - least) / (1 - least), 0)
    return np.maximum(strength, 0).astype(np.float32)


def _probability(signs: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Add up term by term, because in a matrix product a row's last digits depend on the other rows."""
    hidden, hidden_bias, output, bias = _weights()
    margins = np.full(len(signs), bias)
    for unit in range(len(output)):
        values = np.full(len(signs), hidden_bias[unit])
        for sign in range(signs.shape[1]):
            values += signs[:, sign] * hidden[sign, unit]
        margins += np.maximum(values, 0) * output[unit]
    return np.asarray((1 / (1 + np.exp(-margins))).round(_DIGITS))
