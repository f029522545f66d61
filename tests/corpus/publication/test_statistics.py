"""Counts, bands and means, against plain arithmetic; parts add up to the whole."""

import numpy as np
import pytest

from paraforge.base.errors import IncompleteError
from paraforge.corpus.columns import SCALES
from paraforge.corpus.publication.statistics import describe, merge
from paraforge.corpus.statistics.counts import BANDS, band_of
from tests.corpus.selection.corpora import random_pairs, with_columns


def test_bands_are_open_below_and_closed_above() -> None:
    """A cosine that was rounded over 1 is in the last one."""
    scores = np.array([-0.5, -0.1, -0.09, 0.2, 0.21, 0.4, 0.6, 0.8, 0.81, 1.0, 1.0000001], np.float32)
    assert band_of(scores).tolist() == [-1, -1, 0, 0, 1, 1, 2, 3, 4, 4, 4]


def test_a_bin_begins_at_its_edge() -> None:
    """The last edge, and values outside, are in the last or the first bin."""
    for scale in SCALES.values():
        edges, bins = np.array(scale.edges), [*range(scale.bins)]
        for values, expected in (
            (edges, [*bins, bins[-1]]),
            ((edges[1:] + edges[:-1]) / 2, bins),
            (np.array([edges[0] - 1, edges[-1] + 1]), [0, bins[-1]]),
        ):
            assert scale.bin_of(values.astype(np.float32).astype(np.float64)).tolist() == expected


def test_against_row_by_row() -> None:
    table = random_pairs(2_000, seed=2)
    reasons = [
        "length" if number % 4 == 0 and row["failed"] is None else row["rejected"]
        for number, row in enumerate(table.to_pylist())
    ]
    table = with_columns(table, rejected=reasons)  # also of pairs with a score
    statistics = describe(table, 40)
    rows = table.to_pylist()
    kept = [row for row in rows if row["rejected"] is None and row["failed"] is None]
    counts = statistics.counts
    assert (counts.rows_in, counts.kept, counts.failed.total()) == (
        2_000,
        len(kept),
        sum(row["failed"] is not None for row in rows),
    )
    assert counts.rejected["duplicate"] == sum(row["rejected"] == "duplicate" for row in rows)
    news = [row for row in rows if row["source"] == "news"]
    assert statistics.sources["news"].rows_in == len(news)
    for index, (low, high) in enumerate([(-0.1, 0.2), (0.2, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 1.0)]):
        inside = [
            row
            for row in kept
            if row["paraphrase_score"] is not None
            and np.float32(low) < np.float32(row["paraphrase_score"]) <= np.float32(high)
        ]
        band = statistics.bands()[index]
        assert band["band"] == BANDS[index]
        assert band["kept"] == len(inside)
        assert band["kept_overlap_3"] == pytest.approx(
            np.mean([row["overlap_3"] for row in inside]), abs=1e-4
        )
        shown = statistics.examples[index]
        assert len(shown) == min(40, len(inside))
        assert {(pair["source"], pair["line"]) for pair in shown} <= {
            (row["source"], row["line"]) for row in inside
        }
    scores = [row["paraphrase_score"] for row in kept if row["paraphrase_score"] is not None]
    assert statistics.means()["paraphrase_score"] == pytest.approx(np.mean(scores), abs=1e-4)
    known = [row["overlap_1"] for row in kept if row["overlap_1"] is not None]
    assert statistics.means()["overlap_1"] == pytest.approx(np.mean(known), abs=1e-4)


def test_a_row_with_two_fates_would_be_counted_twice() -> None:
    table = with_columns(random_pairs(3), rejected=["length", "length", None], failed=["error", None, None])
    with pytest.raises(IncompleteError, match=r"3 rows in, but 1 kept \+ 2 rejected \+ 1 failed = 4"):
        describe(with_columns(table, source=["news"] * 3), 1)


@pytest.mark.parametrize("cut", [0, 1, 700, 1_999])
def test_parts_add_up(cut: int) -> None:
    table = random_pairs(2_000, seed=2)
    whole = describe(table, 4)
    parts = merge([describe(table.slice(0, cut), 4), describe(table.slice(cut), 4)], 4)
    assert parts.sources == whole.sources
    assert parts.bands() == whole.bands()
    assert parts.means() == whole.means()
    assert parts.examples == whole.examples
