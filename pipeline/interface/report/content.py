"""What the HTML report shows of a corpus, gathered from the published files, metrics and plots."""

# ruff: noqa: S608 - columns and views are of our own
from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paraforge.base.errors import InputError
from paraforge.corpus.publication.datasets import PUBLISH_AGAIN, Dataset, neighbours, open_published
from paraforge.corpus.publication.manifest import KEPT, Manifest
from paraforge.corpus.selection.fate import Counts
from paraforge.corpus.selection.reasons import explain_reasons
from paraforge.corpus.statistics.counts import BAND_EDGES, BANDS, shared_out
from paraforge.intake.bitext.block import REASONS
from paraforge.interface.query.database import fetch, open_database
from paraforge.interface.query.pairs import Band, sample_pairs
from paraforge.interface.report.curves import (
    Curves,
    ResultTable,
    paraphraser_curve,
    read_curves,
    read_metrics,
    result_tables,
)
from paraforge.interface.report.flow import Fate, share
from paraforge.interface.report.histograms import OTHERS, Histograms, count_published, count_wrong
from paraforge.interface.report.parameters import ReportParameters
from paraforge.interface.report.svg import Bar, Cell

if TYPE_CHECKING:
    import duckdb

OTHER_REASONS = "other reasons"
_ENTRY_PAIRS = 3
"""Pairs that an entry shown as best or worst has at least: of one or two it may be a misspelling."""
_SHOWN = ("source", "line", "source_text", "reference", "translation", "paraphrase_score", "overlap_3")


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
    """Everything that the report shows.

    flow_sources, flow_fates, flow_links: see :func:`paraforge.interface.report.flow.flow_picture`.
    fates: every reason, also those that the flow picture puts together.
    scores: histogram of the paraphrase score of all sources, then of each.
    heat: pairs by paraphrase score and trigram overlap.
    lengths: histograms of the tokens of reference and translation. others: histograms of the other scores.
    means: name, mean over kept and over rejected pairs.
    refused_means: why the means over rejected pairs are what they are.
    lexicon: None where there is none.
    paraphraser: what the trained paraphraser gives for what is asked; None where there is none.
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
    others: list[tuple[str, list[Bar]]]
    bands: list[BandRow]
    means: list[tuple[str, float | None, float | None]]
    refused_means: str | None
    lexicon: LexiconEntries | None
    curves: list[Curves]
    paraphraser: Curves | None
    results: list[ResultTable]
    metrics: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def engine(self) -> str | None:
        """Translation engine of the run, if the metrics name it."""
        engine = self.metrics.get("translate", {}).get("engine")
        return None if engine is None else str(engine)


def gather(
    corpus: Path, parameters: ReportParameters, metrics: Path | None = None, plots: Path | None = None
) -> Content:
    """Gather what there is.

    corpus: a published corpus; rejected pairs and lexicon are taken from the directories next to it.
    parameters: how much to show.
    metrics, plots: directories of metrics (JSON) and training curves (CSV).

    Raises InputError: there is no corpus, or a file is missing or damaged.
    """
    dataset = open_published(corpus)
    if dataset.manifest is None or dataset.name != KEPT:
        raise InputError(
            "these are rejected pairs", corpus, remedy="Name the directory of the corpus next to them."
        )
    views, _ = neighbours(dataset, damaged=False)
    manifest = dataset.manifest
    if manifest.wrong_pairs and not (path := corpus / manifest.wrong_pairs.path).is_file():
        raise InputError("missing, the manifest lists it", path, remedy=PUBLISH_AGAIN)
    sources = sorted(manifest.sources, key=lambda name: (-manifest.sources[name].rows_in, name))
    # A single other source is shown by its own name.
    shown = sources if len(sources) == parameters.sources + 1 else sources[: parameters.sources]
    values = read_metrics(metrics)
    figures = Histograms(count_published(views), shown, count_wrong(corpus))
    with open_database(list(views.values())) as connection:
        fates = _fates(manifest)
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
            others=figures.others(),
            bands=_bands(figures, views, parameters),
            means=figures.means(),
            refused_means=_why_refused(manifest),
            lexicon=lexicon_entries(connection, views, parameters.entries),
            curves=read_curves(plots),
            paraphraser=paraphraser_curve(values),
            results=result_tables(values),
            metrics=values,
        )


def _flow_sources(manifest: Manifest, shown: Sequence[str]) -> list[tuple[str, int]]:
    rows = [(source, manifest.sources[source].rows_in) for source in shown]
    others = manifest.counts.rows_in - sum(number for _, number in rows)
    return [*rows, *([(OTHERS, others)] if others else [])]


def _fates(manifest: Manifest) -> list[Fate]:
    counts, explained = manifest.counts, explain_reasons(manifest.steps)
    fates = [Fate("kept", "kept", counts.kept, "published in the corpus")]
    for reason, number in counts.rejected.most_common():
        kind = "ingest" if reason in REASONS else "filter"
        fates.append(Fate(reason, kind, number, explained.get(reason, "rejected by a filter of select")))
    for reason, number in counts.failed.most_common():
        fates.append(Fate(reason, "failed", number, "could not be translated"))
    return fates


def _why_refused(manifest: Manifest) -> str | None:
    """What the filters rejected most: their pairs are most of what the means over rejected pairs are of."""
    explained = explain_reasons(manifest.steps)
    scored = Counter({reason: n for reason, n in manifest.counts.rejected.items() if reason not in REASONS})
    if not scored:
        return None
    parts = [
        f"{share(number, scored.total())}: {explained.get(reason, reason)}"
        for reason, number in scored.most_common(3)
    ]
    return f"Of the pairs that filters rejected, {'; '.join(parts)}."


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


def _bands(figures: Histograms, views: dict[str, Dataset], parameters: ReportParameters) -> list[BandRow]:
    rows = []
    bands = figures.bands()
    sizes = [band["kept"] or band["pairs"] for band in bands]
    numbers = shared_out(parameters.examples * sum(size > 0 for size in sizes), sizes)
    for index, band in enumerate(bands):
        edges = Band(BAND_EDGES[index], BAND_EDGES[index + 1])
        refused = not band["kept"]
        examples: list[dict[str, Any]] = []
        dataset = views.get("rejected") if refused else views[KEPT]
        if numbers[index] and dataset is not None:
            columns = [name for name in _SHOWN if name in dataset.schema.names]
            drawn = sample_pairs(dataset, numbers[index], parameters.seed, edges, columns=columns)
            examples = sorted(drawn.pairs.to_pylist(), key=lambda pair: pair["paraphrase_score"])
        rows.append(BandRow(BANDS[index], **band, examples=examples, examples_refused=refused))
    return rows[::-1]


def lexicon_entries(
    connection: duckdb.DuckDBPyConnection, views: dict[str, Dataset], count: int
) -> LexiconEntries | None:
    """Best and worst entries of enough pairs; of the two directions of an entry one is shown."""
    if "lexicon" not in views:
        return None
    sides = []
    for order in ("DESC", "ASC"):
        table = fetch(
            connection,
            "SELECT word, paraphrase, pairs, cross_pmi, ordinary_pmi, adjusted_pmi FROM lexicon "
            f"WHERE word < paraphrase AND adjusted_pmi IS NOT NULL AND pairs >= {_ENTRY_PAIRS} "
            f"ORDER BY adjusted_pmi {order}, pairs DESC, word, paraphrase LIMIT {count}",
        )
        sides.append(list(table.to_pylist()))
    return LexiconEntries(views["lexicon"].rows, sides[0], sides[1])
