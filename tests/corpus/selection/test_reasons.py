"""Reasons in words."""

from __future__ import annotations

from typing import Any

import pytest

from paraforge.corpus.selection.reasons import explain_reasons


@pytest.mark.parametrize(
    ("one", "text"),
    [
        ({"kind": "length", "maximum": 30}, "more than 30 tokens on one side"),
        (
            {"kind": "bounds", "score": "overlap_3", "minimum": 0.4, "maximum": 1},
            "trigram overlap below 0.4 or above 1",
        ),
        (
            {"kind": "bounds", "score": "overlap_3", "minimum": 0.4, "closed": "neither"},
            "trigram overlap at most 0.4",
        ),
        ({"kind": "bounds", "score": "overlap_3", "maximum": 0.9}, "trigram overlap above 0.9"),
        ({"kind": "decile", "score": "overlap_3", "top": 2}, "not in the top 2 tenths by trigram overlap"),
        ({"kind": "decile", "score": "overlap_3", "keep": [3, 1]}, "not in tenths 1, 3 by trigram overlap"),
        ({"kind": "language"}, "one side is not in en"),
        ({"kind": "flag", "column": "runaway"}, "repeated without end"),
        ({"kind": "near_duplicates", "per_reference": 2}, "same reference as 2 earlier pairs"),
        ({"kind": "decontamination", "files": [{"path": "x"}]}, "shares text with a test file"),
        ({"kind": "sample", "size": 5000}, "not among the 5,000 drawn at random"),
    ],
)
def test_filters(one: dict[str, Any], text: str) -> None:
    explained = explain_reasons({"select": {"parameters": {"filters": [{**one, "name": "it"}]}}})
    assert explained["it"] == text
    assert explained["no_paraphrase_score"] == "no paraphrase score"
    assert explained["duplicate"].startswith("at ingest: ")


def test_parameters_of_another_version() -> None:
    assert "duplicate" in explain_reasons({"select": {"parameters": {"unknown": 1}}})
