"""Writes the report: description, histograms of the scores and lexicon of a corpus in one HTML file.

The file needs no network, no script and no other file.
"""

# ruff: noqa: S608 - the number of entries is our own

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import numpy.typing as npt
from markupsafe import Markup, escape

from paraforge.base.errors import InputError
from paraforge.base.files import read_json, write_whole
from paraforge.base.markdown import table
from paraforge.base.shards.pool import in_order
from paraforge.base.shards.resources import available_cores
from paraforge.base.shards.store import read_parquet
from paraforge.base.yaml_text import yaml_text
from paraforge.corpus.columns import AVERAGED, LABELS, SCALES
from paraforge.corpus.publication.card import describe
from paraforge.corpus.publication.datasets import Dataset, neighbors, open_published
from paraforge.corpus.publication.manifest import KEPT, PUBLISH_AGAIN, REJECTED, Manifest
from paraforge.corpus.publication.summary import by_pivot
from paraforge.corpus.publication.verdict_words import separations
from paraforge.corpus.scoring.wrong_pairs import find_wrong_pairs, other_rows
from paraforge.corpus.selection.filters import numbers
from paraforge.corpus.selection.filters.bounds import LENGTHS
from paraforge.corpus.statistics.counts import Figures, added, figures_of
from paraforge.interface.query.database import fetch, open_database
from paraforge.versions import __version__

_SCORE = "paraphrase_score"
_LONGEST = 60
_WIDTH, _HEIGHT = 320, 160
_LEFT, _RIGHT, _TOP, _BOTTOM = 38, 6, 8, 34
Numbers = npt.NDArray[np.float64]


def count_pairs(views: dict[str, Dataset]) -> tuple[Figures, Figures]:
    """Return the histograms of kept and of rejected pairs, read in one pass.

    Raises InputError if a file is damaged.
    """
    return _figures(views[KEPT]), _figures(views[REJECTED]) if REJECTED in views else Figures()


def _figures(dataset: Dataset) -> Figures:
    columns = [column for column in AVERAGED if column in dataset.schema.names]

    def figures(index: int) -> Figures:
        return figures_of(read_parquet(dataset.files[index], columns))

    return added(in_order(figures, len(dataset.files), available_cores()))


def counts_of(
    column: str, kept: Figures, rejected: Figures, wrong: Numbers | None = None
) -> tuple[Numbers, Numbers]:
    """Return the pairs in each bin of a score, from the first to the last bin that has any: kept ones,
    rejected ones, and the weight of mismatched ones, (3, bins). Also returns the edges, (bins + 1,).

    The last bin of a length includes all longer texts. wrong: weight of mismatched pairs in all bins.
    """
    scale = SCALES[column]
    nothing = np.zeros(scale.bins)
    sides = [side.histograms.get(column, nothing) for side in (kept, rejected)]
    counts = np.array([*sides, nothing if wrong is None else wrong], np.float64)
    if column in LENGTHS:
        beyond = counts[:, _LONGEST:].sum(axis=1, keepdims=True)
        counts = np.concatenate([counts[:, :_LONGEST], beyond], axis=1)
    present = counts.sum(axis=0).nonzero()[0]
    first, last = (present[0], present[-1] + 1) if len(present) else (0, 0)
    return counts[:, first:last], np.array(scale.edges, np.float64)[first : last + 1]


def count_mismatched(corpus: Path) -> Numbers | None:
    """Return the weight of mismatched pairs in each bin of the paraphrase score; None without such pairs."""
    pairs = find_wrong_pairs([corpus])
    if pairs is None or not pairs.num_rows:
        return None
    sample, scale = other_rows(pairs), SCALES[_SCORE]
    scores, missing = numbers(sample[_SCORE])
    weights = sample["weight"].to_numpy()[~missing]
    bins = scale.bin_of(scores[~missing].astype(np.float64))
    return np.bincount(bins, weights, scale.bins).astype(np.float64)


def pictures(corpus: Path, views: dict[str, Dataset]) -> Iterator[tuple[str, Markup]]:
    """Yield the name and the histogram of every score of the corpus, the paraphrase score first."""
    kept, rejected = count_pairs(views)
    wrong = count_mismatched(corpus)
    for column in sorted(SCALES, key=lambda name: (name != _SCORE, name not in LENGTHS)):
        counts, edges = counts_of(column, kept, rejected, wrong if column == _SCORE else None)
        if counts.size:
            unit = f"tokens ({_LONGEST} and more together)" if column in LENGTHS else LABELS[column]
            yield LABELS[column], histogram(counts, edges, LABELS[column], unit)


