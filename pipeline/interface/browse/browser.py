"""The state behind the page of one corpus: counts of a view, and the pairs to show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from paraforge.base.errors import InputError
from paraforge.corpus.publication.datasets import Dataset, open_publication
from paraforge.corpus.publication.manifest import MANIFEST_NAME, REJECTED, Manifest
from paraforge.corpus.publication.verdict_words import verdict_words
from paraforge.corpus.scoring.wrong_pairs import changed_meanings, find_wrong_pairs, other_rows
from paraforge.corpus.selection.parameters import SelectParameters, explain_filters, selection_of
from paraforge.interface.browse.pairs import Array, Mismatched, Pairs, open_pairs
from paraforge.interface.browse.rules import Judged, View, default_view

SHOWN_PAIRS = 10


@dataclass(frozen=True)
class Counted:
    """The counts of a view.

    judged: the tests. words: explanations of the reasons.
    exact: whether the counts are exact, not from a sample.
    came, kept: pairs in the view that reached selection, and those that nothing rejects.
    entering, leaving: pairs that would newly be kept, and that would no longer be kept.
    sources: for each source the pairs that came to selection, and the kept ones.
    reasons: rejected pairs in the view by reason, the most frequent first.
    histograms: for each score, pairs by bin: all, and those that no other score or filter rejects.
    mismatched, altered: shares of the mismatched pairs and of those with an altered meaning that pass.
    """

    judged: Judged
    words: dict[str, str]
    exact: bool
    came: int
    kept: int
    entering: int
    leaving: int
    sources: dict[str, tuple[int, int]]
    reasons: dict[str, int]
    histograms: dict[str, tuple[Array, Array]]
    mismatched: float | None
    altered: float | None

    def words_of(self, reason: str) -> str:
        """Put a reason into words."""
        return self.words.get(reason, reason.replace("_", " "))


Shown = list[tuple[dict[str, Any], str]]
"""Pairs to show, each with the reason for which it is rejected, or an empty one."""


class Browser:
    """Answers the page's requests for one corpus, one at a time."""

    def __init__(self, datasets: list[Dataset], pairs: Pairs) -> None:
        self.corpus = pairs
        self.manifest: Manifest = next(one.manifest for one in datasets if one.manifest)
        self.has_rejected = any(one.name == REJECTED for one in datasets)
        verdict, kept_pairs = self.manifest.verdict, self.manifest.counts.kept
        known = verdict.get("adequacy") and kept_pairs
        self.adequacy = verdict_words(verdict, kept_pairs)[0] if known else ""
        self.published = selection_of(self.manifest.steps)
        self.base = self.published or SelectParameters(required=[], deciles=[])
        self.default = default_view(self.base, pairs.scales, pairs.flags)
        # The most important scores come first: the paraphrase score, then those of the selection.
        self.scales = dict(
            sorted(
                pairs.scales.items(),
                key=lambda one: (one[0] != "paraphrase_score", self.default.bounds[one[0]] == (None, None)),
            )
        )
        table = find_wrong_pairs([one.directory for one in datasets])
        samples = {} if table is None else {"wrong": other_rows(table), "changed": changed_meanings(table)}
        found = {name: Mismatched(pairs, name, one) for name, one in samples.items() if one.num_rows}
        self.wrong, self.changed = found.get("wrong"), found.get("changed")

    def count(self, parameters: SelectParameters, text: str = "", exact: bool = True) -> Counted:
        """Count pairs under thresholds: those with a text in a side, or all.

        exact: otherwise the counts are those of a sample, if there are many pairs.
        """
        judged = Judged(parameters, self.corpus.columns, self.scales)
        looked = self.corpus.looked_at(text)
        weight = 1.0 if exact else looked.weight
        verdicts = [
            (rank, source, was_kept, round(pairs * weight))
            for rank, source, was_kept, pairs in self.corpus.count(
                judged, looked.table if exact else looked.sample
            )
        ]
        kept = sum(pairs for rank, _, _, pairs in verdicts if rank == judged.kept)
        stayed = sum(pairs for rank, _, was_kept, pairs in verdicts if was_kept and rank == judged.kept)
        of_source = dict.fromkeys(self.corpus.sources, (0, 0))
        reasons: Counter[str] = Counter()
        for rank, source, _, pairs in verdicts:
            came, passed = of_source[source]
            of_source[source] = (came + pairs * (rank > 0), passed + pairs * (rank == judged.kept))
            if 0 < rank < judged.kept:
                reasons[judged.tests[rank - 1].reason] += pairs
        return Counted(
            judged,
            explain_filters(parameters),
            weight == 1,
            kept + reasons.total(),
            kept,
            kept - stayed,
            sum(pairs for _, _, was_kept, pairs in verdicts if was_kept) - stayed,
            of_source,
            dict(reasons.most_common()),
            self.corpus.histograms(judged, looked.sample),
            self.wrong.share(judged) if self.wrong else None,
            self.changed.share(judged) if self.changed else None,
        )

    def pairs(self, view: View, counted: Counted) -> dict[str, Shown]:
        """Return pairs to show: kept and rejected ones, drawn at random, and mismatched pairs that would
        pass, those with the highest paraphrase score first."""
        judged, looked = counted.judged, self.corpus.looked_at(view.q)
        rejecting = [
            rank
            for rank, test in enumerate(judged.tests, start=1)
            if not view.reason or test.reason == view.reason
        ]
        words = [*(counted.words_of(test.reason) for test in judged.tests), ""]
        shown: dict[str, Shown] = {}
        for side, ranks in (("kept", [judged.kept]), ("rejected", rejecting)):
            drawn = self.corpus.drawn(judged, looked, ranks, SHOWN_PAIRS, view.draw)
            reasons = [words[rank - 1] for _, _, rank in drawn]
            shown[side] = list(zip(self.corpus.read(drawn), reasons, strict=True))
        wrong = self.wrong.passing(judged, SHOWN_PAIRS) if self.wrong else []
        return {**shown, "wrong": [(pair, "") for pair in wrong]}


@contextmanager
def open_browser(corpus: Path, with_rejected: bool = True) -> Iterator[Browser]:
    """Read a published corpus. Raises InputError if there is none, it is damaged, or it has no pairs."""
    datasets = open_publication(corpus, with_rejected)
    if not sum(dataset.rows for dataset in datasets):
        raise InputError("there are no pairs to look at", corpus)
    with open_pairs(datasets) as pairs:
        yield Browser(datasets, pairs)


Current = Callable[[], AbstractContextManager[Browser]]


@contextmanager
def reopening(corpus: Path, with_rejected: bool) -> Iterator[Current]:
    """Read a corpus, and return a context manager that gives it to one thread at a time. If another corpus
    has been published under the same path, it is read again, so that open pages keep working.

    Both raise InputError as :func:`open_browser` does, and while the corpus is incomplete.
    """
    lock = Lock()
    state: tuple[int, int] | None = None
    browser: Browser

    with ExitStack() as opened:

        @contextmanager
        def current() -> Iterator[Browser]:
            nonlocal state, browser
            with lock:
                try:
                    found = (corpus / MANIFEST_NAME).stat()
                except OSError as error:
                    raise InputError("the corpus is being rebuilt", corpus) from error
                if state != (found.st_ino, found.st_mtime_ns):
                    state = None
                    opened.close()
                    browser = opened.enter_context(open_browser(corpus, with_rejected))
                    state = found.st_ino, found.st_mtime_ns
                yield browser

        with current():
            pass
        yield current
