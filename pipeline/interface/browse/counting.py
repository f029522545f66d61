"""Counts of pairs under rules: one pass over the prepared scores, shared by threads."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from paraforge.base.compiled import compiled
from paraforge.base.shards.pool import in_order
from paraforge.base.shards.resources import available_cores
from paraforge.interface.browse.prepared import FATE, NO_BIN, SOURCE, PreparedCorpus
from paraforge.interface.browse.rules import KEPT, Rules

BLOCK = 1 << 17
"""Rows that a thread counts at a time."""
_NOBODY, _SEVERAL = -1, -2


@dataclass(frozen=True)
class Look:
    """Which pairs are looked at, whatever their scores.

    sources: for each source's code, whether its pairs are.
    text: for each pair, whether it has the text that is searched for; None for all.
    """

    sources: npt.NDArray[np.bool_]
    text: npt.NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class Count:
    """Counts of pairs.

    overall: pairs by rank, looked at or not. ranks: blocks x ranks; of the pairs looked at.
    stayed: of the pairs looked at, those kept now and when the corpus was published.
    were_kept: those kept when it was published.
    sources: sources x 2: pairs looked at that came to selection, and kept ones.
    histograms: scores x 256 bins; pairs looked at that no other score or group rejects.
    """

    overall: npt.NDArray[np.int64]
    ranks: npt.NDArray[np.int64]
    stayed: int
    were_kept: int
    sources: npt.NDArray[np.int64]
    histograms: npt.NDArray[np.int64]

    @property
    def kept(self) -> int:
        """Kept pairs among those looked at."""
        return int(self.ranks[:, -1].sum())


class Counter:
    """Counts pairs of one corpus; one pass at a time."""

    def __init__(self, corpus: PreparedCorpus) -> None:
        self.corpus = corpus
        self.blocks = -(-corpus.pairs // BLOCK)
        fates = corpus.tables[FATE].to_pylist()
        self.was_kept = np.array([all(value is None for value in row.values()) for row in fates] or [True])

    def count(self, rules: Rules, look: Look) -> Count:
        """Count all pairs.

        rules: what rejects pairs. look: which pairs are looked at.
        """
        judge = _Judge(self.corpus, rules)
        ranks = np.zeros((self.blocks, len(rules.reasons) + 1), np.int64)
        overall = np.zeros(len(rules.reasons) + 1, np.int64)
        sources = np.zeros((len(look.sources), 2), np.int64)
        histograms = np.zeros((len(self.corpus.scores), NO_BIN + 1), np.int64)
        stayed = were_kept = 0
        source, fate = self.corpus.group(SOURCE), self.corpus.group(FATE)

        def block(index: int) -> tuple[Any, ...]:
            here = slice(index * BLOCK, min((index + 1) * BLOCK, self.corpus.pairs))
            found, only = judge.judge(here)
            tallied = _tally(
                found,
                only,
                _seen(look, source, here),
                source[here],
                fate[here],
                self.was_kept,
                len(rules.reasons),
                len(look.sources),
            )
            return *tallied, _histograms(only, self.corpus.bins[:, here])

        for index, part in enumerate(in_order(block, self.blocks, min(available_cores(), 8))):
            overall += part[0]
            ranks[index] = part[1]
            sources += part[2]
            stayed += part[3]
            were_kept += part[4]
            histograms += part[5]
        return Count(overall, ranks, stayed, were_kept, sources, histograms)

    def judged(
        self, rules: Rules, look: Look, block: int
    ) -> tuple[int, npt.NDArray[np.int16], npt.NDArray[np.int16]]:
        """First row of a block, each pair's rank (-1 if not looked at), and what alone rejects it."""
        here = slice(block * BLOCK, min((block + 1) * BLOCK, self.corpus.pairs))
        ranks, only = _Judge(self.corpus, rules).judge(here)
        ranks[~_seen(look, self.corpus.group(SOURCE), here)] = -1
        return here.start, ranks, only

    def reason(self, rules: Rules, row: int) -> str:
        """Why a pair is rejected; empty for a kept one."""
        ranks, _ = _Judge(self.corpus, rules).judge(slice(row, row + 1))
        return "" if ranks[0] == KEPT else rules.reasons[ranks[0]]


def _seen(look: Look, source: npt.NDArray[np.uint16], here: slice) -> npt.NDArray[np.bool_]:
    if look.sources.all():
        return np.ones(here.stop - here.start, bool) if look.text is None else look.text[here]
    seen = look.sources[source[here]]
    return seen if look.text is None else seen & look.text[here]


