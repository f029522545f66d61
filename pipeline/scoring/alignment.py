"""How much of the reference a translation says, word by word: aligned words' cosines, with their neighbours.

A cosine of averages does not see which words are where, nor that one is missing. Here each word is compared
with the word of the other side that it fits best, a word fitting better where its neighbours fit too.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from paraforge.compiled import compiled
from paraforge.text.tokens import TokenColumn

CONTEXT: Final = 0.3
"""Share of a fit that is due to the neighbours of both words."""
BETA: Final = 2.0
"""How many times as much recall weighs as precision: chrF's."""
_CELLS: Final = 1 << 20


def aligned_scores(
    references: TokenColumn, translations: TokenColumn, vectors: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """F-score of aligned words of each pair, (pairs,) float32, 0 to 1; NaN where a side has no vector.

    The fit of words i and j is `(1 - CONTEXT) c_ij + CONTEXT c_ij (c_i-1,j-1 + c_i+1,j+1) / 2`, c being their
    vectors' cosine, at least 0; beyond the same end of both sides it is 1, beyond the end of one 0. Recall is
    the mean over the reference's words of the best fit with a word of the translation, precision the reverse;
    a word weighs as much as its vector is long.

    references, translations: over one vocabulary. vectors: of its words, (words, dimension).
    """
    lengths = np.linalg.norm(vectors, axis=1).astype(np.float32)
    directions = vectors / np.maximum(lengths, np.float32(1e-9))[:, None]
    scores = _aligned(
        references.ids,
        references.offsets,
        translations.ids,
        translations.offsets,
        directions.astype(np.float32),
        lengths,
        CONTEXT,
        BETA * BETA,
    )
    return np.asarray(scores, dtype=np.float32)


@compiled
def _aligned(
    left: Any,
    left_offsets: Any,
    right: Any,
    right_offsets: Any,
    directions: Any,
    lengths: Any,
    context: float,
    beta: float,
) -> Any:
    scores = np.full(len(left_offsets) - 1, np.nan, dtype=np.float32)
    for row in range(len(scores)):
        first = left[left_offsets[row] : left_offsets[row + 1]]
        second = right[right_offsets[row] : right_offsets[row + 1]]
        first_weights, second_weights = lengths[first], lengths[second]
        first_total, second_total = first_weights.sum(), second_weights.sum()
        if first_total == 0 or second_total == 0:
            continue
        rows, columns = len(first), len(second)
        row_best = np.zeros(rows, dtype=np.float32)
        column_best = np.zeros(columns, dtype=np.float32)
        others = directions[second].T
        # Some of the rows at once, with one more on either side, so that long texts need no large matrix.
        step = max(1, _CELLS // columns)
        for start in range(0, rows, step):
            before, stop = max(0, start - 1), min(rows, start + step)
            cosines = np.dot(directions[first[before : stop + 1]], others)
            cosines = np.maximum(cosines, np.float32(0))
            for i in range(start, stop):
                k = i - before
                for j in range(columns):
                    around = np.float32((i == 0 and j == 0) + (i == rows - 1 and j == columns - 1))
                    if i and j:
                        around += cosines[k - 1, j - 1]
                    if i + 1 < rows and j + 1 < columns:
                        around += cosines[k + 1, j + 1]
                    fit = cosines[k, j] * (1 - context + context * around / 2)
                    row_best[i] = max(row_best[i], fit)
                    column_best[j] = max(column_best[j], fit)
        recall = (row_best * first_weights).sum() / first_total
        precision = (column_best * second_weights).sum() / second_total
        if recall + precision > 0:
            scores[row] = (1 + beta) * precision * recall / (beta * precision + recall)
        else:
            scores[row] = 0
    return scores
