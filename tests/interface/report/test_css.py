"""Colours of the report: enough contrast, in light and in dark."""

from __future__ import annotations

import re
from importlib import resources

import pytest

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