def histogram(counts: Numbers, edges: Numbers, title: str, unit: str) -> Markup:
    """Draw the counts of :func:`counts_of`, at least one bin: kept pairs, rejected pairs on top of them, and
    a line for mismatched pairs."""
    kept, total, wrong = counts[0], counts[0] + counts[1], counts[2]
    low, high, most = edges[0], edges[-1], max(total.max(), wrong.max())
    across, down = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def x(value: float) -> str:
        return f"{_LEFT + across * (value - low) / (high - low):.1f}"

    def y(count: float) -> str:
        return f"{_TOP + down * (1 - count / most):.1f}"

    def area(begin: float, end: float, bin: int) -> str:
        return f"M{x(edges[bin])} {y(begin)}V{y(end)}H{x(edges[bin + 1])}V{y(begin)}Z"

    paths = [
        ("kept", "".join(area(0, kept[bin], bin) for bin in range(len(kept)))),
        ("rejected", "".join(area(kept[bin], total[bin], bin) for bin in counts[1].nonzero()[0])),
    ]
    if wrong.any():
        steps = " ".join(
            f"{x(edge)} {y(count)}" for bin, count in enumerate(wrong) for edge in edges[bin : bin + 2]
        )
        paths.append(("wrong", f"M{steps}"))
    parts = [Markup('<path class="{}" d="{}"/>').format(kind, path) for kind, path in paths]
    text = Markup('<text x="{}" y="{}" text-anchor="{}">{}</text>')
    parts += [text.format(x(value), _HEIGHT - 20, "middle", f"{value:g}") for value in _ticks(low, high)]
    parts += [text.format(_LEFT - 5, y(value), "end", f"{value:,g}") for value in _ticks(0, most)]
    parts.append(text.format(_LEFT + across / 2, _HEIGHT - 4, "middle", unit))
    peak = int(total.argmax())
    description = (
        f"{title}. {kept.sum():,.0f} kept and {counts[1].sum():,.0f} rejected pairs; "
        f"most, {total[peak]:,.0f}, from {edges[peak]:g} to {edges[peak + 1]:g}."
    )
    svg = Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>')
    return svg.format(_WIDTH, _HEIGHT, description, Markup("").join(parts))


def _ticks(low: float, high: float) -> list[float]:
    """Return two to six round numbers from ``low`` to ``high``."""
    size = 10 ** math.floor(math.log10((high - low) / 4))
    step = next(factor * size for factor in (1, 2, 2.5, 5, 10) if factor * size >= (high - low) / 4 * 0.999)
    places = range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    return [round(place * step, 10) for place in places]


_ENTRY_PAIRS = 3
"""Only entries with at least this many pairs are shown; those with one or two are often misspellings."""
_SOURCE_FIGURES = ("length", "idf", "paraphrase_score", "vocabulary_entropy", "parse_entropy")


def write_report(
    corpus: Path, output: Path, metrics: Path | None = None, title: str | None = None, entries: int = 14
) -> None:
    """Write the report of a published corpus; the same corpus always gives the same bytes.

    corpus: directory of a published corpus; rejected pairs and lexicon are next to it.
    metrics: directory with metrics of stages (``NAME.json``), if there is one.
    title: heading; None for the corpus' name. entries: number of best and of worst lexicon entries to show.

    Raises InputError if the corpus or a metric cannot be read.
    """
    dataset = open_published(corpus)
    if dataset.manifest is None or dataset.name != KEPT:
        remedy = "Use the directory of the corpus next to them."
        raise InputError("these are rejected pairs", corpus, remedy=remedy)
    views, _ = neighbors(dataset, damaged=False)
    wrong_pairs = dataset.manifest.wrong_pairs
    if wrong_pairs and not (path := corpus / wrong_pairs.path).is_file():
        raise InputError("missing, but listed in the manifest", path, remedy=PUBLISH_AGAIN)
    name, _, description = describe(corpus).removeprefix("# ").partition("\n")
    begin, _, rest = description.partition("\n## ")
    figures = {name: _metrics(metrics, name) for name in ("translate", "nmt", "statistics")}
    charts = Markup("").join(
        Markup("<figure><figcaption>{}</figcaption>{}</figure>").format(name, picture)
        for name, picture in pictures(corpus, views)
    )
    more = [*_separations(dataset.manifest), *_sources(figures["statistics"]), *_lexicon(views, entries)]
    style, page = (
        resources.files(__package__).joinpath("templates", name).read_text("utf-8")
        for name in ("report.css", "report.html")
    )
    heading = _html(f"# {name}") if title is None else Markup("<h1>{}</h1>").format(title)
    text = Template(page).substitute(
        title=escape(title or dataset.manifest.name),
        style=style,
        version=__version__,
        heading=heading,
        begin=_html("\n\n".join([*_notes(dataset.manifest, figures), begin])),
        charts=charts,
        rest=_html("\n\n".join([f"## {rest}", *more])),
        parameters=_parameters(dataset.manifest),
    )
    write_whole(output, text)


def _html(markdown: str) -> str:
    """Render Markdown as HTML; HTML tags in the Markdown are escaped. Wide tables get a scroll bar."""
    from markdown_it import MarkdownIt

    html = MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown)
    return html.replace("<table>", '<div class="scroll" tabindex="0"><table>').replace(
        "</table>", "</table></div>"
    )


