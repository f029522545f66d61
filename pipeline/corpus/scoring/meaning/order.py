"""Equal words in another order: who did what to whom."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from paraforge.base.compiled import compiled
from paraforge.base.text.tokens import TokenColumn
from paraforge.corpus.scoring.meaning.sides import MOST_TOKENS
from paraforge.corpus.scoring.meaning.words import (
    CLAUSE,
    CONTENT,
    LINK,
    NUMBER,
    PASSIVE,
    Directions,
    WordTable,
)

_ALIKE: Final = 0.4
"""Cosine from which on words that are left over on both sides count as one word."""
_SLOT: Final = 6
"""Words that are looked at in the place of another."""


def exchanges_of(
    first: TokenColumn,
    second: TokenColumn,
    crossed: npt.NDArray[np.bool_],
    words: WordTable,
    matches: npt.NDArray[np.int64],
    directions: Directions,
) -> npt.NDArray[np.float32]:
    """What of each pair is in another order, (pairs, 8).

    How many words that name something, and how many that link, have before them here what is behind them
    there, and the other way round; how many of the first may be the work of a passive; and what
    :func:`_places`, :func:`_replaced` and :func:`_turns` give. Words that are left over are matched to those
    like them.

    first, second: tokens of both sides, over one vocabulary. crossed: whether matched words that name or link
    something are in another order, without which there is nothing. words, directions: what is known of words.
    matches: the place on the other side of the equal of each token of `first`, below 0 for none; that of a
    word like it is added.
    """
    found = np.zeros((len(first), 8), np.float32)
    _exchanges_of(
        np.flatnonzero(crossed), first.ids, first.offsets, second.ids, second.offsets, words.stems,
        words.properties, matches, *directions, found,
    )  # fmt: skip
    return found


@compiled
def _exchanges(words: Any, properties: Any, to_other: Any, wanted: int) -> int:
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
def _places(a: Any, b: Any, stems: Any, properties: Any, to_other: Any) -> tuple[int, int]:
    """Of two matched words in another order: how many of their four neighbours stayed where they were, at
    most over all such words, and how many such words have two or more. A phrase that moves takes its
    neighbours along; words that are exchanged leave them."""
    n, m = len(a), len(b)
    most = count = 0
    for i in range(n):
        j = to_other[i]
        if j < 0 or not properties[a[i]] & CONTENT:
            continue
        listed = True
        for k in range(i + 1, n):
            # Up to here there are only commas: a list, which may come in any order.
            listed = listed and (k == i + 1 or properties[a[k - 1]] & CLAUSE > 0)
            there = to_other[k]
            if listed or there < 0 or there >= j or not properties[a[k]] & CONTENT:
                continue
            before = (stems[a[i - 1]] == stems[b[there - 1]]) if i and there else i == there
            behind = stems[a[i + 1]] == stems[b[there + 1]]
            ahead = stems[a[k - 1]] == stems[b[j - 1]]
            last = (stems[a[k + 1]] == stems[b[j + 1]]) if k + 1 < n and j + 1 < m else n - k == m - j
            stayed = int(before) + int(behind) + int(ahead) + int(last)
            most = max(most, stayed)
            count += stayed > 1
    return most, count


@compiled
def _agents(words: Any, properties: Any, to_other: Any) -> int:
    """How often a word behind `by` is, there, before the one before it: who did it, of a passive."""
    count = 0
    for i in range(1, len(words)):
        k = i + 1
        while properties[words[i]] & PASSIVE and k < len(words) and not properties[words[k]] & CONTENT:
            k += 1
        if properties[words[i]] & PASSIVE and k < len(words) and to_other[k] >= 0:
            count += to_other[i - 1] < 0 or to_other[k] < to_other[i - 1]
    return count


@compiled
def _turns(words: Any, properties: Any, to_other: Any) -> int:
    """How often, in a clause, a matched word that names something is, there, before the one before it."""
    count, last = 0, -1
    for i in range(len(words)):
        if properties[words[i]] & CLAUSE:
            last = -1
        elif to_other[i] >= 0 and properties[words[i]] & CONTENT:
            count += to_other[i] < last
            last = to_other[i]
    return count


@compiled
def _match_alike(
    a: Any,
    b: Any,
    properties: Any,
    to_b: Any,
    to_a: Any,
    room: Any,
    cosines: Any,
    numbers: Any,
    scales: Any,
) -> None:
    """Match words that are left over to the ones that are most like them, both ways."""
    loose, best_of = room[0], room[1]
    count = 0
    for j in range(len(b)):
        kind = properties[b[j]]
        if to_a[j] < 0 and kind & CONTENT and not kind & NUMBER:
            loose[count], best_of[count], cosines[count] = j, -1, _ALIKE
            count += 1
    if not count:
        return
    for i in range(len(a)):
        kind = properties[a[i]]
        if to_b[i] >= 0 or not kind & CONTENT or kind & NUMBER:
            continue
        best, there = np.float32(0), -1
        for k in range(count):
            alike = cosine(a[i], b[loose[k]], numbers, scales)
            if alike > best:
                best, there = alike, k
        if there >= 0 and best > cosines[there]:
            cosines[there], best_of[there] = best, i
    for k in range(count):
        if best_of[k] >= 0:
            to_a[loose[k]], to_b[best_of[k]] = best_of[k], loose[k]


@compiled
def cosine(one: int, other: int, numbers: Any, scales: Any) -> Any:
    """Of two words, float32; numbers, scales: their directions."""
    total = np.int32(0)
    for k in range(numbers.shape[1]):
        total = np.int32(total + np.int32(numbers[one, k]) * np.int32(numbers[other, k]))
    return np.float32(total) * (scales[one] * scales[other])


@compiled
def _beside(words: Any, properties: Any, to_other: Any, size: int, before: Any, behind: Any) -> None:
    """For each place the counterpart of the nearest matched word that names something, before and behind it:
    -1 and `size`, the other side's, where there is none."""
    near = -1
    for i in range(len(words)):
        before[i] = near
        if to_other[i] >= 0 and properties[words[i]] & CONTENT:
            near = to_other[i]
    near = size
    for i in range(len(words) - 1, -1, -1):
        behind[i] = near
        if to_other[i] >= 0 and properties[words[i]] & CONTENT:
            near = to_other[i]


