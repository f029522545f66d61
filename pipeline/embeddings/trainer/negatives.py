"""Chooses negatives over a mega-batch: MAX and MIX (W16 3.1.1, ParaNMT-50M Eq. 2), in blocks, on any
device."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from paraforge.base.devices import cpu_has_bfloat16
from paraforge.base.text.ragged import ranges

Strategy = Literal["max", "mix"]
Precision = Literal["float32", "bfloat16"]
MAX_PROBABILITY = 0.5
"""MIX chooses the most similar candidate with this probability, otherwise a uniform one."""
STRIP = 128
"""Sentences per block of cosines on a CPU."""
GPU_ROWS = 1024
"""The same on a GPU."""
_INTEGERS = {torch.bfloat16: torch.int16, torch.float32: torch.int32, torch.float64: torch.int64}


class ForbiddenCandidates:
    """For every sentence of a mega-batch, the sentences that must not be its negative.

    Sentences 0 .. n - 1 are the left sides and n .. 2n - 1 the right sides of n pairs. For sentence k these
    are itself and the other side of its pair; with `identity`, also texts identical to either, and texts
    whose own other side is identical to k. The relation is symmetric.

    identity: int64 or uint64 (2n,), equal for identical sentences, or None.
    """

    def __init__(self, pairs: int, identity: npt.NDArray[Any] | None = None) -> None:
        self.pairs = pairs
        own = np.arange(2 * pairs, dtype=np.int64)
        self._partner = np.concatenate([own[pairs:], own[:pairs]])
        # Sentences with the same text form a group, whose members are adjacent in `_order`.
        texts = own if identity is None else identity
        _, self._group, self._sizes = np.unique(texts, return_inverse=True, return_counts=True)
        self._order = np.argsort(self._group, kind="stable")
        self._starts = np.cumsum(self._sizes) - self._sizes

    def of_rows(self, first: int, last: int) -> tuple[Tensor, Tensor]:
        """Return the forbidden (row - first, column) of rows first to last, ascending."""
        row, mine = self._members(self._group[first:last])
        row_of_other, others = self._members(self._group[self._partner[first:last]])
        rows = np.concatenate([row, row_of_other, row])
        keys = rows * (2 * self.pairs) + np.concatenate([mine, others, self._partner[mine]])
        # np.unique would use a hash table, which is a hundred times slower if many are equal.
        sorted_keys = np.sort(keys)
        row, column = np.divmod(sorted_keys[np.diff(sorted_keys, prepend=-1) != 0], 2 * self.pairs)
        return torch.from_numpy(row), torch.from_numpy(column)

    def _members(self, groups: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the (place in `groups`, sentence) of all members of some groups."""
        sizes = self._sizes[groups]
        return np.repeat(np.arange(len(groups)), sizes), self._order[ranges(self._starts[groups], sizes)]

    def of_other_sides(self) -> tuple[Tensor, Tensor]:
        """Return the forbidden (pair of a left side, other pair of a right side)."""
        row, column = self.of_rows(0, self.pairs)
        other = (column >= self.pairs) & (column != row + self.pairs)
        return row[other], column[other] - self.pairs

    def random_candidates(self, generator: np.random.Generator) -> npt.NDArray[np.int64]:
        """Draw one uniform allowed candidate for every sentence, int64 (2n,); -1 if there is none."""
        sentences = 2 * self.pairs
        numbers = generator.random(sentences)
        chosen = np.empty(sentences, dtype=np.int64)
        for first in range(0, sentences, STRIP):
            last = min(first + STRIP, sentences)
            row, column = (part.numpy() for part in self.of_rows(first, last))
            sizes = np.bincount(row, minlength=last - first)
            free = sentences - sizes
            place = (numbers[first:last] * free).astype(np.int64)
            # The n-th allowed column is shifted by the number of forbidden ones before it.
            allowed_before = column - (np.arange(len(row)) - np.repeat(np.cumsum(sizes) - sizes, sizes))
            passed = np.bincount(row[allowed_before <= place[row]], minlength=last - first)
            chosen[first:last] = np.where(free > 0, place + passed, -1)
        return chosen


def choose_negatives(
    embeddings: Tensor,
    pairs: int,
    *,
    two_sided: bool = True,
    strategy: Strategy = "max",
    forbidden: ForbiddenCandidates | None = None,
    generator: np.random.Generator | None = None,
    precision: Precision = "float32",
    pool: ThreadPoolExecutor | None = None,
) -> Tensor:
    """Return the negative of every left side and, two-sided, of every right side, among both sides of all
    other pairs.

    embeddings: (2 * pairs, dimension), all left sides, then all right sides, under the current parameters,
        without gradient.
    forbidden: candidates that are not allowed; by default only the sentence itself and its partner.
    generator: for MIX's random numbers, which do not depend on the embeddings.
    precision: precision of the products. With bfloat16, a cosine is correct to about 0.004.
    pool: threads that share the blocks; the choice does not depend on it.

    Returns int64 (pairs,) or (2 * pairs,): numbers of sentences, as counted in `embeddings`; -1 if a sentence
    has no candidate (a single pair, or only texts identical to it).
    """
    if forbidden is None:
        forbidden = ForbiddenCandidates(pairs)
    anchors = 2 * pairs if two_sided else pairs
    unit = torch.nn.functional.normalize(embeddings, dim=1)
    rough = unit.to(torch.bfloat16) if precision == "bfloat16" else unit
    if unit.device.type == "cpu":
        best = _search_by_strips(unit, rough, forbidden, pool)[:anchors]
    else:
        best = _search_directly(rough, anchors, forbidden)
    if strategy == "mix":
        assert generator is not None
        random = torch.from_numpy(forbidden.random_candidates(generator))
        take_best = torch.from_numpy(generator.random(2 * pairs) < MAX_PROBABILITY)
        best = torch.where(take_best[:anchors].to(best.device), best, random[:anchors].to(best.device))
    return best