def _metrics(directory: Path | None, stage: str) -> Mapping[str, Any]:
    path = None if directory is None else directory / f"{stage}.json"
    content = read_json(path) if path is not None and path.is_file() else {}
    return content if isinstance(content, dict) else {}


def _notes(manifest: Manifest, figures: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the notes at the top of the report: dry run, empty corpus, scores of the translation models."""
    if any(pivot.get("engine") == "fake" for pivot in by_pivot(figures["translate"]).values()):
        yield (
            "**A dry run.** The engine “fake” does not translate: the translations below are made-up words, "
            "and their scores say nothing."
        )
    if not manifest.counts.kept:
        yield "**The corpus is empty.** No pair passed all filters; see the reasons below."
    for language, pivot in by_pivot(figures["nmt"]).items():
        if _number(pivot, "bleu"):
            model = f"The translation model from {language}" if language else "The translation model"
            second = f", chrF {pivot['chrf']:.1f}" if _number(pivot, "chrf") else ""
            yield f"{model} reaches BLEU {pivot['bleu']:.1f}{second} on held-out pairs."


def _separations(manifest: Manifest) -> Iterator[str]:
    if rows := separations(manifest):
        head = [
            "score",
            "source",
            "mismatched pairs",
            "AUC",
            "pass your threshold",
            "threshold for 1%",
            "it keeps",
        ]
        yield (
            "## What the scores are worth\n\nHow well they separate the corpus' pairs from mismatched ones: "
            "references with translations of other rows."
        )
        yield table(head, rows, right=range(2, 7))


def _sources(statistics: Mapping[str, Any]) -> Iterator[str]:
    """Yield ParaNMT-50M's Table 1 from the metrics of stage statistics."""
    content = statistics.get("sources")
    rows = content.items() if isinstance(content, dict) else ()
    sources = {name: row for name, row in rows if isinstance(row, dict)}
    if not sources:
        return
    shown = [name for name in _SOURCE_FIGURES if any(_number(row, name) for row in sources.values())]
    cells = [
        [
            source,
            f"{row['pairs'] if _number(row, 'pairs') else 0:,}",
            *(_format_deviation(row, name) for name in shown),
        ]
        for source, row in sources.items()
    ]
    yield (
        "## Sources\n\nMean ± standard deviation over a sample of each source, as in ParaNMT-50M's Table 1; "
        "entropies in nats."
    )
    yield table(
        ["source", "pairs", *(name.replace("_", " ") for name in shown)], cells, range(1, len(shown) + 2)
    )


def _number(row: Mapping[str, Any], name: str) -> bool:
    return isinstance(row.get(name), int | float)


def _format_deviation(row: Mapping[str, Any], name: str) -> str:
    if not _number(row, name):
        return "–"
    digits = 2 if abs(row[name]) < 2 else 1
    deviation = f" ± {row[f'{name}_sd']:.{digits}f}" if _number(row, f"{name}_sd") else ""
    return f"{row[name]:.{digits}f}{deviation}"


def _lexicon(views: dict[str, Dataset], entries: int) -> Iterator[str]:
    """Yield tables of the best and the worst lexicon entries; each is shown in one of its two directions."""
    if "lexicon" not in views:
        return
    yield f"## Lexicon\n\n{views['lexicon'].rows:,} entries, by adjusted pointwise mutual information."
    with open_database({"lexicon": views["lexicon"]}) as connection:
        for title, order in (("Best", "DESC"), ("Worst", "ASC")):
            result = fetch(
                connection,
                "SELECT word, paraphrase, adjusted_pmi, cross_pmi, ordinary_pmi, pairs FROM lexicon "
                f"WHERE word < paraphrase AND adjusted_pmi IS NOT NULL AND pairs >= {_ENTRY_PAIRS} "
                f"ORDER BY adjusted_pmi {order}, pairs DESC, word, paraphrase LIMIT {entries}",
            )
            rows = [
                [
                    entry["word"],
                    entry["paraphrase"],
                    *(_score(entry[name]) for name in result.column_names[2:5]),
                    f"{entry['pairs']:,}",
                ]
                for entry in result.to_pylist()
            ]
            if rows:
                head = ["word", "paraphrase", "adjusted", "cross", "ordinary", "pairs"]
                yield f"### {title} entries"
                yield table(head, rows, right=range(2, 6))


def _score(number: float | None) -> str:
    return "–" if number is None else f"{number:.2f}"


def _parameters(manifest: Manifest) -> Markup:
    """Render the parameters of every step, folded."""
    return Markup("").join(
        Markup("<details><summary>Parameters of {}</summary><pre>{}</pre></details>").format(
            step, yaml_text(recorded["parameters"]).strip()
        )
        for step, recorded in manifest.steps.items()
        if recorded.get("parameters")
    )
