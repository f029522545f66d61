"""One corpus that is looked at: what it has, what a view of it counts, which pairs it shows, and its wrong
pairs under the same rules."""

from __future__ import annotations

from collections import Counter as Multiset
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.base.errors import InputError
from paraforge.corpus.columns import LABELS
from paraforge.corpus.publication.datasets import open_publication
from paraforge.corpus.publication.manifest import MANIFEST_NAME, REJECTED, Manifest
from paraforge.corpus.scorer import Scale
from paraforge.corpus.scoring.wrong_pairs import RIGHT, changed_meanings, find_wrong_pairs, other_rows
from paraforge.corpus.selection.filters import numbers
from paraforge.corpus.selection.parameters import SelectParameters, selection_of
from paraforge.corpus.selection.reasons import explain_filters
from paraforge.interface.browse.counting import Count, Counter, Look
from paraforge.interface.browse.histogram import Outlines, outlines
from paraforge.interface.browse.pairs import PairReader, drawn_rows, nearest_rows
from paraforge.interface.browse.prepared import FLAGS, SOURCE, PreparedCorpus, prepare
from paraforge.interface.browse.rules import KEPT, Rules, default_view, parameters_of, rules_of
from paraforge.interface.browse.view import RANDOM, View
from paraforge.interface.query.database import open_database
from paraforge.interface.query.pairs import Pieces, fixed, marked_words

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True)
class WrongPairs:
    """A sample of pairs that are known to be wrong.

    table: their texts and scores, see :func:`paraforge.corpus.scoring.wrong_pairs.write_wrong_pairs`.
    scores: names of the corpus' scores; ``values`` has those that are judged by wrong pairs.
    values: by place of the score; NaN where a pair lacks it.
    weights: pairs of the corpus that each stands for.
    """

    table: pa.Table
    scores: Sequence[str]
    values: dict[int, npt.NDArray[np.float64]]
    weights: npt.NDArray[np.float64]

    def passing(self, rules: Rules) -> npt.NDArray[np.bool_]:
        """Which of them no score that they have would reject."""
        passes = np.ones(len(self.weights), bool)
        for test in rules.tests:
            if test.score in self.values:
                values = self.values[test.score]
                missing = np.isnan(values)
                inside = (values >= test.low) & (values <= test.high)
                passes &= np.where(missing, test.missing >= KEPT, inside)
        return passes

    def share(self, rules: Rules) -> float:
        """Share of the wrong pairs that would pass, each by its weight."""
        return float(np.average(self.passing(rules), weights=self.weights))

    def histogram(self, score: str, scale: Scale) -> list[int]:
        """Wrong pairs a bin of the score's scale; empty where they do not have the score."""
        values = self.values.get(self.scores.index(score))
        if values is None:
            return []
        known = ~np.isnan(values)
        places = scale.bin_of(values[known])
        counts = np.bincount(places, weights=self.weights[known], minlength=scale.bins)
        return [round(count) for count in counts.tolist()]


def wrong_pairs_of(table: pa.Table | None, scores: Sequence[str]) -> WrongPairs | None:
    """The sample as it is counted; None where the corpus has none."""
    if table is None or not table.num_rows:
        return None
    values = {}
    for place, name in enumerate(scores):
        # Only what can tell right from wrong: the length of a wrong pair says nothing.
        if name in table.column_names and f"{RIGHT}{name}" in table.column_names:
            found, missing = numbers(table[name])
            values[place] = np.where(missing, np.nan, found).astype(np.float32).astype(np.float64)
    return WrongPairs(table, scores, values, table["weight"].to_numpy().astype(np.float64))


SHOWN_PAIRS = 10
_COUNTS = 32


