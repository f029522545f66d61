"""Section ``ingest``: what is allowed, and what is said where it is not."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from paraforge.intake.bitext.parameters import IngestParameters

TSV: dict[str, Any] = {
    "name": "a",
    "format": "tsv",
    "path": "a.tsv",
    "columns": {"source_text": 1, "reference": 0},
}


def problems(*sources: dict[str, Any], **options: Any) -> str:
    with pytest.raises(ValidationError) as raised:
        IngestParameters.model_validate({"sources": list(sources), **options})
    return str(raised.value)


@pytest.mark.parametrize(
    "source",
    [
        TSV,
        TSV | {"header": True, "columns": {"source_text": "cs_BKR", "reference": 2}},
        TSV | {"where": {"column": 0, "not_in": ["newstest2021"]}, "drop_rows": "rows.tsv"},
        {"name": "a", "format": "moses", "paths": {"source_text": "a.cs.gz", "reference": "a.en.gz"}},
        {
            "name": "a",
            "format": "tmx",
            "path": ["a.tmx"],
            "columns": {"source_text": "cs", "reference": "en"},
        },
        {
            "name": "a",
            "format": "jsonl",
            "path": "a",
            "columns": {"source_text": "t.cs", "reference": "t.en"},
        },
        {"name": "a", "format": "parquet", "path": "a", "columns": {"source_text": "cs", "reference": "en"}},
        {"name": "a", "format": "sample"},
    ],
)
def test_allowed(source: dict[str, Any]) -> None:
    IngestParameters.model_validate({"sources": [source]})


def test_a_paraphrase_corpus() -> None:
    columns = {"reference": 0, "translation": 1, "score": 2}
    IngestParameters.model_validate({"kind": "paraphrases", "sources": [TSV | {"columns": columns}]})
    assert "kind paraphrases has reference, translation and perhaps score" in problems(
        TSV, kind="paraphrases"
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"columns": {"source_text": 1}},
            "has the columns source_text; kind bitext has reference, source_text",
        ),
        (
            {"columns": {"source_text": 1, "reference": "en"}},
            "column 'en' is a name: that needs 'header: true'",
        ),
        ({"columns": {"source_text": -1, "reference": 0}}, "columns are counted from 0"),
        ({"where": {"column": 0}}, "exactly one of 'values' and 'not_in'"),
        ({"where": {"column": 0, "values": ["a"], "not_in": ["b"]}}, "exactly one of"),
        ({"format": "xls"}, "'moses', 'parquet', 'tmx', 'tsv'"),
        ({"format": "csv", "separator": "\t"}, "separator"),
        ({"format": "jsonl"}, "columns go by name"),
        ({"colums": {}}, "Extra inputs are not permitted"),
        ({"name": "a b"}, "String should match pattern"),
        ({"path": []}, "at least 1 item"),
        ({"licence": " "}, "String should match pattern"),
    ],
)
def test_not_allowed(change: dict[str, Any], said: str) -> None:
    assert said in problems(TSV | change)


def test_names_are_unique() -> None:
    assert "source name 'a' is used twice" in problems(TSV, TSV)


def test_at_least_one_source() -> None:
    assert "at least 1 item" in problems()
