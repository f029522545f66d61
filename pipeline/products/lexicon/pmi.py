"""Pointwise mutual information of two words: across the sides of a pair, within a sentence, and the
difference.

All logarithms are natural. `#(u)` counts sentences, N all sentences; a word counts once a sentence.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from paraforge.products.lexicon.parameters import Smoothing

Counts = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]


def pmi(joint: Counts, first: Counts, second: Counts, sentences: int) -> Values:
    """`ln( #(u,v) N / (#(u) #(v)) )`; NaN where `#(u,v)` is 0.

    joint: `#(u,v)`. first: `#(u)`. second: `#(v)`.
    sentences: N.
    """
    seen = joint > 0
    result = np.full(np.shape(joint), np.nan)
    # The sums are grouped so that (u,v) and (v,u) get the same value to the last bit.
    marginals = np.log(first[seen]) + np.log(second[seen])
    result[seen] = np.log(joint[seen]) + np.log(sentences) - marginals
    return result


def cross_pmi(cross: Counts, first: Counts, second: Counts, pairs: int) -> Values:
    """Cross-sentence PMI: every pair is taken in both directions, so N is twice the pairs (ParaNMT A.1).

    cross: `#(u,v)`, how many of the N have u in the first sentence and v in the second.
    first: `#(u)`, how many have u in the first: its references plus its translations.
    second: `#(v)`, the same for v. pairs: pairs of sentences.
    """
    return pmi(cross, first, second, 2 * pairs)


def ordinary_pmi(
    within: tuple[Counts, Counts],
    first: tuple[Counts, Counts],
    second: tuple[Counts, Counts],
    pairs: int,
    smoothing: Smoothing,
    pseudo_count: float,
    smooth_all: bool = False,
) -> Values:
    """PMI within a sentence, on references and on translations apart, then averaged (ParaNMT A.1).

    Where only one side has the two words together, that side's value is taken. Where neither has, there is no
    such value, and over both sides' 2 x pairs sentences, with E = `#(u) #(v) / N` sentences to be expected by
    chance:

    * ``shrinkage``: `ln( k / (E + k) )`. The ratio of found to expected sentences is drawn towards 1 as if k
      more had been found where k more were expected: that they were never seen together means much for
      frequent words, nothing for rare ones;
    * ``pseudo_count``: `ln( k / E )`, as if k sentences had both; rare words get a high value;
    * ``independence``: 0;
    * ``none``: NaN.

    Args:
        within: references, and translations, with both words.
        first: references, and translations, with u.
        second: references, and translations, with v.
        pairs: sentences of a side.
        smoothing: what is used for words that never share a sentence.
        pseudo_count: k, above 0.
        smooth_all: use the count plus k for all words: `ln( (n + k) / (E + k) )` or `ln( (n + k) / E )` on
            each side with half of k, then averaged.
    """
    sides = np.stack([pmi(within[side], first[side], second[side], pairs) for side in (0, 1)])
    if smooth_all and smoothing in ("shrinkage", "pseudo_count"):
        smoothed = [
            _smoothed(within[side], first[side], second[side], pairs, smoothing, pseudo_count / 2)
            for side in (0, 1)
        ]
        # A side that lacks one of the words is no evidence about the two.
        present = np.stack([(first[side] > 0) & (second[side] > 0) for side in (0, 1)])
        sides = np.where(present, np.stack(smoothed), np.nan)
    found = ~np.isnan(sides)
    number = found.sum(axis=0)
    total = np.where(found, sides, 0.0).sum(axis=0)
    result = np.full(total.shape, np.nan)
    np.divide(total, number, out=result, where=number > 0)
    unseen = number == 0
    if smoothing != "none" and unseen.any():
        both_first = (first[0] + first[1])[unseen]
        both_second = (second[0] + second[1])[unseen]
        nothing = np.zeros(len(both_first), np.int64)
        result[unseen] = _smoothed(nothing, both_first, both_second, 2 * pairs, smoothing, pseudo_count)
    return result


def _smoothed(
    joint: Counts, first: Counts, second: Counts, sentences: int, smoothing: Smoothing, pseudo_count: float
) -> Values:
    if smoothing == "independence":
        return np.zeros(len(joint))
    expected = first.astype(np.float64) * second / sentences
    added = pseudo_count if smoothing == "shrinkage" else 0.0
    with np.errstate(divide="ignore"):
        return np.log(joint + pseudo_count) - np.log(expected + added)
