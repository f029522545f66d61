"""What the HTML report tells of a corpus, gathered from the published files, metrics and plots."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.bitext.reasons import REASONS
from pipeline.configuration.report import ReportParameters
from pipeline.errors import InputError
from pipeline.query.database import fetch, open_database
from pipeline.query.datasets import Dataset, neighbours, open_published
from pipeline.query.sample import Band, sample_pairs
from pipeline.report.flow import Fate
from pipeline.report.svg import Bar, Cell
from pipeline.report.training import Curves, ResultTable, read_curves, read_metrics, result_tables
from pipeline.selection.fate import Counts
from pipeline.selection.manifest import KEPT, Manifest
from pipeline.selection.statistics import BAND_EDGES, BANDS

if TYPE_CHECKING:
    import duckdb

OTHERS = "other sources"
OTHER_REASONS = "other reasons"
HEAT_STEP = (0.05, 0.05)
LONGEST = 60
_MEANS = (
    ("paraphrase_score", "paraphrase score"),
    ("overlap_1", "unigram overlap"),
    ("overlap_2", "bigram overlap"),
    ("overlap_3", "trigram overlap"),
    ("copy_rate", "copy rate"),
    ("translation_score", "translation score"),
    ("reference_tokens", "tokens of the reference"),
    ("translation_tokens", "tokens of the translation"),
)
_SHOWN = ("source", "line", "cs", "reference", "translation", "paraphrase_score", "overlap_3")


@dataclass(frozen=True)
class BandRow:
    """A score band: its pairs, their mean trigram overlap, and examples."""

    name: str
    pairs: int
    overlap: float | None
    kept: int
    kept_overlap: float | None
    examples: list[dict[str, Any]]
    examples_refused: bool


@dataclass(frozen=True)
class LexiconEntries:
    """Of the lexicon: how many entries, and the best and worst by adjusted PMI."""

    entries: int
    best: list[dict[str, Any]]
    worst: list[dict[str, Any]]


@dataclass(frozen=True)
class Content:
    """All that the report tells.

    Attributes:
        flow_sources, flow_fates, flow_links: see :func:`pipeline.report.flow.flow_picture`.
        fates: every reason, also those that the flow picture puts together.
        scores: histogram of the paraphrase score of all sources, then of each.
        heat: pairs by paraphrase score and trigram overlap.
        lengths: histograms of the tokens of reference and translation.
        means: name, mean over kept and over refused pairs.
        lexicon: None where there is none; ``lexicon_missing`` says why.
        results: tables of evaluation results found among the metrics.
    """

    title: str
    manifest: Manifest
    counts: Counts
    flow_sources: list[tuple[str, int]]
    flow_fates: list[Fate]
    flow_links: list[list[int]]
    fates: list[Fate]
    scores: list[tuple[str, list[Bar]]]
    heat: list[Cell]
    lengths: list[tuple[str, list[Bar]]]
    bands: list[BandRow]
    means: list[tuple[str, float | None, float | None]]
    lexicon: LexiconEntries | None
    lexicon_missing: str | None
    curves: list[Curves]
    results: list[ResultTable]
    metrics: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def engine(self) -> str | None:
        """Translation engine of the run, if the metrics tell."""
        engine = self.metrics.get("translate", {}).get("engine")
        return None if engine is None else str(engine)


def gather(
    corpus: Path, parameters: ReportParameters, metrics: Path | None = None, plots: Path | None = None
) -> Content:
    """Gather what there is.

    Args:
        corpus: a published corpus; refused pairs and lexicon are taken from beside it.
        parameters: how much to show.
        metrics, plots: directories of metrics (JSON) and training curves (CSV).

    Raises:
        InputError: there is no corpus, or a file is missing or damaged.
    """
    dataset = open_published(corpus)
    if dataset.manifest is None or dataset.name != KEPT:
        raise InputError(
            "these are refused pairs", corpus, remedy="Name the directory of the corpus beside them."
        )
    views, missing = neighbours(dataset)
    manifest = dataset.manifest
    shown = [source for source, _ in _largest(manifest)[: parameters.sources]]
    if len(shown) + 1 == len(manifest.sources):
        shown = [source for source, _ in _largest(manifest)]
    values = read_metrics(metrics)
    with open_database(list(views.values())) as connection:
        figures = _Figures(connection, views, shown)
        fates = _fates(manifest.counts)
        flow_fates = _joined_fates(fates, parameters.reasons)
        return Content(
            title=parameters.title or manifest.name,
            manifest=manifest,
            counts=manifest.counts,
            flow_sources=_flow_sources(manifest, shown),
            flow_fates=flow_fates,
            flow_links=_links(manifest, shown, flow_fates),
            fates=fates,
            scores=figures.scores(),
            heat=figures.heat(),
            lengths=figures.lengths(),
            bands=_bands(figures, views, parameters),
            means=figures.means(),
            lexicon=_lexicon(connection, views, parameters.entries),
            lexicon_missing=missing.get("lexicon"),
            curves=read_curves(plots),
            results=result_tables(values),
            metrics=values,
        )


def _largest(manifest: Manifest) -> list[tuple[str, int]]:
    rows = [(source, counts.rows_in) for source, counts in manifest.sources.items()]
    return sorted(rows, key=lambda item: (-item[1], item[0]))


def _flow_sources(manifest: Manifest, shown: Sequence[str]) -> list[tuple[str, int]]:
    rows = [(source, manifest.sources[source].rows_in) for source in shown]
    others = manifest.counts.rows_in - sum(number for _, number in rows)
    return [*rows, *([(OTHERS, others)] if others else [])]


def _fates(counts: Counts) -> list[Fate]:
    fates = [Fate("kept", "kept", counts.kept, "published in the corpus")]
    for reason, number in counts.rejected.most_common():
        if reason in REASONS:
            fates.append(Fate(reason, "ingest", number, f"refused as it came in: {REASONS[reason]}"))
        elif reason.startswith("no_"):
            what = reason.removeprefix("no_").replace("_", " ")
            fates.append(Fate(reason, "filter", number, f"refused by select: it has no {what}"))
        else:
            fates.append(Fate(reason, "filter", number, f"refused by the filter {reason} of select"))
    for reason, number in counts.failed.most_common():
        fates.append(Fate(reason, "failed", number, "could not be translated"))
    return fates


def _joined_fates(fates: list[Fate], most: int) -> list[Fate]:
    """The kept rows and the largest reasons; the rest as one."""
    if len(fates) <= most + 2:
        return fates
    apart = [fates[0], *sorted(fates[1:], key=lambda fate: -fate.rows)[:most]]
    rest = sum(fate.rows for fate in fates) - sum(fate.rows for fate in apart)
    return [*apart, Fate(OTHER_REASONS, "filter", rest, "")]


def _links(manifest: Manifest, shown: Sequence[str], fates: Sequence[Fate]) -> list[list[int]]:
    """Rows of each source, and of the others, by fate."""
    named = {fate.name for fate in fates}
    table: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for source, counts in manifest.sources.items():
        row = table[source if source in shown else OTHERS]
        row["kept"] += counts.kept
        for reason, number in [*counts.rejected.items(), *counts.failed.items()]:
            row[reason if reason in named else OTHER_REASONS] += number
    names = [*shown, *([OTHERS] if OTHERS in table else [])]
    return [[table[name][fate.name] for fate in fates] for name in names]


class _Figures:
    """Histograms and means over kept and refused pairs."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, views: dict[str, Dataset], shown: Sequence[str]
    ) -> None:
        self.connection = connection
        self.columns = set.intersection(
            *(set(dataset.schema.names) for name, dataset in views.items() if name != "lexicon")
        )
        self.shown = list(shown)
        self.parts = [
            (name, "true" if name == KEPT else "false") for name in ("corpus", "rejected") if name in views
        ]

    def _union(self, *columns: str, where: str = "true") -> str:
        # Columns are named one by one: only these are read.
        listed = ", ".join(("source", *columns))
        return " UNION ALL ".join(
            f"SELECT {listed}, {kept} AS kept FROM {view} WHERE {where}" for view, kept in self.parts  # noqa: S608
        )

    def has(self, *columns: str) -> bool:
        """Whether the corpus has the columns."""
        return self.columns >= set(columns)

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Rows of a query."""
        return list(fetch(self.connection, sql).to_pylist())

    def scores(self) -> list[tuple[str, list[Bar]]]:
        """Histograms of the paraphrase score in bins of 0.05: of all sources, then of each."""
        if not self.has("paraphrase_score"):
            return []
        found = self.rows(
            "SELECT source, kept, least(19, greatest(-20, floor(paraphrase_score * 20 + 1e-6)))::INTEGER AS bin, "
            f"count(*) AS pairs FROM ({self._union('paraphrase_score', where='paraphrase_score IS NOT NULL')}) "
            "GROUP BY ALL"
        )
        if not found:
            return []
        low = min(row["bin"] for row in found)
        groups: dict[str, dict[tuple[int, bool], int]] = defaultdict(lambda: defaultdict(int))
        for row in found:
            for name in ("all sources", row["source"] if row["source"] in self.shown else OTHERS):
                groups[name][row["bin"], row["kept"]] += row["pairs"]
        names = ["all sources", *(name for name in [*self.shown, OTHERS] if name in groups)]
        if len(names) == 2:
            names = names[:1]
        return [
            (
                name,
                [
                    Bar(bin / 20, (bin + 1) / 20, groups[name][bin, True], groups[name][bin, False])
                    for bin in range(low, 20)
                ],
            )
            for name in names
        ]

    def heat(self) -> list[Cell]:
        """Pairs by paraphrase score and trigram overlap."""
        if not self.has("paraphrase_score", "overlap_3"):
            return []
        known = "paraphrase_score IS NOT NULL AND overlap_3 IS NOT NULL"
        found = self.rows(
            "SELECT least(19, greatest(-20, floor(paraphrase_score * 20 + 1e-6)))::INTEGER AS x, "
            "least(19, floor(overlap_3 * 20 + 1e-6))::INTEGER AS y, count(*) AS pairs "
            f"FROM ({self._union('paraphrase_score', 'overlap_3', where=known)}) GROUP BY ALL ORDER BY ALL"
        )
        return [Cell(row["x"] / 20, row["y"] / 20, row["pairs"]) for row in found]

    def lengths(self) -> list[tuple[str, list[Bar]]]:
        """Histograms of the tokens of both sides; the last bin has all longer ones."""
        result = []
        for column, name in (("reference_tokens", "reference"), ("translation_tokens", "translation")):
            if not self.has(column):
                continue
            found = self.rows(
                f"SELECT kept, least({column}, {LONGEST})::INTEGER AS bin, count(*) AS pairs "
                f"FROM ({self._union(column, where=f'{column} IS NOT NULL')}) GROUP BY ALL"
            )
            counts: dict[tuple[int, bool], int] = {
                (row["bin"], row["kept"]): row["pairs"] for row in found
            }
            last = max((row["bin"] for row in found), default=0)
            bars = [
                Bar(bin, bin + 1, counts.get((bin, True), 0), counts.get((bin, False), 0))
                for bin in range(last + 1)
            ]
            result.append((name, bars))
        return result

    def bands(self) -> list[dict[str, Any]]:
        """Pairs and mean trigram overlap of each band, of all scored pairs and of kept ones."""
        if not self.has("paraphrase_score", "overlap_3"):
            return []
        cases = []
        for index, (low, high) in enumerate(zip(BAND_EDGES[:-1], BAND_EDGES[1:], strict=True)):
            cases.append(f"WHEN {Band(low, high).condition('paraphrase_score')} THEN {index}")
        found = self.rows(
            f"SELECT CASE {' '.join(cases)} END AS band, count(*) AS pairs, avg(overlap_3::DOUBLE) AS overlap, "
            "count(*) FILTER (kept) AS kept, avg(overlap_3::DOUBLE) FILTER (kept) AS kept_overlap "
            f"FROM ({self._union('paraphrase_score', 'overlap_3', where='paraphrase_score IS NOT NULL')}) "
            "GROUP BY band"
        )
        by_band = {row["band"]: row for row in found}
        nothing = {"pairs": 0, "overlap": None, "kept": 0, "kept_overlap": None}
        return [by_band.get(index, nothing) for index in range(len(BANDS))]

    def means(self) -> list[tuple[str, float | None, float | None]]:
        """Means over kept and over refused pairs."""
        wanted = [(column, name) for column, name in _MEANS if self.has(column)]
        if not wanted:
            return []
        sums = ", ".join(f"avg({column}::DOUBLE) AS {column}" for column, _ in wanted)
        sides: dict[str, dict[str, Any]] = {
            view: self.rows(f"SELECT {sums} FROM {view}")[0] for view, _ in self.parts  # noqa: S608
        }
        refused = sides.get("rejected", {})
        return [(name, sides[KEPT][column], refused.get(column)) for column, name in wanted]


def _bands(figures: _Figures, views: dict[str, Dataset], parameters: ReportParameters) -> list[BandRow]:
    rows = []
    for index, band in enumerate(figures.bands()):
        edges = Band(BAND_EDGES[index], BAND_EDGES[index + 1])
        refused = not band["kept"]
        examples: list[dict[str, Any]] = []
        dataset = views.get("rejected") if refused else views[KEPT]
        if parameters.examples and band["pairs"] and dataset is not None:
            columns = [name for name in _SHOWN if name in dataset.schema.names]
            drawn = sample_pairs(dataset, parameters.examples, parameters.seed, edges, columns=columns)
            examples = sorted(drawn.pairs.to_pylist(), key=lambda pair: pair["paraphrase_score"])
        rows.append(
            BandRow(
                BANDS[index],
                band["pairs"],
                band["overlap"],
                band["kept"],
                band["kept_overlap"],
                examples,
                refused,
            )
        )
    return rows[::-1]


def _lexicon(
    connection: duckdb.DuckDBPyConnection, views: dict[str, Dataset], count: int
) -> LexiconEntries | None:
    """Best and worst entries; of the two directions of an entry one is shown."""
    if "lexicon" not in views:
        return None
    sides = []
    for order in ("DESC", "ASC"):
        table = fetch(
            connection,
            "SELECT word, paraphrase, pairs, cross_pmi, ordinary_pmi, adjusted_pmi FROM lexicon "
            "WHERE word < paraphrase AND adjusted_pmi IS NOT NULL "
            f"ORDER BY adjusted_pmi {order}, pairs DESC, word, paraphrase LIMIT {count}",
        )
        sides.append(list(table.to_pylist()))
    return LexiconEntries(views["lexicon"].rows, sides[0], sides[1])
