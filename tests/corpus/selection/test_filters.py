"""Filters: what they accept, what a missing value does, and who refuses first."""

from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from paraforge.corpus.selection.filters import Filter, apply_filters
from paraforge.corpus.selection.filters.bounds import interval_filter
from paraforge.corpus.selection.filters.near_duplicates import reference_keys
from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.corpus.selection.reasons import explain_reasons


@pytest.mark.parametrize(
    ("interval", "values", "accepted"),
    [
        ((0.4, 1.0), [0.39, 0.4, 0.7, 1.0, 1.01], [False, True, True, True, False]),
        ((None, 0.7), [-5.0, 0.7, 0.71], [True, True, False]),
        ((0.7, None), [0.69, 0.7, 0.71], [False, True, True]),
        ((), [float("inf"), float("-inf"), 0.0], [True, True, True]),
        ((1, 30), [0, 1, 30, 31], [False, True, True, False]),
        ((0.5, None), [0, 1], [False, True]),
    ],
)
def test_intervals(interval: Any, values: list[float], accepted: list[bool]) -> None:
    """0.7 as a 32-bit number is below 0.7 as a 64-bit one, and still reaches a minimum of 0.7."""
    kinds = (pa.float32(), pa.float64()) if isinstance(values[0], float) else (pa.int32(), pa.int8())
    for kind in kinds:
        rows = pa.table({"score": pa.array(values, kind)})
        assert (interval_filter("x", ("score",), *interval).judge(rows, 0) == 0).tolist() == accepted


def table(**columns: Any) -> pa.Table:
    return pa.table(columns)


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_missing_score_has_a_reason_of_its_own(missing: float | None) -> None:
    rows = table(paraphrase_score=pa.array([0.9, missing, 0.1], pa.float32()))
    one = interval_filter("similar", ("paraphrase_score",), 0.4, 1.0)
    assert one.reasons == ("similar", "no_paraphrase_score")
    assert one.judge(rows, 0).tolist() == [0, 2, 1]
    lenient = interval_filter("similar", ("paraphrase_score",), 0.4, 1.0, missing="accept")
    assert lenient.judge(rows, 0).tolist() == [0, 0, 1]


def test_length_filter_looks_at_both_sides() -> None:
    rows = table(
        reference_tokens=pa.array([5, 31, 5, None, 31], pa.int32()),
        translation_tokens=pa.array([5, 5, 31, 5, None], pa.int32()),
    )
    one = interval_filter("length", ("reference_tokens", "translation_tokens"), 1, 30)
    assert one.judge(rows, 0).tolist() == [0, 1, 1, 2, 3]


def made(**parameters: Any) -> Filter:
    """The one filter of a selection."""
    (one,) = SelectParameters.model_validate({"filters": [parameters]}).filters
    return one.prepare(cast("Any", None))


def test_language_filter() -> None:
    rows = table(reference_language=["en", "cs", "en", None], translation_language=["en", "en", "de", "en"])
    assert made(kind="language").judge(rows, 0).tolist() == [0, 1, 1, 0]
    assert made(kind="language", missing="refuse").judge(rows, 0).tolist() == [0, 1, 1, 2]


def test_flag_filter_takes_a_missing_flag_for_false() -> None:
    rows = table(runaway=pa.array([True, False, None]))
    assert made(kind="flag", column="runaway").judge(rows, 0).tolist() == [1, 0, 0]


def test_decile_filter() -> None:
    rows = table(paraphrase_score_decile=pa.array([10, 9, 8, None], pa.int8()))
    one = made(kind="decile", score="paraphrase_score", top=2, name="top")
    assert one.judge(rows, 0).tolist() == [0, 0, 1, 2]
    assert one.reasons == ("top", "no_paraphrase_score")


def test_the_first_filter_that_refuses_gives_the_reason() -> None:
    rows = table(
        paraphrase_score=pa.array([0.9, 0.1, 0.1, None, 0.9], pa.float32()),
        runaway=pa.array([True, True, False, True, False]),
    )
    filters = [
        interval_filter("similar", ("paraphrase_score",), 0.4),
        made(kind="flag", column="runaway"),
    ]
    alive = np.array([True, True, True, True, False])
    # Codes: 7 similar, 8 no_paraphrase_score, 9 runaway.
    assert apply_filters(filters, rows, alive, 0, first_code=7).tolist() == [9, 7, 7, 8, 0]
    assert apply_filters(filters[::-1], rows, alive, 0, first_code=7).tolist() == [7, 7, 8, 7, 0]


def test_case_punctuation_and_spaces_do_not_count() -> None:
    references = ["A man, a plan.", "a man  a PLAN!", "a man a plant", "...", "!", "...", None, ""]
    keys = [tuple(key) for key in reference_keys(pa.table({"reference": references})).tolist()]
    assert keys[0] == keys[1] != keys[2]
    # Without letters and digits, texts are compared as they stand.
    assert keys[3] == keys[5] != keys[4]
    assert len(set(keys)) == 5


@pytest.mark.parametrize(
    ("one", "text"),
    [
        ({"kind": "length", "maximum": 30}, "more than 30 tokens on one side"),
        (
            {"kind": "bounds", "score": "overlap_3", "minimum": 0.4, "maximum": 1},
            "trigram overlap below 0.4 or above 1",
        ),
        ({"kind": "bounds", "score": "overlap_3", "maximum": 0.9}, "trigram overlap above 0.9"),
        ({"kind": "decile", "score": "overlap_3", "top": 2}, "not in the top 2 tenths by trigram overlap"),
        ({"kind": "decile", "score": "overlap_3", "keep": [3, 1]}, "not in tenths 1, 3 by trigram overlap"),
        ({"kind": "language"}, "one side is not in en"),
        ({"kind": "flag", "column": "runaway"}, "repeated without end"),
        ({"kind": "near_duplicates", "per_reference": 2}, "same reference as 2 earlier pairs"),
        ({"kind": "decontamination", "files": [{"path": "x"}]}, "shares text with a test file"),
        ({"kind": "command", "command": ["awk", "-f", "a"]}, "rejected by the program awk"),
        ({"kind": "command", "command": ["awk"], "files": ["x/a.awk"]}, "rejected by the program a.awk"),
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


def test_a_missing_value_has_the_reason_of_the_first_column_that_lacks_it() -> None:
    one = interval_filter("length", ("reference_tokens", "translation_tokens"), 1, 5)
    columns = ([None, None, 9, 3, 9], [None, 3, None, None, 9])
    rows = pa.table([pa.array(column, pa.int32()) for column in columns], list(one.columns))
    assert one.reasons == ("length", "no_reference_tokens", "no_translation_tokens")
    assert one.judge(rows, 0).tolist() == [2, 2, 3, 3, 1]