@compiled
def _replaced(
    a: Any, b: Any, properties: Any, to_b: Any, to_a: Any, room: Any, numbers: Any, scales: Any
) -> tuple[Any, int]:
    """Of words that stand between other words than they do on the other side: how alike, 0 to 1, what is in
    their place there and what is in the other's place here are, at most; and how many such words."""
    n, m = len(a), len(b)
    before_a, behind_a, before_b, behind_b = room[0], room[1], room[2], room[3]
    _beside(a, properties, to_b, m, before_a, behind_a)
    _beside(b, properties, to_a, n, before_b, behind_b)
    most, count = np.float32(0), 0
    i = 0
    while i < n:
        j, begin = to_b[i], i
        i += 1
        if j < 0 or not properties[a[begin]] & CONTENT:
            continue
        # Words that moved together are one.
        last = j
        while i < n and to_b[i] == last + 1 and properties[a[i]] & CONTENT:
            i, last = i + 1, last + 1
        low, high = before_b[j], behind_b[last]
        there, end = before_a[begin], behind_a[i - 1]
        if low < begin < high or there < j < end or low > high or there > end:
            continue
        best = np.float32(0)
        for k in range(low + 1, min(high, low + 1 + _SLOT)):
            if not properties[a[k]] & CONTENT:
                continue
            for h in range(there + 1, min(end, there + 1 + _SLOT)):
                if not properties[b[h]] & CONTENT:
                    continue
                if to_b[k] == h:
                    best = np.float32(1)
                elif to_b[k] < 0 and to_a[h] < 0:
                    best = max(best, cosine(a[k], b[h], numbers, scales))
        most = max(most, best)
        count += int(best > _ALIKE)
    return most, count


@compiled
def _exchanges_of(
    rows: Any, first: Any, first_offsets: Any, second: Any, second_offsets: Any,
    stems: Any, properties: Any, matches: Any, numbers: Any, scales: Any, found: Any,
) -> None:  # fmt: skip
    to_a, cosines = np.empty(MOST_TOKENS, np.int64), np.empty(MOST_TOKENS, np.float32)
    room = np.empty((4, MOST_TOKENS), np.int64)
    for row in rows:
        a = first[first_offsets[row] : first_offsets[row + 1]]
        b = second[second_offsets[row] : second_offsets[row + 1]]
        to_b = matches[first_offsets[row] : first_offsets[row + 1]]
        to_a[: len(b)] = -1
        for i in range(len(a)):
            if to_b[i] >= 0:
                to_a[to_b[i]] = i
        _match_alike(a, b, properties, to_b, to_a, room, cosines, numbers, scales)
        passive = abs(_agents(a, properties, to_b) - _agents(b, properties, to_a))
        found[row, 0] = _exchanges(a, properties, to_b, CONTENT)
        found[row, 1] = _exchanges(a, properties, to_b, LINK)
        found[row, 2] = min(found[row, 0], passive)
        # A passive says who did it last.
        if not passive:
            found[row, 3], found[row, 4] = _places(a, b, stems, properties, to_b)
            found[row, 5], found[row, 6] = _replaced(a, b, properties, to_b, to_a, room, numbers, scales)
            found[row, 7] = _turns(a, properties, to_b)