def _search_directly(unit: Tensor, anchors: int, forbidden: ForbiddenCandidates) -> Tensor:
    """Compute every cosine, and return the place of each row's maximum."""
    best = torch.empty(anchors, dtype=torch.int64, device=unit.device)
    for first in range(0, anchors, GPU_ROWS):
        last = min(first + GPU_ROWS, anchors)
        cosines = unit[first:last] @ unit.T
        row, column = forbidden.of_rows(first, last)
        cosines[row.to(unit.device), column.to(unit.device)] = -torch.inf
        highest, place = cosines.max(1)
        best[first:last] = torch.where(highest > -torch.inf, place, -1)
    return best


def _search_by_strips(
    unit: Tensor, rough: Tensor, forbidden: ForbiddenCandidates, pool: ThreadPoolExecutor | None
) -> Tensor:
    """Return the same result with half of the products, because cos(a, b) = cos(b, a): first the maximum of
    every sentence over every strip, then the strip with the highest one in full precision."""
    sentences = len(unit)
    strips = -(-sentences // STRIP)
    padded = strips * STRIP
    columns = torch.cat([rough, rough.new_zeros(padded - sentences, rough.shape[1])])
    if rough.dtype == torch.bfloat16 and not cpu_has_bfloat16():
        columns = columns.float()  # the same numbers; products are rounded as that type's are
    highest = torch.full((padded, strips), -torch.inf)

    def fill(strip: int) -> None:
        first, last = strip * STRIP, min((strip + 1) * STRIP, sentences)
        cosines = (columns[first : first + STRIP] @ columns[first:].T).to(rough.dtype)
        cosines[:, sentences - first :] = -torch.inf
        cosines[last - first :] = -torch.inf
        row, column = forbidden.of_rows(first, last)
        later = column >= first
        cosines[row[later], column[later] - first] = -torch.inf
        # Other strips never write to the same positions.
        highest[first : first + STRIP, strip:] = _highest(cosines.view(STRIP, strips - strip, STRIP), 2)
        highest[first + STRIP :, strip] = _highest(cosines[:, STRIP:], 0)

    _for_each(pool, fill, range(strips))
    top, strip_of = highest[:sentences].max(1)
    order = strip_of.argsort(stable=True)
    borders = torch.bincount(strip_of, minlength=strips).cumsum(0).tolist()
    best = torch.empty(sentences, dtype=torch.int64)

    def search(strip: int) -> None:
        anchors = order[borders[strip - 1] if strip else 0 : borders[strip]]
        if not len(anchors):
            return
        first, last = strip * STRIP, min((strip + 1) * STRIP, sentences)
        cosines = unit[anchors] @ unit[first:last].T
        # The relation is symmetric, so the strip's own list also applies to the anchors.
        candidate, anchor = forbidden.of_rows(first, last)
        place = torch.searchsorted(anchors, anchor).clamp_(max=len(anchors) - 1)
        is_anchor = anchors[place] == anchor
        cosines[place[is_anchor], candidate[is_anchor]] = -torch.inf
        best[anchors] = first + cosines.argmax(1)

    _for_each(pool, search, range(strips))
    return torch.where(top > -torch.inf, best, -1)


def _highest(numbers: Tensor, dimension: int) -> Tensor:
    """Return `amax` of numbers that are not NaN. Their bits, read as integers, are compared five times as
    fast; among negative numbers the order is reversed."""
    bits = numbers.view(_INTEGERS[numbers.dtype])
    highest = bits.amax(dimension)
    return torch.where(highest < 0, bits.amin(dimension), highest).view(numbers.dtype)


def _for_each(pool: ThreadPoolExecutor | None, task: Callable[[int], None], items: Sequence[int]) -> None:
    if pool is None or len(items) < 2:
        for item in items:
            task(item)
    else:
        for _ in pool.map(task, items):
            pass


@contextmanager
def negative_pool(threads: int, device: torch.device) -> Iterator[ThreadPoolExecutor | None]:
    """Provide threads that search for negatives block by block, each with one thread inside its operations;
    None on a GPU."""
    if device.type != "cpu":
        yield None
        return
    with ThreadPoolExecutor(threads, "negatives", initializer=torch.set_num_threads, initargs=(1,)) as pool:
        yield pool
