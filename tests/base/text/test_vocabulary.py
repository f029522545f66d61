"""Vocabularies: order, limits, the unknown unit, and files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from paraforge.base.errors import InputError
from paraforge.base.text.vocabulary import UNKNOWN, Vocabulary, most_frequent


def test_most_frequent_units_by_count_then_code_points() -> None:
    units = ["b", "rare", "a", "z", UNKNOWN]
    counts = np.array([5, 1, 5, 9, 100])
    vocabulary, ids = most_frequent(units, counts, minimum_count=2, maximum_size=10)
    assert vocabulary.units == [UNKNOWN, "z", "a", "b"]
    assert ids.tolist() == [3, 0, 2, 1, 0]
    vocabulary, ids = most_frequent(units, counts, minimum_count=1, maximum_size=2)
    assert vocabulary.units == [UNKNOWN, "z", "a"]
    assert ids.tolist() == [0, 0, 2, 1, 0]


def test_unknown_units_have_the_unknown_id() -> None:
    vocabulary = Vocabulary(["a", UNKNOWN, "b"])
    assert vocabulary.ids_of(["b", "c", "a", UNKNOWN]).tolist() == [2, 1, 0, 1]
    assert vocabulary.id_of("c") == 1
    assert "c" not in vocabulary


def test_save_and_load_keep_odd_units(tmp_path: Path) -> None:
    units = [UNKNOWN, " a ", "\n", "\u2028", '"', "é", "\u0085"]
    Vocabulary(units).save(tmp_path / "v.json")
    assert Vocabulary.load(tmp_path / "v.json").units == units


@pytest.mark.parametrize("units", [["a", "a", UNKNOWN], ["a"]], ids=["repeated", "without unknown"])
def test_wrong_units_are_refused(units: list[str]) -> None:
    with pytest.raises(ValueError, match="vocabulary"):
        Vocabulary(units)


@pytest.mark.parametrize(
    "text", ["[]", '{"units": [1], "unknown": "a"}', '{"units": ["a"], "unknown": "b"}', "{", "{}"]
)
def test_damaged_files_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "v.json").write_text(text)
    with pytest.raises(InputError, match="not"):
        Vocabulary.load(tmp_path / "v.json")
