"""Filters: bounds, missing values, and the order of rejection."""

from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraforge.base.errors import InputError
from paraforge.corpus.publication.groups import joining_keys
from paraforge.corpus.scorer import inside
from paraforge.corpus.selection.filters import Filter, apply_filters
from paraforge.corpus.selection.filters.bounds import interval_filter
from paraforge.corpus.selection.filters.whole_corpus import reference_keys, sentence_keys
from paraforge.corpus.selection.parameters import SelectParameters, explain_reasons


@given(st.floats(0, 1), st.sampled_from([np.float32, np.float64]))
def test_score_equal_to_minimum_passes_everywhere(number: float, kind: type) -> None:
    scores = np.array([number, np.nan], kind)
    assert inside(scores, number, number).tolist() == [True, False]
    rows = pa.table({"reference": ["a", "a"], "translation": ["b", "b"], "paraphrase_score": scores})
    assert interval_filter("x", ("paraphrase_score",), number, 1).judge(rows, 0).tolist() == [0, 2]
    keys = joining_keys(rows, ["reference", "translation"], number)
    assert keys[0, 1].any() and not keys[1, 1].any()


def made(**parameters: Any) -> Filter:
    """The one filter of a selection."""
    (one,) = SelectParameters.model_validate({"filters": [parameters]}).filters
    return one.prepare(cast("Any", None))


SCORE = {"kind": "bounds", "score": "paraphrase_score", "minimum": 0.4, "maximum": 1.0}
SCORES = {"paraphrase_score": [0.9, None, float("nan"), 0.1]}
LANGUAGES = {"reference_language": ["en", "cs", "en", None], "translation_language": ["en", "en", "de", "en"]}
TOKENS = {
    "reference_tokens": [5, 31, 5, None, None, 31, 9],
    "translation_tokens": [5, 5, 31, None, 5, None, 0],
}


@pytest.mark.parametrize(
    ("parameters", "columns", "codes", "missing"),
    [
        (SCORE, SCORES, [0, 2, 2, 1], ["paraphrase_score"]),
        (SCORE | {"missing": "accept"}, SCORES, [0, 0, 0, 1], []),
        # The reason is that of the first column that has no value.
        ({"kind": "length", "minimum": 1, "maximum": 30}, TOKENS, [0, 1, 1, 2, 2, 3, 1], [*TOKENS]),
        ({"kind": "language"}, LANGUAGES, [0, 1, 1, 0], []),
        ({"kind": "language", "missing": "refuse"}, LANGUAGES, [0, 1, 1, 2], ["reference_language"]),
        # A missing flag is false.
        ({"kind": "flag", "column": "runaway"}, {"runaway": [True, False, None]}, [1, 0, 0], []),
        ({"kind": "decile", "score": "overlap_1", "top": 2}, {"overlap_1_decile": [10, 9, 8, None]},
         [0, 0, 1, 2], ["overlap_1"]),
    ],
)  # fmt: skip
def test_rejection_reasons_of_filters(
    parameters: dict[str, Any], columns: dict[str, list[Any]], codes: list[int], missing: list[str]
) -> None:
    one = made(name="mine", **parameters)
    assert one.judge(pa.table(columns), 0).tolist() == codes
    assert one.reasons[: max(codes)] == ("mine", *(f"no_{name}" for name in missing))


def test_filter_code_beyond_reasons_is_error() -> None:
    filters = [Filter("theirs", (), lambda rows, shard: np.array([0, 2])), made(name="mine", **SCORE)]
    with pytest.raises(InputError, match="the filter 'theirs' rejects for reason 2 of 1"):
        apply_filters(filters, pa.table({"paraphrase_score": [0.9, 0.9]}), np.ones(2, np.bool_), 0, 1)


def test_repeats_ignore_case_punctuation_and_spaces() -> None:
    references = ["A man, a plan.", "a man  a PLAN!", "a man a plant", "...", "!", "...", None, ""]
    keys = [tuple(key) for key in reference_keys(pa.table({"reference": references})).tolist()]
    assert keys[0] == keys[1] != keys[2]
    # Without letters and digits, texts are compared as they stand.
    assert keys[3] == keys[5] != keys[4]
    assert len(set(keys)) == 5
    blank = sentence_keys([pa.chunked_array([["", " \u2003", None, "a"]])])
    assert blank.any((1, 2)).tolist() == [False, False, False, True]


