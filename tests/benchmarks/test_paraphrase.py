"""Figures of paraphrases that can be told by hand."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from benchmarks import paraphrase
from benchmarks.paraphrase import control_error, distinct, judge, ways_of
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