@dataclass(frozen=True)
class Counted:
    """What a view counts.

    rules: what rejects pairs. count: of the pairs looked at. came: pairs looked at that came to selection.
    reasons: rejected pairs looked at, by reason. words: what the reasons mean.
    wrong_share: of the wrong pairs, the share that would pass. changed_share: of the pairs whose meaning was
        changed by rule.
    """

    rules: Rules
    count: Count
    came: int
    reasons: dict[str, int]
    words: dict[str, str]
    wrong_share: float | None
    changed_share: float | None

    @property
    def entering(self) -> int:
        """Pairs kept that the published corpus does not keep."""
        return self.count.kept - self.count.stayed

    @property
    def leaving(self) -> int:
        """Pairs that the published corpus keeps and the view does not."""
        return self.count.were_kept - self.count.stayed


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

    def __init__(self, corpus: PreparedCorpus, connection: duckdb.DuckDBPyConnection) -> None:
        self.corpus = corpus
        self.manifest: Manifest = next(one.manifest for one in corpus.datasets if one.manifest)
        self.published = selection_of(self.manifest.steps)
        self.base = self.published or SelectParameters(required=[], deciles=[])
        flags = corpus.tables[FLAGS]
        self.flags = [name for name in flags.column_names if True in flags[name].to_pylist()]
        self.default = default_view(self.base, list(corpus.scales), self.flags)
        # What matters most is above: the paraphrase score, then what the corpus was selected by.
        self.scales = dict(sorted(corpus.scales.items(), key=self._place))
        # Scores that some pairs lack: what becomes of these can be chosen.
        self.incomplete = corpus.incomplete
        schema = pa.unify_schemas([one.schema.remove_metadata() for one in corpus.datasets])
        self.integers = {one.name for one in schema if pa.types.is_integer(one.type)}
        self.sources = [str(name) for name in corpus.tables[SOURCE]["source"].to_pylist()]
        self.counter = Counter(corpus)
        self.reader = PairReader(corpus, connection)
        table = find_wrong_pairs([one.directory for one in corpus.datasets])
        self.wrong, self.changed = (
            None if table is None else wrong_pairs_of(kind(table), corpus.layout.scores)
            for kind in (other_rows, changed_meanings)
        )
        self._count = lru_cache(maxsize=_COUNTS)(self._counted)
        self._parameters: dict[str, SelectParameters] = {}

    def become(self, other: Browser) -> None:
        """Answer for another corpus from now on."""
        vars(self).update(vars(other))

    def _place(self, item: tuple[str, Scale]) -> tuple[bool, bool]:
        return item[0] != "paraphrase_score", self.default.intervals[item[0]].is_open

    @property
    def has_refused(self) -> bool:
        """Whether rejected pairs are there, too."""
        return any(one.name == REJECTED for one in self.corpus.datasets)

    def look(self, view: View) -> Look:
        """Which pairs a view looks at."""
        sources = np.array([not view.sources or name in view.sources for name in self.sources])
        return Look(sources, self.reader.search(view.text) if view.text else None)

    def count(self, view: View) -> Counted:
        """Counts of a view; those of the last ones are kept."""
        parameters = parameters_of(view, self.base)
        key = parameters.model_dump_json()
        return self._count(key, view.sources, view.text)

    def totals(self, view: View) -> Count:
        """Counts of all pairs that came to selection and that a view looks at."""
        return self._count("", view.sources, view.text).count

    def _counted(self, key: str, sources: tuple[str, ...], text: str) -> Counted:
        parameters = SelectParameters.model_validate_json(key) if key else None
        rules = rules_of(parameters, self.corpus)
        count = self.counter.count(rules, self.look(View({}, {}, sources, text=text)))
        reasons: Multiset[str] = Multiset()
        numbers = count.ranks.sum(axis=0).tolist()
        for reason, number in zip(rules.reasons[1:], numbers[1:-1], strict=True):
            reasons[reason] += number
        return Counted(
            rules,
            count,
            sum(numbers[1:]),
            dict((+reasons).most_common()),
            explain_filters(parameters) if parameters else {},
            self.wrong.share(rules) if self.wrong else None,
            self.changed.share(rules) if self.changed else None,
        )

    def histograms(self, view: View, counted: Counted) -> dict[str, Outlines]:
        """What is drawn of each score."""
        totals = self.totals(view).histograms
        found = {}
        for name, scale in self.scales.items():
            place = self.corpus.layout.scores.index(name)
            interval = view.intervals[name]
            found[name] = outlines(
                scale,
                totals[place, : scale.bins].tolist(),
                counted.count.histograms[place, : scale.bins].tolist(),
                interval.minimum,
                interval.maximum,
                self.wrong.histogram(name, scale) if self.wrong else (),
            )
        return found

    def pairs(self, view: View, counted: Counted) -> tuple[list[ShownPair], list[ShownPair]]:
        """Kept and rejected pairs to show: drawn at random, or those nearest to a threshold."""
        rules, look = counted.rules, self.look(view)
        if view.order != RANDOM:
            place = self.corpus.layout.scores.index(view.order)
            kept, refused = nearest_rows(self.counter, rules, look, place, SHOWN_PAIRS)
        else:
            last = len(rules.reasons)
            ranks = [rank for rank in range(1, last) if not view.reason or rules.reasons[rank] == view.reason]
            kept, refused = (
                drawn_rows(self.counter, rules, look, counted.count, chosen, SHOWN_PAIRS, view.draw)
                for chosen in ([last], ranks)
            )
        return self._shown(kept, counted), self._shown(refused, counted)

    def _shown(self, rows: Any, counted: Counted) -> list[ShownPair]:
        shown = []
        for row, pair in zip(rows.tolist(), self.reader.read(rows), strict=True):
            reason = self.counter.reason(counted.rules, row)
            words = counted.words.get(reason, reason.replace("_", " "))
            shown.append(self._shown_pair(pair, words, pair.get("source_text") or ""))
        return shown

    def _shown_pair(self, pair: Mapping[str, Any], reason: str = "", source_text: str = "") -> ShownPair:
        reference, translation = marked_words(pair.get("reference") or "", pair.get("translation") or "")
        scores = [
            (LABELS[name], format(pair[name], ".3g")) for name in self.scales if pair.get(name) is not None
        ]
        where = f"{pair.get('source') or ''}:{pair.get('line') or ''}"
        score = pair.get("paraphrase_score")
        main = "" if score is None else fixed(score, 2)
        return ShownPair(reference, translation, source_text, where, reason, main, scores)

    def wrong_pairs(self, counted: Counted) -> list[ShownPair]:
        """Wrong pairs that would pass, those with the highest paraphrase score first."""
        if self.wrong is None:
            return []
        shown = self.wrong.table["reference"].is_valid().to_numpy()  # selection keeps them, and no split
        rows = np.flatnonzero(self.wrong.passing(counted.rules) & shown)
        if "paraphrase_score" in self.scales and "paraphrase_score" in self.wrong.table.column_names:
            score = self.wrong.values[self.corpus.layout.scores.index("paraphrase_score")]
            rows = rows[np.argsort(-score[rows], kind="stable")]
        return [self._shown_pair(pair) for pair in self.wrong.table.take(rows[:SHOWN_PAIRS]).to_pylist()]


