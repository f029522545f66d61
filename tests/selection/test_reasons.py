"""Reasons in words."""

from __future__ import annotations

from typing import Any

import pytest

from paraforge.selection.reasons import explain_reasons


@pytest.mark.parametrize(
    ("one", "text"),
    [
        ({"kind": "length", "maximum": 30}, "a side does not have at most 30 tokens"),
        ({"kind": "bounds", "score": "overlap_3", "minimum": 0.4, "maximum": 1}, "overlap 3 is not 0.4 to 1"),
        (
            {"kind": "bounds", "score": "overlap_3", "minimum": 0.4, "closed": "neither"},
            "overlap 3 is not at least 0.4, bounds excluded",
        ),
        ({"kind": "decile", "score": "overlap_3", "top": 2}, "not in the top 2 tenths by overlap 3"),
        ({"kind": "decile", "score": "overlap_3", "keep": [3, 1]}, "not in tenths 1, 3 by overlap 3"),
        ({"kind": "language"}, "a side is not en"),
        ({"kind": "flag", "column": "runaway"}, "is marked runaway"),
        ({"kind": "near_duplicates", "per_reference": 2}, "2 earlier with the same reference"),
        ({"kind": "decontamination", "files": [{"path": "x"}]}, "shares text with a test file"),
        ({"kind": "sample", "size": 5000}, "not among the 5,000 drawn at random"),
    ],
)
def test_filters(one: dict[str, Any], text: str) -> None:
    explained = explain_reasons({"select": {"parameters": {"filters": [{**one, "name": "it"}]}}})
    assert explained["it"] == text
    assert explained["no_paraphrase_score"] == "has no paraphrase score"
    assert explained["duplicate"].startswith("at ingest: ")


def test_parameters_of_another_version() -> None:
    assert "duplicate" in explain_reasons({"select": {"parameters": {"unknown": 1}}})
