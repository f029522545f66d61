"""Choosing negatives over a mega-batch: MAX and MIX (W16 3.1.1, ParaNMT-50M Eq. 2), in blocks, on any
device."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Strategy = Literal["max", "mix"]
Precision = Literal["float32", "bfloat16"]
MAX_PROBABILITY = 0.5
"""MIX takes the most similar candidate with this probability, otherwise a uniform one."""
BLOCK_ROWS = 256
CHUNK = 64
"""The maximum of a row is sought in chunks first: a maximum alone is vectorised, one with its place is
not."""


class ForbiddenCandidates:
    """For every sentence of a mega-batch the sentences that may not be its negative.

    Sentences 0 .. n - 1 are the left sides and n .. 2n - 1 the right sides of n pairs. Sentence k may not
    take itself or the other side of its pair; with `identity`, nor any sentence that is identical to one
    of these two.

    identity: int64 or uint64 (2n,), equal for identical sentences, or None.
    """

    def __init__(self, pairs: int, identity: npt.NDArray[Any] | None = None) -> None:
        self.pairs = pairs
        own = np.arange(2 * pairs, dtype=np.int64)
        partner = np.concatenate([own[pairs:], own[:pairs]])
        rows = [own, own]
        columns = [own, partner]
        if identity is not None:
            repeated_rows, repeated_columns = _identical(identity)
            rows += [repeated_rows, partner[repeated_rows]]
            columns += [repeated_columns, repeated_columns]
        row = np.concatenate(rows)
        keys = np.unique(row * (2 * pairs) + np.concatenate(columns))
        self.rows, self.columns = np.divmod(keys, 2 * pairs)
        self.offsets = np.searchsorted(self.rows, np.arange(2 * pairs + 1))

    def of_rows(self, first: int, last: int) -> tuple[Tensor, Tensor]:
        """The forbidden (row - first, column) of rows first to last."""
        part = slice(self.offsets[first], self.offsets[last])
        return torch.from_numpy(self.rows[part] - first), torch.from_numpy(self.columns[part])

    def random_candidates(self, generator: np.random.Generator) -> npt.NDArray[np.int64]:
        """One uniform allowed candidate for every sentence, int64 (2n,); -1 where there is none."""
        sentences = 2 * self.pairs
        counts = np.diff(self.offsets)
        free = sentences - counts
        # The k-th allowed column: k plus the number of forbidden columns that come before it.
        chosen = (generator.random(sentences) * free).astype(np.int64)
        forbidden = self.columns
        for rank in range(int(counts.max())):
            has = counts > rank
            position = np.minimum(self.offsets[:-1] + rank, len(forbidden) - 1)
            chosen += has & (forbidden[position] <= chosen)
        chosen[free == 0] = -1
        return chosen


def _identical(identity: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """All ordered pairs (row, column) of different sentences with the same identity."""
    _, group, counts = np.unique(identity, return_inverse=True, return_counts=True)
    order = np.argsort(group, kind="stable")
    starts = np.concatenate([[0], np.cumsum(counts)])
    rows: list[npt.NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]
    columns: list[npt.NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]
    for number in np.flatnonzero(counts > 1):
        members = order[starts[number] : starts[number + 1]]
        rows.append(np.repeat(members, len(members)))
        columns.append(np.tile(members, len(members)))
    return np.concatenate(rows), np.concatenate(columns)


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
    """The negative of every left side and, two-sided, of every right side.

    Candidates are both sides of all other pairs; a sentence's own sides are never chosen.

    embeddings: (2 * pairs, dimension), all left sides, then all right sides, under the current parameters.
    forbidden: which candidates are not allowed; by default the sentence itself and its partner alone.
    generator: source of MIX's random numbers; they depend on it and on `pairs` alone, not on the embeddings.
    precision: of the products. With bfloat16 a cosine is right to about 0.004, so a near-maximum may be
        taken.
    pool: threads that share the blocks; the choice does not depend on it.

    Returns int64 (pairs,) or (2 * pairs,): numbers of sentences, as counted in `embeddings`.
    Raises ValueError where a sentence has no candidate (a single pair), or MIX has no generator.
    """
    if len(embeddings) != 2 * pairs:
        raise ValueError(f"{len(embeddings)} embeddings are not both sides of {pairs} pairs")
    if forbidden is None:
        forbidden = ForbiddenCandidates(pairs)
    anchors = 2 * pairs if two_sided else pairs
    best = _most_similar(embeddings, anchors, forbidden, precision, pool)
    if strategy == "mix":
        if generator is None:
            raise ValueError("MIX needs a generator of random numbers")
        random = torch.from_numpy(forbidden.random_candidates(generator))
        take_best = torch.from_numpy(generator.random(2 * pairs) < MAX_PROBABILITY)
        best = torch.where(take_best[:anchors].to(best.device), best, random[:anchors].to(best.device))
    if int(best.min()) < 0:
        raise ValueError("a sentence has no candidate for a negative: a mega-batch needs two different pairs")
    return best


def _most_similar(
    embeddings: Tensor,
    anchors: int,
    forbidden: ForbiddenCandidates,
    precision: Precision,
    pool: ThreadPoolExecutor | None,
) -> Tensor:
    unit = torch.nn.functional.normalize(embeddings.detach(), dim=1)
    if precision == "bfloat16":
        unit = unit.to(torch.bfloat16)
    sentences = len(unit)
    # Columns are padded to whole chunks; a padded column is as good as forbidden.
    padded = -(-sentences // CHUNK) * CHUNK
    columns = torch.cat([unit, unit.new_zeros(padded - sentences, unit.shape[1])]).T
    rows_of_block = BLOCK_ROWS if unit.device.type == "cpu" else 8 * BLOCK_ROWS
    best = torch.empty(anchors, dtype=torch.int64, device=unit.device)

    def search(first: int) -> None:
        last = min(first + rows_of_block, anchors)
        cosines = unit[first:last] @ columns
        cosines[:, sentences:] = -torch.inf
        row, column = forbidden.of_rows(first, last)
        cosines[row.to(unit.device), column.to(unit.device)] = -torch.inf
        chunks = cosines.view(last - first, padded // CHUNK, CHUNK)
        chunk = chunks.amax(2).argmax(1)
        within = chunks[torch.arange(last - first, device=unit.device), chunk]
        highest, place = within.max(1)
        found = chunk * CHUNK + place
        best[first:last] = torch.where(highest > -torch.inf, found, -1)

    _for_each(pool, search, range(0, anchors, rows_of_block))
    return best


def _for_each(pool: ThreadPoolExecutor | None, task: Callable[[int], None], items: Iterable[int]) -> None:
    if pool is None:
        for item in items:
            task(item)
    else:
        for _ in pool.map(task, items):
            pass
