"""The report as one HTML file that needs no network, no script and no other file."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from paraforge.base.files import write_whole
from paraforge.base.yaml_text import yaml_text
from paraforge.corpus.publication.card import lineage_words
from paraforge.corpus.publication.verdict_words import separations, verdict_words
from paraforge.interface.query.pairs import fixed, marked_words
from paraforge.interface.report.content import Content, gather
from paraforge.interface.report.curves import Curves
from paraforge.interface.report.flow import flow_picture, share
from paraforge.interface.report.histograms import HEAT_STEP, LONGEST
from paraforge.interface.report.parameters import ReportParameters
from paraforge.interface.report.svg import Bar, heat_map, histogram, lines
from paraforge.versions import __version__

if TYPE_CHECKING:
    import jinja2


def write_report(
    corpus: Path,
    output: Path,
    parameters: ReportParameters,
    metrics: Path | None = None,
    plots: Path | None = None,
) -> Content:
    """Write the report of a published corpus; the same corpus always gives the same bytes.

    corpus: directory of a published corpus. output: the HTML file. parameters: how much to show.
    metrics, plots: directories of metrics (JSON) and training curves (CSV), if there are any.

    Raises InputError: the corpus, a metric or a plot cannot be read.
    """
    environment = _environment()
    content = gather(corpus, parameters, metrics, plots)
    write_whole(output, render(content, environment))
    return content


def _environment() -> jinja2.Environment:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("paraforge.interface.report", "templates"),
        # The text of the corpus is anybody's: everything is escaped unless it is markup of our own.
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "count": _count,
        "score": _score,
        "share": share,
        "words": _words,
        "isolated": _isolated,
    }
    return environment


def render(content: Content, environment: jinja2.Environment | None = None) -> str:
    """The report's HTML."""
    environment = environment or _environment()
    style = (
        resources.files("paraforge.interface.report").joinpath("templates", "report.css").read_text("utf-8")
    )
    sources, pivots = content.manifest.sources, content.manifest.pivots
    return environment.get_template("report.html").render(
        content=content,
        style=Markup(style),  # noqa: S704 - a file of this package
        version=__version__,
        flow=flow_picture(content.flow_sources, content.flow_fates, content.flow_links),
        scores=[(name, bars, histogram(bars, name, "paraphrase score")) for name, bars in content.scores],
        heat=_heat(content),
        lengths=[
            (name, bars, histogram(_broad(bars), f"Length: {name}", f"tokens ({LONGEST} and more together)"))
            for name, bars in content.lengths
        ],
        others=[(name, histogram(bars, name, name)) for name, bars in content.others],
        curves=[
            (curve, lines(curve.series, f"{curve.name}: {curve.quantity}", curve.over))
            for curve in content.curves
        ],
        paraphraser=None if content.paraphraser is None else _paraphraser(content.paraphraser),
        tiles=_tiles(content),
        counted=[(kind, named) for kind, named in (("source", sources), ("pivot", pivots)) if named],
        lineage=lineage_words(content.manifest),
        verdict=verdict_words(content.manifest),
        separations=separations(content.manifest),
        sources=_sources(content),
        marked=marked_words,
        highest=max((abs(fate.rows) for fate in content.fates), default=1) or 1,
        fingerprints=_fingerprints(content),
        parameters=_parameters(content),
    )


def _heat(content: Content) -> Markup | None:
    title, units = "Trigram overlap against paraphrase score", ("paraphrase score", "trigram overlap")
    return heat_map(content.heat, HEAT_STEP, title, units) if content.heat else None


def _paraphraser(curve: Curves) -> Markup:
    return lines(curve.series, "Similarity against overlap", curve.over, width=520, height=260)


def _broad(bars: Sequence[Bar]) -> list[Bar]:
    """Two tokens a bar where there are many."""
    if len(bars) <= 40:
        return list(bars)
    pairs = [bars[start : start + 2] for start in range(0, len(bars), 2)]
    return [
        Bar(two[0].low, two[0].low + 2, sum(bar.kept for bar in two), sum(bar.refused for bar in two))
        for two in pairs
    ]


