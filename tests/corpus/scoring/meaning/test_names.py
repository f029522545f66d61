"""Names that have no counterpart, and the spellings that are one."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraforge.corpus.scoring.meaning.names import missing_names


def missing(first: str, second: str) -> tuple[int, int]:
    found = missing_names(pa.array([first]), pa.array([second]))
    return int(found[0, 0]), int(found[0, 1])


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("He met Anna in Prague.", "He met Anna in London.", (1, 1)),
        ("He met Anna in Prague.", "He met Anna.", (1, 0)),
        ("He met Anna. Then it rained.", "He met Anna.", (0, 0)),
        ("Yesterday he met Zelensky.", "Yesterday he met Zelenskyj.", (0, 0)),
        ("He saw Chomutov.", "He saw Khomutov.", (0, 0)),
        ("He lives in Germany.", "He lives in the German town.", (0, 0)),
        ("The United Nations met.", "The UN met.", (0, 0)),
        ("MAN BITES DOG IN PARIS TODAY", "Man bites dog in London", (0, 1)),
        ("He met Ñuñez there.", "He met nobody there.", (1, 0)),
        ("", "He met Anna.", (0, 1)),
    ],
)
def test_names(first: str, second: str, expected: tuple[int, int]) -> None:
    assert missing(first, second) == expected
    assert missing(second, first) == expected[::-1]


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text(first: str, second: str) -> None:
    assert missing(first, second) == missing(second, first)[::-1]
    assert missing(first, first) == (0, 0)


def test_a_slice_is_read_from_its_start() -> None:
    first, second = pa.array(["x", "He met Anna."]), pa.array(["y", "He met Bob."])
    assert missing_names(first[1:], second[1:]).tolist() == [[1, 1]]
