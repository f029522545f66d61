"""The filters of section ``select`` as rules on prepared scores: a count gives what selection would."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from paraforge.corpus.selection.filters import Filter, FilterParameters
from paraforge.corpus.selection.filters.bounds import Bounds, ScoreFilter
from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.corpus.selection.reasons import explain_filters
from paraforge.intake.bitext.block import REASONS
from paraforge.interface.browse.prepared import FATE, PreparedCorpus

KEPT = 1 << 12
"""Rank of a pair that no filter rejects: above that of every reason."""
LEFT_OUT = 0
"""Rank of a pair that did not come to selection: it was rejected at ingest or could not be translated."""


@dataclass(frozen=True)
class ScoreTest:
    """One score's bounds in a filter, both inclusive; a rank is the place of a reason among all."""

    score: int
    low: np.float32
    high: np.float32
    refused: int
    missing: int


@dataclass
class Rules:
    """What decides about a pair: the smallest rank that a test or a group's code gives it.

    reasons: by rank; a reason may have several ranks. tests: of scores.
    codes: for each group, the rank that each of its codes gives.
    unjudged: filters that cannot be asked here: they look at all pairs together, or read files. A pair that
        they rejected when the corpus was published stays rejected, others are accepted.
    """

    reasons: list[str]
    tests: list[ScoreTest]
    codes: dict[str, npt.NDArray[np.int16]]
    unjudged: list[str] = field(default_factory=list)


def rules_of(parameters: SelectParameters | None, corpus: PreparedCorpus) -> Rules:
    """Rules that reject what ``parameters`` reject, for the same reasons.

    parameters: section ``select``; None for rules that accept whatever came to selection.
    corpus: what they are asked about.
    """
    codes = {name: np.full(max(table.num_rows, 1), KEPT, np.int16) for name, table in corpus.tables.items()}
    rules = Rules(["left out"], [], codes)
    _leave_out(rules, corpus, parameters)
    if parameters is None:
        return rules
    required = tuple(name for name in parameters.required if name in corpus.layout.scores)
    _add_score_filter(rules, corpus, ScoreFilter("required", required))
    for one in parameters.filters:
        _add(rules, corpus, one)
    return rules


def _leave_out(rules: Rules, corpus: PreparedCorpus, parameters: SelectParameters | None) -> None:
    """Pairs that failed, and those with a reason that only ingest gives."""
    chosen = explain_filters(parameters) if parameters else {}
    at_ingest = REASONS.keys() - chosen.keys()
    table = corpus.tables[FATE]
    for code, row in enumerate(table.to_pylist()):
        if row.get("failed") is not None or row.get("rejected") in at_ingest:
            rules.codes[FATE][code] = LEFT_OUT


class _NoPairs:
    """In place of all pairs, for filters that look at one pair at a time: they ask for the columns alone."""

    column_names: tuple[str, ...] = ()


def _add(rules: Rules, corpus: PreparedCorpus, one: FilterParameters) -> None:
    built: Filter | None = None
    if not one.needs_all_pairs and set(one.columns()) <= set(corpus.layout.columns):
        # The rest of AcceptedPairs is for filters that need all pairs, which are not asked here.
        built = one.prepare(_NoPairs())  # type: ignore[arg-type]  # only column_names
    if isinstance(built, ScoreFilter) and set(built.columns) <= set(corpus.layout.scores):
        _add_score_filter(rules, corpus, built)
        return
    read = set(built.columns) if built else {""}
    group = next((name for name, columns in corpus.layout.groups.items() if read <= set(columns)), None)
    if built is None or group is None:
        _add_unjudged(rules, corpus, one.reason)
        return
    first = len(rules.reasons)
    rules.reasons += built.reasons
    verdicts = built.verdicts(corpus.tables[group], 0).astype(np.int16)
    _refuse(rules.codes[group], verdicts > 0, first + verdicts - 1)


def _add_score_filter(rules: Rules, corpus: PreparedCorpus, built: ScoreFilter) -> None:
    """Missing values come first: within a filter, they are the reason also where another value is outside."""
    first = len(rules.reasons)
    rules.reasons += [*built.reasons[1:], built.reasons[0]]
    low, high = inclusive(built.bounds)
    for place, column in enumerate(built.columns):
        missing = first + place if built.missing == "refuse" else KEPT
        score = corpus.layout.scores.index(column)
        rules.tests.append(ScoreTest(score, low, high, first + len(built.columns), missing))


def inclusive(bounds: Bounds) -> tuple[np.float32, np.float32]:
    """The smallest and the largest 32-bit number inside."""
    low, high = np.float32(-np.inf), np.float32(np.inf)
    if bounds.minimum is not None:
        low = np.float32(bounds.minimum)
        low = low if bounds.closed in ("both", "left") else np.nextafter(low, high)
    if bounds.maximum is not None:
        high = np.float32(bounds.maximum)
        high = high if bounds.closed in ("both", "right") else np.nextafter(high, np.float32(-np.inf))
    return low, high


def _add_unjudged(rules: Rules, corpus: PreparedCorpus, reason: str) -> None:
    table = corpus.tables[FATE]
    rules.unjudged.append(reason)
    rules.reasons.append(reason)
    if "rejected" in table.column_names:
        refused = np.array([value == reason for value in table["rejected"].to_pylist()], bool)
        _refuse(rules.codes[FATE], refused, np.full(len(refused), len(rules.reasons) - 1))


def _refuse(
    codes: npt.NDArray[np.int16], refused: npt.NDArray[np.bool_], ranks: npt.NDArray[np.integer]
) -> None:
    """Give codes a rank where no earlier filter rejects them."""
    codes[refused] = np.minimum(codes[refused], ranks[refused])
