"""Bounds on scores: one comparison for all, and only bounds that a score can reach."""

import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from paraforge.corpus.publication.groups import joining_keys
from paraforge.corpus.scorer import inside
from paraforge.corpus.scoring.verdict import Minimum
from paraforge.corpus.selection.filters.bounds import BoundsParameters, interval_filter


@given(st.floats(0, 1), st.sampled_from([np.float32, np.float64]))
def test_a_score_reaches_itself_everywhere(number: float, kind: type) -> None:
    scores = np.array([number, np.nan], kind)
    assert inside(scores, number, number).tolist() == [True, False]
    assert inside(scores, number, closed="neither").tolist() == [False, False]
    assert inside(scores, maximum=number, closed="left").tolist() == [False, False]
    assert Minimum(number).reached(scores).tolist() == [True, False]
    assert not Minimum(number, included=False).reached(scores).any()
    rows = pa.table({"reference": ["a", "a"], "translation": ["b", "b"], "paraphrase_score": scores})
    assert interval_filter("x", ("paraphrase_score",), number, 1).judge(rows, 0).tolist() == [0, 2]
    keys = joining_keys(rows, ["reference", "translation"], number)
    assert keys[0, 1].any() and not keys[1, 1].any()


@pytest.mark.parametrize(
    ("score", "bounds", "outside", "values"),
    [
        ("paraphrase_score", {"minimum": 45}, "minimum 45", "from -1 to 1"),
        ("paraphrase_score", {"maximum": 1.5}, "maximum 1.5", "from -1 to 1"),
        ("overlap_3", {"minimum": -0.1, "maximum": 0.9}, "minimum -0.1", "from 0 to 1"),
        ("contradiction", {"maximum": 50}, "maximum 50", "from 0 to 1"),
        ("translation_score", {"minimum": 0.5}, "minimum 0.5", "at most 0"),
        ("reference_tokens", {"maximum": -1}, "maximum -1", "at least 0"),
    ],
)
def test_a_threshold_outside_its_scale_is_an_error(
    score: str, bounds: dict[str, float], outside: str, values: str
) -> None:
    message = f"{outside} is outside the scale of {score}: its values are {values}"
    with pytest.raises(ValidationError, match=re.escape(message)):
        BoundsParameters.model_validate({"kind": "bounds", "score": score, **bounds})
    BoundsParameters.model_validate({"kind": "bounds", "score": "length_surprise", "minimum": -5})
    BoundsParameters.model_validate({"kind": "bounds", "score": "given_score", "minimum": 45})
