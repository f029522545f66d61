"""Charts: marks stand where their numbers say, text is escaped; colours have enough contrast."""

import re
from importlib import resources

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


CSS = resources.files("paraforge.interface.report").joinpath("templates", "report.css").read_text("utf-8")
LIGHT, DARK = (
    dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", CSS.split("prefers-color-scheme: dark")[place]))
    for place in (0, 1)
)
# WCAG 2.2: 4.5 for text (1.4.3), 3 for what a picture is made of (1.4.11).
TEXT = [(name, ground) for name in ("ink", "soft", "accent") for ground in ("paper", "card")]
TEXT += [("ink", "mark"), ("ink", "warning"), ("filter", "paper")]
MARKS = [(name, "card") for name in ("kept", "refused", "ingest", "filter", "failed", "two", "three", "four")]


def luminance(colour: str) -> float:
    """Relative luminance as WCAG defines it."""
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_contrast_of_black_on_white() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_contrast(palette: dict[str, str]) -> None:
    weak = {
        f"{name} on {ground}": round(contrast(palette[name], palette[ground]), 2)
        for pairs, least in ((TEXT, 4.5), (MARKS, 3.0))
        for name, ground in pairs
        if contrast(palette[name], palette[ground]) < least
    }
    assert weak == {}


def test_both_palettes_have_every_colour() -> None:
    assert LIGHT.keys() == DARK.keys()
    assert set(re.findall(r"var\(--([\w-]+)\)", CSS)) - LIGHT.keys() == {"serif", "sans", "mono", "key"}