def _tiles(content: Content) -> list[tuple[str, str, str]]:
    """The figures to begin with: number, name, remark."""
    counts = content.counts
    means = {name: kept for name, kept, _ in content.means}
    tiles = [
        ("pairs kept", f"{counts.kept:,}", f"{share(counts.kept, counts.rows_in)} of {counts.rows_in:,} rows")
    ]
    if (score := means.get("paraphrase score")) is not None:
        tiles.append(("paraphrase score", f"{score:.2f}", "mean of kept pairs"))
    if (overlap := means.get("trigram overlap")) is not None:
        tiles.append(("trigram overlap", f"{overlap:.2f}", "mean; lower is a freer paraphrase"))
    tokens = [means.get(f"tokens of the {side}") for side in ("reference", "translation")]
    if None not in tokens:
        tiles.append(
            ("tokens", " / ".join(f"{value:.1f}" for value in tokens), "mean of reference / translation")
        )
    bleu = content.metrics.get("nmt", {}).get("bleu")
    if isinstance(bleu, int | float):
        chrf = content.metrics["nmt"].get("chrf")
        remark = f"chrF {chrf:.1f}, " if isinstance(chrf, int | float) else ""
        tiles.append(("BLEU", f"{bleu:.1f}", f"{remark}on held-out pairs"))
    if content.lexicon is not None:
        tiles.append(("lexicon", f"{content.lexicon.entries:,}", "entries"))
    return tiles


_SOURCE_FIGURES = (
    ("length", "length"),
    ("idf", "IDF"),
    ("paraphrase_score", "paraphrase score"),
    ("vocabulary_entropy", "vocabulary entropy"),
    ("parse_entropy", "parse entropy"),
)


def _sources(content: Content) -> tuple[list[str], list[tuple[str, list[str]]]] | None:
    """ParaNMT's Table 1 from the metrics of stage statistics: column names, and a row a source."""
    sources = content.metrics.get("statistics", {}).get("sources")
    if not isinstance(sources, dict) or not sources:
        return None
    figures = {name: row for name, row in sources.items() if isinstance(row, dict)}
    present = [
        (key, name)
        for key, name in _SOURCE_FIGURES
        if any(isinstance(row.get(key), int | float) for row in figures.values())
    ]
    rows = [
        (source, [_count(int(row.get("pairs") or 0)), *(_with_deviation(row, key) for key, _ in present)])
        for source, row in figures.items()
    ]
    return ["pairs", *(name for _, name in present)], rows


def _with_deviation(row: dict[str, Any], key: str) -> str:
    value, deviation = row.get(key), row.get(f"{key}_sd")
    if not isinstance(value, int | float):
        return "–"
    digits = 2 if abs(value) < 2 else 1
    return f"{value:.{digits}f}" + (
        f" ± {deviation:.{digits}f}" if isinstance(deviation, int | float) else ""
    )


def _fingerprints(content: Content) -> list[tuple[str, str, str]]:
    return [
        (step, name, str(digest))
        for step, made in content.manifest.steps.items()
        for name, digest in sorted((made.get("fingerprints") or {}).items())
        if digest
    ]


def _parameters(content: Content) -> list[tuple[str, str]]:
    """Parameters of every step as readable text."""
    return [
        (step, yaml_text(made["parameters"]).strip())
        for step, made in content.manifest.steps.items()
        if made.get("parameters")
    ]


def _count(number: int) -> str:
    return f"{number:,}"


def _score(number: float | None, digits: int = 2) -> str:
    return "–" if number is None else fixed(number, digits)


def _isolated(text: str) -> Markup:
    """Text of others: its direction, and what overrides it, ends where the text does."""
    return Markup("<bdi>{}</bdi>").format(text)


def _words(pieces: Sequence[tuple[str, bool]]) -> Markup:
    """Pieces of a sentence; words that the other side lacks are marked."""
    joined: list[Any] = [
        Markup("<mark>{}</mark>").format(piece) if differs else Markup("{}").format(piece)
        for piece, differs in pieces
    ]
    return Markup("").join(joined)
