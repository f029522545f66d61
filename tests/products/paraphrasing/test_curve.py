"""What a paraphraser gives: measured against arithmetic, and the rows of the curve."""

from typing import Any

import numpy as np
import pytest

from paraforge.products.paraphrasing.controls import Controls
from paraforge.products.paraphrasing.paraphraser import Paraphraser
from paraforge.products.paraphrasing.stage import control_curve, measured

SOURCES = ["the dog runs in the park", "a cat sleeps on the mat", "one two"]
# Three of a dog, dog and runs are shared; of the other nothing.
OUTPUTS = {"low": ["a dog runs", "one", ""], "high": SOURCES}


def test_measured() -> None:
    found = measured(SOURCES, OUTPUTS["low"])
    np.testing.assert_allclose(found["overlap"], [2 / 3, 0, np.nan], rtol=1e-6)
    np.testing.assert_allclose(found["length"], [3 / 6, 1 / 6, np.nan])
    assert 0 <= found["similarity"][1] < found["similarity"][0] < 1
    assert np.isnan(found["similarity"][2])
    assert measured(SOURCES, SOURCES)["similarity"] == pytest.approx([1, 1, 1], abs=0.01)
    assert {name: len(values) for name, values in measured([], []).items()} == dict.fromkeys(found, 0)


class Pretended(Paraphraser):
    """Gives the outputs of a bucket of overlap; of the lowest without control."""

    def __init__(self, controls: Controls) -> None:
        self.controls = controls
        self.asked: list[dict[str, Any]] = []

    def paraphrase(self, texts: Any, **asked: Any) -> list[list[str]]:
        self.asked.append(asked)
        return [[text] if text else [] for text in OUTPUTS["high" if asked.get("overlap") == "2" else "low"]]


def test_the_curve() -> None:
    model = Pretended(Controls({"overlap": [0.5], "similarity": [0.3, 0.6]}))
    rows = control_curve(model, SOURCES)
    assert [tuple(row["asked"].values()) for row in rows] == [
        (None, None),
        (1, None),
        (2, None),
        (1, 3),
        (2, 3),
    ]
    assert [row["overlap"] for row in rows] == [0.3333, 0.3333, 1, 0.3333, 1]
    assert [row["length"] for row in rows][:3] == [0.3333, 0.3333, 1]
    # of the lowest bucket one output has more overlap than 0.5, and a blank one has none
    assert [row["missed"] for row in rows] == [None, 0.6667, 0, 0.6667, 0]
    assert [asked.get("similarity") for asked in model.asked] == [None, None, None, "3", "3"]
    assert len(control_curve(Pretended(Controls()), SOURCES)) == 1
