"""Figures of paraphrases that can be told by hand."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pytest

from benchmarks import paraphrase
from benchmarks.paraphrase import control_curve, control_error, distinct, judge, measured, ways_of
from paraforge.products.paraphrasing.controls import Controls
from paraforge.products.paraphrasing.paraphraser import Paraphraser

SOURCES = ["the dog runs in the park", "a cat sleeps on the mat"]
REFERENCES = [["a dog is running in a park", "a dog runs"], ["the cat is asleep", "a cat lies on a mat"]]


def test_a_copy() -> None:
    copied = judge(SOURCES, REFERENCES, SOURCES)
    assert copied["self_bleu"] == pytest.approx(100)
    assert copied["similarity"] == pytest.approx(1, abs=0.01)
    assert copied["overlap"] == copied["length"] == 1
    assert copied["ibleu"] == pytest.approx(0.8 * (copied["bleu"] or 0) - 20)
    # the, dog, runs, in, park, a, cat, sleeps, on, mat of twelve words
    assert copied["distinct_1"] == 10 / 12
    assert distinct(SOURCES, 2) == 1


def test_what_is_measured_of_a_control() -> None:
    outputs = ["a dog runs", "one"]
    model = object.__new__(Paraphraser)
    model.controls = Controls({"overlap": [0.3, 0.6], "length": [0.4]})
    assert control_error(model, {"overlap": "high"}, SOURCES, outputs) == 0.5
    assert control_error(model, {"overlap": "medium"}, SOURCES, outputs) == 1
    assert control_error(model, {"length": "low"}, SOURCES, outputs) == 0.5
    assert control_error(model, {}, SOURCES, outputs) is None
    # what is asked for alone, and in the order of the tags
    assert list(ways_of(model, 4))[3:] == [
        *("overlap low", "overlap medium", "overlap high", "length low", "length high"),
    ]


def test_a_curve_is_a_line_for_each_way_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    class Copies(Paraphraser):
        def __init__(self) -> None:
            self.controls = Controls({"similarity": [0.5], "overlap": [0.6]})

        def paraphrase(self, texts: Iterable[str], **_: Any) -> list[list[str]]:
            return [[text] for text in texts]

    lines: list[tuple[str, Mapping[str, float]]] = []
    monkeypatch.setattr(
        paraphrase, "append", lambda task, label, figures, **_: lines.append((label, figures))
    )
    paraphrase.record_curve(Copies(), "copies", "corpus", SOURCES)
    asked = ["beam", "overlap 1", "overlap 2", "overlap 1, similarity 2", "overlap 2, similarity 2"]
    assert [label for label, _ in lines] == [f"corpus, copies, {way}" for way in asked]
    # a copy has all the words: that is the higher bucket
    assert [figures.get("missed") for _, figures in lines] == [None, 1, 0, 1, 0]
    assert all(figures["overlap"] == figures["length"] == 1 for _, figures in lines)


THREE = ["the dog runs in the park", "a cat sleeps on the mat", "one two"]
# Three of a dog, dog and runs are shared; of the other nothing.
OUTPUTS = {"low": ["a dog runs", "one", ""], "high": THREE}


def test_measured() -> None:
    found = measured(THREE, OUTPUTS["low"])
    np.testing.assert_allclose(found["overlap"], [2 / 3, 0, np.nan], rtol=1e-6)
    np.testing.assert_allclose(found["length"], [3 / 6, 1 / 6, np.nan])
    assert 0 <= found["similarity"][1] < found["similarity"][0] < 1
    assert np.isnan(found["similarity"][2])
    assert measured(THREE, THREE)["similarity"] == pytest.approx([1, 1, 1], abs=0.01)
    assert {name: len(values) for name, values in measured([], []).items()} == dict.fromkeys(found, 0)


class Pretended(Paraphraser):
    """Gives the outputs of a bucket of overlap; of the lowest without control."""

    def __init__(self, controls: Controls) -> None:
        self.controls = controls
        self.asked: list[dict[str, Any]] = []

    def paraphrase(self, texts: Any, **asked: Any) -> list[list[str]]:
        self.asked.append(asked)
        return [
            [text] if text else [] for text in OUTPUTS["high" if asked.get("overlap") == "high" else "low"]
        ]


def test_the_curve() -> None:
    model = Pretended(Controls({"overlap": [0.5], "similarity": [0.3, 0.6]}))
    rows = control_curve(model, THREE)
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
    assert [asked.get("similarity") for asked in model.asked] == [None, None, None, "high", "high"]
    assert len(control_curve(Pretended(Controls()), THREE)) == 1
