"""One corpus that is looked at: what a view of it counts, and which pairs it shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

from paraforge.base.errors import InputError
from paraforge.corpus.columns import LABELS
from paraforge.corpus.publication.datasets import Dataset, open_publication
from paraforge.corpus.publication.manifest import MANIFEST_NAME, REJECTED, Manifest
from paraforge.corpus.publication.verdict_words import verdict_words
from paraforge.corpus.scoring.wrong_pairs import changed_meanings, find_wrong_pairs, other_rows
from paraforge.corpus.selection.parameters import SelectParameters, selection_of
from paraforge.corpus.selection.reasons import explain_filters
from paraforge.intake.bitext.block import REASONS
from paraforge.interface.browse.histogram import Outlines, outlines
from paraforge.interface.browse.pairs import Array, Judged, Mismatched, Pairs, Ranked, open_pairs
from paraforge.interface.browse.rules import RANDOM, View, default_view, parameters_of, tests_of
from paraforge.interface.query.pairs import Pieces, fixed, marked_words

SHOWN_PAIRS = 10
_COUNTS = 32


@dataclass(frozen=True)
class Counted:
    """What a view counts.

    judged: the tests. unjudged: filters that are not asked again. words: what the reasons mean.
    came, kept: pairs looked at that came to selection, and that nothing rejects.
    entering, leaving: pairs that would newly be kept, and would be kept no more.
    sources: for each source the pairs that came to selection, and the kept ones.
    reasons: rejected pairs looked at, by reason, the most frequent first.
    histograms: for each score pairs by bin: all, and those that no other score or filter rejects.
    mismatched, altered: shares of the mismatched pairs and of those with an altered meaning that pass.
    """

    judged: Judged
    unjudged: list[str]
    words: dict[str, str]
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


@dataclass(frozen=True)
class ShownPair:
    """One pair on the page."""

    reference: Pieces
    translation: Pieces
    source_text: str
    where: str
    reason: str
    score: str = ""
    scores: list[tuple[str, str]] = field(default_factory=list)


class Browser:
    """Answers what the page asks of one corpus; used by several threads."""

    def __init__(self, datasets: list[Dataset], pairs: Pairs) -> None:
        self.corpus = pairs
        self.manifest: Manifest = next(one.manifest for one in datasets if one.manifest)
        self.has_rejected = any(one.name == REJECTED for one in datasets)
        known = self.manifest.verdict.get("adequacy") and self.manifest.counts.kept
        self.adequacy = verdict_words(self.manifest).sentences[0] if known else ""
        self.published = selection_of(self.manifest.steps)
        self.base = self.published or SelectParameters(required=[], deciles=[])
        self.default = default_view(self.base, list(pairs.scales), pairs.flags)
        # What matters most is above: the paraphrase score, then what the corpus was selected by.
        self.scales = dict(
            sorted(
                pairs.scales.items(),
                key=lambda one: (one[0] != "paraphrase_score", self.default.intervals[one[0]].is_open),
            )
        )
        table = find_wrong_pairs([one.directory for one in datasets])
        samples = {} if table is None else {"wrong": other_rows(table), "changed": changed_meanings(table)}
        found = {name: Mismatched(pairs, name, one) for name, one in samples.items() if one.num_rows}
        self.wrong, self.changed = found.get("wrong"), found.get("changed")
        self._count = lru_cache(maxsize=_COUNTS)(self._counted)

    def count(self, view: View, everything: bool = False) -> Counted:
        """Count the pairs that a view looks at, or all pairs under its thresholds; the last ones are kept."""
        parameters = parameters_of(view, self.base).model_dump_json()
        return self._count(parameters, () if everything else view.sources, "" if everything else view.text)

    def _counted(self, key: str, sources: tuple[str, ...], text: str) -> Counted:
        parameters = SelectParameters.model_validate_json(key)
        words = explain_filters(parameters)
        tests, unjudged = tests_of(parameters, self.corpus.columns, list(self.scales))
        judged = Judged(tests, REASONS.keys() - words.keys())
        where = self.corpus.looked_at(sources, text)
        kept = came = entering = leaving = pairs = 0
        of_source = {name: [0, 0] for name in self.corpus.sources}
        reasons: Counter[str] = Counter()
        for rank, source, was_kept, number in self.corpus.count(judged, where):
            passes = rank == judged.kept
            pairs += number
            came += number * (rank > 0)
            kept += number * passes
            entering += number * (passes and not was_kept)
            leaving += number * (was_kept and not passes)
            of_source[source][0] += number * (rank > 0)
            of_source[source][1] += number * passes
            if 0 < rank < judged.kept:
                reasons[tests[rank - 1].reason] += number
        return Counted(
            judged,
            unjudged,
            words,
            came,
            kept,
            entering,
            leaving,
            {name: (first, second) for name, (first, second) in of_source.items()},
            dict(reasons.most_common()),
            self.corpus.histograms(judged, where, pairs),
            self.wrong.share(judged) if self.wrong else None,
            self.changed.share(judged) if self.changed else None,
        )

    def outlines(self, view: View, counted: Counted) -> dict[str, Outlines]:
        """Draw each score."""
        return {
            name: outlines(
                scale,
                counted.histograms[name][0].tolist(),
                counted.histograms[name][1].tolist(),
                view.intervals[name].minimum,
                view.intervals[name].maximum,
                self.wrong.bins.get(name, ()) if self.wrong else (),
            )
            for name, scale in self.scales.items()
        }

    def pairs(self, view: View, counted: Counted) -> tuple[list[ShownPair], list[ShownPair]]:
        """Return kept and rejected pairs to show: drawn at random, or those nearest to a threshold."""
        judged, where = counted.judged, self.corpus.looked_at(view.sources, view.text)
        if view.order != RANDOM:
            bounds = view.intervals[view.order]
            found = self.corpus.nearest(
                judged, where, view.order, bounds.minimum, bounds.maximum, SHOWN_PAIRS
            )
            return self._shown(found[0], counted), self._shown(found[1], counted)
        ranks = [
            rank
            for rank, test in enumerate(judged.tests, start=1)
            if not view.reason or test.reason == view.reason
        ]
        kept, rejected = (
            self.corpus.drawn(judged, where, chosen, SHOWN_PAIRS, view.draw)
            for chosen in ([judged.kept], ranks)
        )
        return self._shown(kept, counted), self._shown(rejected, counted)

    def _shown(self, rows: Ranked, counted: Counted) -> list[ShownPair]:
        tests = counted.judged.tests
        reasons = ["" if rank > len(tests) else counted.words_of(tests[rank - 1].reason) for _, rank in rows]
        read = self.corpus.read([row for row, _ in rows])
        return [self._shown_pair(pair, reason) for pair, reason in zip(read, reasons, strict=True)]

    def _shown_pair(self, pair: Mapping[str, Any], reason: str = "") -> ShownPair:
        reference, translation = marked_words(pair.get("reference") or "", pair.get("translation") or "")
        scores = [
            (LABELS[name], format(pair[name], ".3g")) for name in self.scales if pair.get(name) is not None
        ]
        where = f"{pair.get('source') or ''}:{pair.get('line') or ''}"
        score = pair.get("paraphrase_score")
        main = "" if score is None else fixed(score, 2)
        return ShownPair(reference, translation, pair.get("source_text") or "", where, reason, main, scores)

    def wrong_pairs(self, counted: Counted) -> list[ShownPair]:
        """Return mismatched pairs that would pass, those with the highest paraphrase score first."""
        if self.wrong is None:
            return []
        return [self._shown_pair(pair) for pair in self.wrong.passing(counted.judged, SHOWN_PAIRS)]


class Reopening:
    """Opens a corpus again when another is published under the same path, so that open pages survive."""

    def __init__(self, corpus: Path, with_rejected: bool, stack: ExitStack) -> None:
        """Raises InputError if there is no corpus or it has no pairs. stack: closes at the end."""
        self.directory, self.with_rejected, self.stack = corpus, with_rejected, stack
        self._lock = Lock()
        self._opened: list[ExitStack] = []
        self._seen = self._state()
        self._browser = self._open()

    def _state(self) -> tuple[int, int]:
        try:
            found = (self.directory / MANIFEST_NAME).stat()
        except OSError as error:
            raise InputError("the corpus is being made again", self.directory) from error
        return found.st_ino, found.st_mtime_ns

    def _open(self) -> Browser:
        datasets = open_publication(self.directory, self.with_rejected)
        if not sum(dataset.rows for dataset in datasets):
            raise InputError("there are no pairs to look at", self.directory)
        own = ExitStack()
        browser = Browser(datasets, own.enter_context(open_pairs(datasets)))
        self.stack.push(own)
        # Answers may still be read from the one before.
        self._opened.append(own)
        for older in self._opened[:-2]:
            older.close()
        self._opened = self._opened[-2:]
        return browser

    def current(self) -> Browser:
        """Return the corpus as it is now. Raises InputError while there is none, or not a whole one."""
        with self._lock:
            state = self._state()
            if state != self._seen:
                self._browser = self._open()
                self._seen = state
            return self._browser
