"""Draws histograms of a published corpus as SVG; texts are escaped, and every picture has a description."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from paraforge.base.shards.pool import in_order
from paraforge.base.shards.resources import available_cores
from paraforge.base.shards.store import read_parquet
from paraforge.corpus.columns import AVERAGED, LABELS, SCALES
from paraforge.corpus.publication.datasets import Dataset
from paraforge.corpus.publication.manifest import KEPT, REJECTED
from paraforge.corpus.scoring.wrong_pairs import find_wrong_pairs, other_rows
from paraforge.corpus.selection.filters import numbers
from paraforge.corpus.selection.filters.bounds import LENGTHS
from paraforge.corpus.statistics.counts import Figures, added, figures_of

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
    kept, both, wrong = counts[0], counts[0] + counts[1], counts[2]
    low, high, most = edges[0], edges[-1], max(both.max(), wrong.max())
    across, down = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def x(value: float) -> str:
        return f"{_LEFT + across * (value - low) / (high - low):.1f}"

    def y(count: float) -> str:
        return f"{_TOP + down * (1 - count / most):.1f}"

    def area(begin: float, end: float, bin: int) -> str:
        return f"M{x(edges[bin])} {y(begin)}V{y(end)}H{x(edges[bin + 1])}V{y(begin)}Z"

    drawn = [
        ("kept", "".join(area(0, kept[bin], bin) for bin in range(len(kept)))),
        ("rejected", "".join(area(kept[bin], both[bin], bin) for bin in counts[1].nonzero()[0])),
    ]
    if wrong.any():
        steps = " ".join(
            f"{x(edge)} {y(one)}" for bin, one in enumerate(wrong) for edge in edges[bin : bin + 2]
        )
        drawn.append(("wrong", f"M{steps}"))
    parts = [Markup('<path class="{}" d="{}"/>').format(kind, path) for kind, path in drawn]
    text = Markup('<text x="{}" y="{}" text-anchor="{}">{}</text>')
    parts += [text.format(x(value), _HEIGHT - 20, "middle", f"{value:g}") for value in _ticks(low, high)]
    parts += [text.format(_LEFT - 5, y(value), "end", f"{value:,g}") for value in _ticks(0, most)]
    parts.append(text.format(_LEFT + across / 2, _HEIGHT - 4, "middle", unit))
    peak = int(both.argmax())
    described = (
        f"{title}. {kept.sum():,.0f} kept and {counts[1].sum():,.0f} rejected pairs; "
        f"most, {both[peak]:,.0f}, from {edges[peak]:g} to {edges[peak + 1]:g}."
    )
    whole = Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>')
    return whole.format(_WIDTH, _HEIGHT, described, Markup("").join(parts))


def _ticks(low: float, high: float) -> list[float]:
    """Return two to six round numbers from ``low`` to ``high``."""
    size = 10 ** math.floor(math.log10((high - low) / 4))
    step = next(factor * size for factor in (1, 2, 2.5, 5, 10) if factor * size >= (high - low) / 4 * 0.999)
    places = range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    return [round(place * step, 10) for place in places]
