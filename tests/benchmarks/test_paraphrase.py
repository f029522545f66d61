"""Figures of paraphrases that can be told by hand."""

import numpy as np
import pytest

from benchmarks.paraphrase import control_error, judge, measured, ways_of
from paraforge.products.paraphrasing.paraphraser import Controls, Paraphraser

SOURCES = ["the dog runs in the park", "a cat sleeps on the mat"]
REFERENCES = [["a dog is running in a park", "a dog runs"], ["the cat is asleep", "a cat lies on a mat"]]


def test_a_copy() -> None:
    copied = judge(SOURCES, REFERENCES, SOURCES)
    assert copied["self_bleu"] == pytest.approx(100)
    assert copied["similarity"] == pytest.approx(1, abs=0.01)
    assert copied["overlap"] == copied["length"] == 1
    assert copied["ibleu"] == pytest.approx(0.8 * (copied["bleu"] or 0) - 20)


def test_what_is_measured_of_a_control() -> None:
    outputs = ["a dog runs", "one"]
    model = object.__new__(Paraphraser)
    model.controls = Controls({"overlap": [0.3, 0.6], "length": [0.4]})
    assert control_error(model, {"overlap": "high"}, SOURCES, outputs) == 0.5
    assert control_error(model, {"overlap": "medium"}, SOURCES, outputs) == 1
    assert control_error(model, {"length": "low"}, SOURCES, outputs) == 0.5
    assert control_error(model, {}, SOURCES, outputs) is None
    # what is asked for alone, and in the order of the tags
    assert list(ways_of(model, 4)) == [
        *("beam", "overlap low", "overlap medium", "overlap high", "length low", "length high"),
    ]


THREE = ["the dog runs in the park", "a cat sleeps on the mat", "one two"]
# Three of a dog, dog and runs are shared; of the other nothing.


def test_measured() -> None:
    found = measured(THREE, ["a dog runs", "one", ""])
    np.testing.assert_allclose(found["overlap"], [2 / 3, 0, np.nan], rtol=1e-6)
    np.testing.assert_allclose(found["length"], [3 / 6, 1 / 6, np.nan])
    assert 0 <= found["similarity"][1] < found["similarity"][0] < 1
    assert np.isnan(found["similarity"][2])
    assert measured(THREE, THREE)["similarity"] == pytest.approx([1, 1, 1], abs=0.01)
    assert {name: len(values) for name, values in measured([], []).items()} == dict.fromkeys(found, 0)
