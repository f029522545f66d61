"""Charts: marks stand where their numbers say, and text is escaped."""

from __future__ import annotations

import re

import pytest
from markupsafe import Markup

from paraforge.interface.report.curves import result_tables
from paraforge.interface.report.flow import Fate, flow_picture, share
from paraforge.interface.report.svg import Bar, Cell, Series, compact, heat_map, histogram, lines, tag, ticks


def test_an_element_escapes_all_but_markup() -> None:
    assert tag("a", {"x": '"<'}, "<b>", Markup("<i></i>")) == '<a x="&#34;&lt;">&lt;b&gt;<i></i></a>'
    assert tag("rect", {"x": 1.0, "y": 0.125, "class": None}) == '<rect x="1" y="0.12"></rect>'


@pytest.mark.parametrize(
    ("low", "high", "wanted", "result"),
    [
        (0, 1, 5, [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (0, 1234, 3, [0, 500, 1000]),
        (-0.3, 1, 5, [0, 0.5, 1.0]),
        (3, 3, 4, [3]),
        (0, 0.004, 4, [0, 0.001, 0.002, 0.003, 0.004]),
    ],
)
def test_ticks_are_round(low: float, high: float, wanted: int, result: list[float]) -> None:
    assert ticks(low, high, wanted) == result


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (950, "950"), (12_000, "12k"), (1_300_000, "1.3M"), (2e9, "2G"), (0.25, "0.25")],
)
def test_numbers_of_axes(number: float, text: str) -> None:
    assert compact(number) == text


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [(0, 10, "0 %"), (1, 4, "25.0 %"), (1, 1000, "0.10 %"), (1, 10**9, "< 0.01 %"), (3, 0, "0 %")],
)
def test_shares(part: int, whole: int, text: str) -> None:
    assert share(part, whole) == text


def test_bars_are_as_high_as_their_counts() -> None:
    picture = histogram([Bar(0, 0.5, 10, 0), Bar(0.5, 1, 30, 10)], "Scores", "score")
    kept = [float(h) for h in re.findall(r'height="([\d.]+)" class="kept"', picture)]
    refused = [float(h) for h in re.findall(r'height="([\d.]+)" class="refused"', picture)]
    assert kept[1] == pytest.approx(3 * kept[0], abs=0.05)
    assert refused[0] == pytest.approx(kept[0], abs=0.05)
    assert "40 kept and 10 rejected" in picture


def test_cells_are_stronger_where_there_is_more() -> None:
    picture = heat_map([Cell(0.5, 0.1, 1), Cell(0.9, 0.2, 100)], (0.05, 0.05), "t", ("score", "overlap"))
    faint, strong = (float(value) for value in re.findall(r'fill-opacity="([\d.]+)"', picture))
    assert 0 < faint < strong == 1


def test_lines_reach_their_ends() -> None:
    picture = lines([Series("loss", [(0, 1), (10, 0.5)]), Series("<b>", [(0, 2), (10, 2)])], "t", "update")
    assert "loss from 1 to 0.5" in picture
    assert "&lt;b&gt;" in picture and "<b>" not in picture


def test_the_flow_has_a_band_for_each_link() -> None:
    fates = [Fate("kept", "kept", 70, ""), Fate("length", "filter", 20, ""), Fate("<x>", "failed", 10, "")]
    picture = flow_picture([("a", 60), ("b", 40)], fates, [[50, 0, 10], [20, 20, 0]])
    assert picture.count('class="band ') == 4
    heights = [float(h) for h in re.findall(r'height="([\d.]+)" class="node-', picture)]
    assert heights == pytest.approx([210, 60, 30])
    assert "&lt;x&gt;" in picture and "<x>" not in picture
    assert "Of 100 rows: 70 kept, 20 length, 10 &lt;x&gt;" in picture


def test_results_are_found_wherever_they_stand() -> None:
    tables = result_tables(
        {
            "embeddings": {
                "word": {"sts": {"STS12": {"pearson": 1.0, "pairs": 3}, "STS13": {"pearson": 2.0}}}
            },
            "ingest": {"rows": 3, "sources": {"a": {"rows": 3}}},
        }
    )
    assert [(table.title, table.columns) for table in tables] == [
        ("embeddings · word · sts", ["pearson", "pairs"])
    ]
    assert tables[0].rows == [("STS12", ["1.00", "3"]), ("STS13", ["2.00", ""])]