class _Judge:
    """Rules as arrays."""

    def __init__(self, corpus: PreparedCorpus, rules: Rules) -> None:
        self.corpus = corpus
        self.score = np.array([test.score for test in rules.tests], np.int64)
        self.bounds = np.array([(test.low, test.high) for test in rules.tests], np.float32).reshape(-1, 2)
        self.ranks = np.array([(test.refused, test.missing) for test in rules.tests], np.int16).reshape(-1, 2)
        names = list(corpus.layout.groups)
        # Groups that reject nobody are not read.
        judging = [name for name, codes in rules.codes.items() if (codes < KEPT).any()]
        self.group = np.array([names.index(name) for name in judging], np.int64)
        self.codes = np.full(
            (len(judging), max([len(rules.codes[name]) for name in judging], default=1)), KEPT, np.int16
        )
        for place, name in enumerate(judging):
            self.codes[place, : len(rules.codes[name])] = rules.codes[name]

    def judge(self, here: slice) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.int16]]:
        """Rank of each row, and what alone rejects it: a score's place, -1 nothing, -2 a group or several."""
        corpus = self.corpus
        return _judge(
            corpus.scores[:, here],
            corpus.groups[:, here],
            self.score,
            self.bounds,
            self.ranks,
            self.group,
            self.codes,
        )


@compiled
def _judge(
    scores: npt.NDArray[np.float32],
    groups: npt.NDArray[np.uint16],
    test_score: npt.NDArray[np.int64],
    test_bounds: npt.NDArray[np.float32],
    test_ranks: npt.NDArray[np.int16],
    judging: npt.NDArray[np.int64],
    codes: npt.NDArray[np.int16],
) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.int16]]:
    rows = scores.shape[1]
    ranks = np.full(rows, KEPT, np.int16)
    only = np.full(rows, _NOBODY, np.int16)
    for test in range(len(test_score)):
        column = test_score[test]
        values = scores[column]
        low, high = test_bounds[test, 0], test_bounds[test, 1]
        refused, missing = test_ranks[test, 0], test_ranks[test, 1]
        for row in range(rows):
            value = values[row]
            rank = np.int16(KEPT)
            if value != value:
                rank = missing
            elif value < low or value > high:
                rank = refused
            if rank < KEPT:
                ranks[row] = min(ranks[row], rank)
                before = only[row]
                only[row] = column if before in (_NOBODY, column) else _SEVERAL
    for place in range(len(judging)):
        group = groups[judging[place]]
        for row in range(rows):
            rank = codes[place, group[row]]
            if rank < KEPT:
                ranks[row] = min(ranks[row], rank)
                only[row] = _SEVERAL
    return ranks, only


@compiled
def _tally(
    ranks: npt.NDArray[np.int16],
    only: npt.NDArray[np.int16],
    seen: npt.NDArray[np.bool_],
    source: npt.NDArray[np.uint16],
    fate: npt.NDArray[np.uint16],
    was_kept: npt.NDArray[np.bool_],
    kept: int,
    sources: int,
) -> tuple[Any, ...]:
    rows = len(ranks)
    overall = np.zeros(kept + 1, np.int64)
    looked = np.zeros(kept + 1, np.int64)
    by_source = np.zeros((sources, 2), np.int64)
    stayed = were_kept = 0
    for row in range(rows):
        rank = min(ranks[row], kept)
        overall[rank] += 1
        if not seen[row]:
            only[row] = _SEVERAL
            continue
        looked[rank] += 1
        by_source[source[row], 0] += rank > 0
        before = was_kept[fate[row]]
        were_kept += before
        if rank == kept:
            by_source[source[row], 1] += 1
            stayed += before
    return overall, looked, by_source, stayed, were_kept


@compiled
def _histograms(only: npt.NDArray[np.int16], bins: npt.NDArray[np.uint8]) -> npt.NDArray[np.int32]:
    rows = len(only)
    # Two of each, so that equal bins in a row do not wait for each other.
    counted = np.zeros((len(bins), 2, 256), np.int32)
    for column in range(len(bins)):
        places = bins[column]
        for row in range(rows):
            passes = (only[row] == _NOBODY) | (only[row] == column)
            counted[column, row & 1, places[row]] += passes
    return counted[:, 0] + counted[:, 1]