BOUNDS = {"kind": "bounds", "score": "overlap_3"}
DECILE = {"kind": "decile", "score": "overlap_3"}
FILES = {"files": [{"path": "x"}]}


@pytest.mark.parametrize(
    ("one", "text", "field"),
    [
        ({"kind": "length", "maximum": 30}, "more than 30 tokens on one side", "len:-30"),
        (BOUNDS | {"minimum": 0.4, "maximum": 1}, "trigram overlap below 0.4 or above 1", "tri:0.4-1"),
        (BOUNDS | {"minimum": 0.5, "maximum": 0.5}, "trigram overlap below 0.5 or above 0.5", "tri:0.5-0.5"),
        (BOUNDS | {"minimum": 0.123456}, "trigram overlap below 0.123456", "tri:0.123456-"),
        (BOUNDS | {"maximum": 0.9}, "trigram overlap above 0.9", "tri:-0.9"),
        (BOUNDS | {"score": "cosine", "minimum": 0.5}, "cosine below 0.5", "cosine:0.5-"),
        (BOUNDS | {"score": "paraphrase_score", "minimum": -0.1, "maximum": 0.2},
         "paraphrase score below -0.1 or above 0.2", "sim:-0.1..0.2"),
        (BOUNDS | {"score": "contradiction", "maximum": {"good_pairs": 0.02}},
         "contradiction among the highest 2% of the pairs", None),
        (DECILE | {"top": 2}, "not in the top 2 tenths by trigram overlap", "dec:tri:9-10"),
        (DECILE | {"top": 1}, "not in the top 1 tenth by trigram overlap", "dec:tri:10"),
        ({"kind": "language"}, "one side is not in en", "lang:en"),
        ({"kind": "language", "languages": ["en", "de"]}, "one side is not in en or de", "lang:de+en"),
        ({"kind": "flag", "column": "runaway"}, "repeated without end", "not:runaway"),
        ({"kind": "near_duplicates", "per_reference": 2}, "same reference as 2 earlier pairs", "ndup:2"),
        ({"kind": "near_repeats"}, "reference nearly the same as in a better pair (cosine 0.95)",
         "nrep:0.95:0123abcd"),
        ({"kind": "decontamination", **FILES}, "shares text with a test file", "decon:exact:0123abcd"),
        ({"kind": "decontamination", **FILES, "ngram": 8}, "shares text with a test file",
         "decon:exact+8gram:0123abcd"),
        ({"kind": "sample", "size": 5_000_000, "seed": 7}, "not among the 5,000,000 drawn at random",
         "sample:5000000:seed7"),
    ],
)  # fmt: skip
def test_words_and_signature(one: dict[str, Any], text: str, field: str | None) -> None:
    given = {"filters": [{**one, "name": "it"}]}
    explained = explain_reasons({"select": {"parameters": given}})
    assert explained["it"] == text
    assert explained["no_paraphrase_score"] == "no paraphrase score"
    assert explained["duplicate"].startswith("at ingest: ")
    (chosen,) = SelectParameters.model_validate(given).filters
    if field is None:
        with pytest.raises(ValueError, match="the maximum has not been computed yet"):
            chosen.signature()
    else:
        assert ":".join(chosen.signature("0123abcd" * 8)) == field


@pytest.mark.parametrize(("top", "minimum"), [(1, 0.9), (2, 0.8), (9, 0.1), (10, None)])
def test_decile_filter_gives_minimum(top: int, minimum: float | None) -> None:
    (one,) = SelectParameters.model_validate({"filters": [DECILE | {"top": top}]}).filters
    found = one.threshold({one.columns()[0]: [tenth / 10 for tenth in range(1, 10)]})
    assert found == (None if minimum is None else (*one.columns(), minimum))
    assert one.threshold({one.columns()[0]: [0.5] * 8}) is None  # some scores are infinite


def test_filter_parameters_of_older_version() -> None:
    assert "duplicate" in explain_reasons({"select": {"parameters": {"unknown": 1}}})
