"""Measures how much of the reference a translation says, from the cosines of aligned words and their
neighbors.

The cosine of averaged vectors ignores word order and missing words. Here each word is compared with the
best-fitting word of the other side, and a word fits better if its neighbors also fit.

Dot products are summed in the same order on every processor; otherwise a compiler would choose the order by
the processor's vector width, and the last digits would differ. There are 16 partial sums: product k is added
to sum k modulo 16, and then the sums are added by halves, 8 to 8 and so on.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from paraforge.base.compiled import compiled
from paraforge.base.text.tokens import TokenColumn

SUMS: Final = 16


def _dot_product(typing_context: Any, left: Any, right: Any, size: Any) -> Any:
    """Return the dot product of `size` float32 at the addresses `left` and `right`, float32; for compiled
    functions.

    size: a multiple of SUMS, at least SUMS; this is not checked.
    """
    return types.float32(types.intp, types.intp, types.intp), _generate


dot_product: Any = intrinsic(_dot_product)


def _generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    number, index = ir.FloatType(), ir.IntType(64)
    vector = ir.VectorType(number, SUMS)
    start, (left, right, size) = builder.block, arguments
    loop, end = builder.append_basic_block(), builder.append_basic_block()
    builder.branch(loop)
    builder.position_at_end(loop)
    place, sums = builder.phi(index), builder.phi(vector)
    place.add_incoming(ir.Constant(index, 0), start)
    sums.add_incoming(ir.Constant(vector, [0.0] * SUMS), start)
    sides = []
    for address in (left, right):
        numbers = builder.gep(builder.inttoptr(address, number.as_pointer()), [place])
        sides.append(builder.load(builder.bitcast(numbers, vector.as_pointer()), align=4))
    total = builder.fadd(sums, builder.fmul(*sides))
    behind = builder.add(place, ir.Constant(index, SUMS))
    place.add_incoming(behind, loop)
    sums.add_incoming(total, loop)
    builder.cbranch(builder.icmp_signed("<", behind, size), loop, end)
    builder.position_at_end(end)
    width = SUMS
    while width > 1:
        nothing = ir.Constant(total.type, ir.Undefined)
        width //= 2
        lower, upper = (
            builder.shuffle_vector(total, nothing, _places(range(first, first + width)))
            for first in (0, width)
        )
        total = builder.fadd(lower, upper)
    return builder.extract_element(total, ir.Constant(ir.IntType(32), 0))


def _places(numbers: range) -> Any:
    return ir.Constant(ir.VectorType(ir.IntType(32), len(numbers)), list(numbers))


CONTEXT: Final = 0.3
"""The share of a fit that comes from the neighbors of both words."""
BETA: Final = 2.0
"""How many times as much recall weighs as precision, as in chrF."""
_CELLS: Final = 1 << 20


def aligned_scores(
    references: TokenColumn,
    translations: TokenColumn,
    directions: npt.NDArray[np.float32],
    lengths: npt.NDArray[np.float32],
) -> npt.NDArray[np.float32]:
    """Return the F-score of aligned words of each pair, (pairs,) float32, 0 to 1; NaN if a side has no
    vector.

    The fit of words i and j is `(1 - CONTEXT) c_ij + CONTEXT c_ij (c_i-1,j-1 + c_i+1,j+1) / 2`, where c is
    their vectors' cosine, at least 0; beyond the same end of both sides it is 1, beyond the end of only one
    it is 0. Recall is the mean over the reference's words of the best fit with a word of the translation,
    precision the reverse; the weight of a word is the length of its vector.

    references, translations: over one vocabulary.
    directions, lengths: of its words, see :func:`directions_of`.
    """
    scores = np.full(len(references), np.nan, dtype=np.float32)
    _align(
        references.ids,
        references.offsets,
        translations.ids,
        translations.offsets,
        directions,
        lengths,
        CONTEXT,
        BETA * BETA,
        scores,
    )
    return scores


def directions_of(
    vectors: npt.NDArray[np.float32],
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return vectors scaled to length 1 and padded with zeros to a multiple of SUMS numbers, and their
    original lengths."""
    lengths = np.linalg.norm(vectors, axis=1).astype(np.float32)
    dimension = vectors.shape[1]
    directions = np.zeros((len(vectors), max(1, -(-dimension // SUMS)) * SUMS), dtype=np.float32)
    directions[:, :dimension] = vectors / np.maximum(lengths, np.float32(1e-9))[:, None]
    return directions, lengths


@compiled
def _cosines(rows: Any, columns: Any, directions: Any, cosines: Any) -> None:
    """Write the cosine of each of `rows` with each of `columns`, at least 0, into cosines[i, 1 + j]."""
    dimension = directions.shape[1]
    first, size = directions.ctypes.data, directions.itemsize * dimension
    for i in range(len(rows)):
        row = first + size * rows[i]
        for j in range(len(columns)):
            cosine = dot_product(row, first + size * columns[j], dimension)
            cosines[i, 1 + j] = max(cosine, np.float32(0))


@compiled
def _best_fits(
    cosines: Any, rows: int, columns: int, context: float, row_best: Any, column_best: Any
) -> None:
    """Update the best fits of `rows` rows and of all columns; cosines has one more on each side."""
    alone, together = np.float32(1 - context), np.float32(context / 2)
    for i in range(1, rows + 1):
        best = np.float32(0)
        for j in range(1, columns + 1):
            around = cosines[i - 1, j - 1] + cosines[i + 1, j + 1]
            fit = cosines[i, j] * (alone + together * around)
            best = max(best, fit)
            column_best[j - 1] = max(column_best[j - 1], fit)
        row_best[i - 1] = best


@compiled
def _sum_weighted(fits: Any, lengths: Any, words: Any) -> Any:
    """Add up the fits of words, weighted by their vectors' lengths."""
    total = np.float32(0)
    for place in range(len(words)):
        total += fits[place] * lengths[words[place]]
    return total


@compiled
def _align(
    left: Any,
    left_offsets: Any,
    right: Any,
    right_offsets: Any,
    directions: Any,
    lengths: Any,
    context: float,
    beta: float,
    scores: Any,
) -> None:
    space = np.empty(0, dtype=np.float32)
    for row in range(len(scores)):
        first = left[left_offsets[row] : left_offsets[row + 1]]
        second = right[right_offsets[row] : right_offsets[row + 1]]
        rows, columns = len(first), len(second)
        first_total = second_total = np.float32(0)
        for word in first:
            first_total += lengths[word]
        for word in second:
            second_total += lengths[word]
        if first_total == 0 or second_total == 0:
            continue
        row_best = np.zeros(rows, dtype=np.float32)
        column_best = np.zeros(columns, dtype=np.float32)
        # A block of rows at a time, with one more on either side, so that long texts need no large matrix.
        step = max(1, min(rows, _CELLS // columns))
        if len(space) < (step + 2) * (columns + 2):
            space = np.empty((step + 2) * (columns + 2), dtype=np.float32)
        for start in range(0, rows, step):
            stop = min(rows, start + step)
            cosines = space[: (stop - start + 2) * (columns + 2)].reshape(stop - start + 2, columns + 2)
            cosines[0], cosines[-1], cosines[:, 0], cosines[:, -1] = 0, 0, 0, 0
            before, behind = max(0, start - 1), min(rows, stop + 1)
            _cosines(first[before:behind], second, directions, cosines[before - start + 1 :])
            if start == 0:
                cosines[0, 0] = 1
            if stop == rows:
                cosines[-1, -1] = 1
            _best_fits(cosines, stop - start, columns, context, row_best[start:stop], column_best)
        recall = _sum_weighted(row_best, lengths, first) / first_total
        precision = _sum_weighted(column_best, lengths, second) / second_total
        if recall + precision > 0:
            scores[row] = (1 + beta) * precision * recall / (beta * precision + recall)
        else:
            scores[row] = 0