class Reopening:
    """Opens a corpus anew when another one is published under the same path, so that an open page goes on."""

    def __init__(
        self, corpus: Path, with_rejected: bool, stack: ExitStack, cache: Path | None = None
    ) -> None:
        self.directory, self.with_rejected, self.stack, self.cache = corpus, with_rejected, stack, cache
        self.lock = Lock()
        self.seen = self._state()
        self.browser = self._opened()

    def _state(self) -> tuple[int, int]:
        """Raises FileNotFoundError while the corpus is being made."""
        found = (self.directory / MANIFEST_NAME).stat()
        return found.st_ino, found.st_mtime_ns

    def _opened(self) -> Browser:
        datasets = open_publication(self.directory, self.with_rejected)
        if not sum(dataset.rows for dataset in datasets):
            raise InputError("there are no pairs to look at", self.directory)
        prepared = prepare(datasets) if self.cache is None else prepare(datasets, self.cache)
        browser = Browser(prepared, self.stack.enter_context(open_database(datasets)))
        # Loops are compiled before anybody waits for them.
        browser.count(browser.default)
        return browser

    def refresh(self) -> None:
        """Look at the corpus again. Raises InputError while there is none, or not a whole one."""
        with self.lock:
            try:
                state = self._state()
            except OSError as error:
                raise InputError("the corpus is being made again", self.directory) from error
            if state != self.seen:
                self.browser.become(self._opened())
                self.seen = state
