"""One corpus that is looked at: what a view of it counts, and which pairs it shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
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
from paraforge.interface.browse.pairs import Array, Mismatched, Pairs, Ranked, open_pairs
from paraforge.interface.browse.rules import RANDOM, Judged, View, default_view
from paraforge.interface.query.pairs import Pieces, fixed, marked_words

SHOWN_PAIRS = 10


@dataclass(frozen=True)
class Counted:
    """What a view counts.

    judged: the tests. words: what the reasons mean.
    came, kept: pairs looked at that came to selection, and that nothing rejects.
    entering, leaving: pairs that would newly be kept, and would be kept no more.
    sources: for each source the pairs that came to selection, and the kept ones.
    reasons: rejected pairs looked at, by reason, the most frequent first.
    histograms: for each score pairs by bin: all, and those that no other score or filter rejects.
    mismatched, altered: shares of the mismatched pairs and of those with an altered meaning that pass.
    """

    judged: Judged
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
    score: str
    scores: list[tuple[str, str]]


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
        self.default = default_view(self.base, pairs.scales, pairs.flags)
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

    def count(self, parameters: SelectParameters, sources: Sequence[str] = (), text: str = "") -> Counted:
        """Count pairs under thresholds: those of some sources, or all, with a text in a side."""
        judged = Judged(parameters, self.corpus.columns, self.scales)
        where = self.corpus.looked_at(sources, text)
        rows = self.corpus.count(judged, where)
        kept = sum(pairs for rank, _, _, pairs in rows if rank == judged.kept)
        stayed = sum(pairs for rank, _, was_kept, pairs in rows if was_kept and rank == judged.kept)
        of_source = dict.fromkeys(self.corpus.sources, (0, 0))
        reasons: Counter[str] = Counter()
        for rank, source, _, pairs in rows:
            came, passed = of_source[source]
            of_source[source] = (came + pairs * (rank > 0), passed + pairs * (rank == judged.kept))
            if 0 < rank < judged.kept:
                reasons[judged.tests[rank - 1].reason] += pairs
        return Counted(
            judged,
            explain_filters(parameters),
            kept + reasons.total(),
            kept,
            kept - stayed,
            sum(pairs for _, _, was_kept, pairs in rows if was_kept) - stayed,
            of_source,
            dict(reasons.most_common()),
            self.corpus.histograms(judged, where, sum(row[-1] for row in rows)),
            self.wrong.share(judged) if self.wrong else None,
            self.changed.share(judged) if self.changed else None,
        )

    def pairs(self, view: View, counted: Counted) -> dict[str, list[ShownPair]]:
        """Return pairs to show: kept and rejected ones, drawn at random or nearest to a threshold, and
        mismatched pairs that would pass, those with the highest paraphrase score first."""
        judged, where = counted.judged, self.corpus.looked_at(view.sources, view.text)
        if view.order != RANDOM:
            bounds = view.intervals[view.order]
            sides = self.corpus.nearest(
                judged, where, view.order, bounds.minimum, bounds.maximum, SHOWN_PAIRS
            )
        else:
            ranks = [
                rank
                for rank, test in enumerate(judged.tests, start=1)
                if not view.reason or test.reason == view.reason
            ]
            sides = (
                self.corpus.drawn(judged, where, [judged.kept], SHOWN_PAIRS, view.draw),
                self.corpus.drawn(judged, where, ranks, SHOWN_PAIRS, view.draw),
            )
        wrong = self.wrong.passing(judged, SHOWN_PAIRS) if self.wrong else []
        return {
            "kept": self._shown(sides[0], counted),
            "rejected": self._shown(sides[1], counted),
            "wrong": [self._shown_pair(pair) for pair in wrong],
        }

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


@contextmanager
def open_browser(corpus: Path, with_rejected: bool = True) -> Iterator[Browser]:
    """Read a published corpus. Raises InputError if there is none, it is damaged, or it has no pairs."""
    datasets = open_publication(corpus, with_rejected)
    if not sum(dataset.rows for dataset in datasets):
        raise InputError("there are no pairs to look at", corpus)
    with open_pairs(datasets) as pairs:
        yield Browser(datasets, pairs)


def reopening(corpus: Path, with_rejected: bool, stack: ExitStack) -> Callable[[], Browser]:
    """Read a corpus, and give a function that returns it as it is now: read again where another has been
    published under the same path, so that open pages survive.

    stack: closes what is open in the end. Both raise InputError as :func:`open_browser` does, and while there
    is no whole corpus.
    """
    lock = Lock()
    opened: list[tuple[tuple[int, int], ExitStack, Browser]] = []

    def current() -> Browser:
        with lock:
            try:
                found = (corpus / MANIFEST_NAME).stat()
            except OSError as error:
                raise InputError("the corpus is being made again", corpus) from error
            state = found.st_ino, found.st_mtime_ns
            if not opened or opened[-1][0] != state:
                own = ExitStack()
                opened.append((state, own, own.enter_context(open_browser(corpus, with_rejected))))
                stack.push(own)
                # Answers may still be read from the one before.
                for _, older, _ in opened[:-2]:
                    older.close()
                del opened[:-2]
            return opened[-1][2]

    current()
    return current
