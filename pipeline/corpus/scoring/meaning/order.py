"""Equal words in another order: who did what to whom."""

from typing import Any

import numpy as np
import numpy.typing as npt

from paraforge.base.compiled import compiled
from paraforge.base.text.tokens import TokenColumn
from paraforge.corpus.scoring.meaning.words import CLAUSE, CONTENT, LINK, PASSIVE, WordTable


def exchanges_of(
    first: TokenColumn, second: TokenColumn, words: WordTable, matches: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """What of each pair is in another order, (pairs, 5).

    How many words that name something, and how many that link, have before them here what is behind them
    there, and the other way round; how many of the first may be the work of a passive; and what
    :func:`_places` gives.

    first, second: tokens of both sides, over one vocabulary. words: what is known of it.
    matches: the place on the other side of the equal of each token of `first`, below 0 for none.
    """
    found = np.zeros((len(first), 5), np.int64)
    _exchanges_of(
        first.ids, first.offsets, second.ids, second.offsets, words.stems, words.properties, matches, found
    )
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
def _exchanges_of(
    first: Any, first_offsets: Any, second: Any, second_offsets: Any,
    stems: Any, properties: Any, matches: Any, found: Any,
) -> None:  # fmt: skip
    for row in range(len(found)):
        a = first[first_offsets[row] : first_offsets[row + 1]]
        b = second[second_offsets[row] : second_offsets[row + 1]]
        to_b = matches[first_offsets[row] : first_offsets[row + 1]]
        ordered, furthest = True, -1
        for place in to_b:
            ordered = ordered and (place < 0 or place > furthest)
            furthest = max(furthest, place)
        if ordered:
            continue
        passive = 0
        for word in a:
            passive += properties[word] & PASSIVE > 0
        for word in b:
            passive -= properties[word] & PASSIVE > 0
        found[row, 0] = _exchanges(a, properties, to_b, CONTENT)
        found[row, 1] = _exchanges(a, properties, to_b, LINK)
        found[row, 2] = min(found[row, 0], abs(passive))
        found[row, 3], found[row, 4] = _places(stems[a], stems[b], a, properties, to_b)
