"""What the reasons in ``rejected`` mean, in words, from the parameters that a corpus was selected with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from paraforge.bitext.reasons import REASONS
from paraforge.selection.parameters import (
    BoundsParameters,
    DecileParameters,
    DecontaminationParameters,
    FlagParameters,
    LanguageParameters,
    LengthParameters,
    NearDuplicatesParameters,
    SampleParameters,
    SelectParameters,
)


def explain_reasons(steps: Mapping[str, Any]) -> dict[str, str]:
    """A few words for each reason that ingest or selection may have given.

    Args:
        steps: what the manifest says of each step.
    """
    explained = {reason: f"at ingest: {text}" for reason, text in REASONS.items()}
    try:
        parameters = SelectParameters.model_validate((steps.get("select") or {}).get("parameters") or {})
    except ValidationError:
        return explained  # selected by another version
    scores = {score for one in parameters.filters if (score := getattr(one, "score", None))}
    for score in (*parameters.required, *sorted(scores)):
        explained[f"no_{score}"] = f"has no {_words(score)}"
    explained.update({one.reason: _rule(one) for one in parameters.filters})
    return explained


def _rule(one: Any) -> str:
    if isinstance(one, LengthParameters):
        return f"a side does not have {_interval(one.minimum, one.maximum)} tokens"
    if isinstance(one, BoundsParameters):
        closed = {"both": "", "left": ", upper bound excluded", "right": ", lower bound excluded"}
        return (
            f"{_words(one.score)} is not {_interval(one.minimum, one.maximum)}"
            f"{closed.get(one.closed, ', bounds excluded')}"
        )
    if isinstance(one, DecileParameters):
        tenths = ", ".join(map(str, one.tenths()))
        kept = f"the top {one.top} tenths" if one.top else f"tenths {tenths}"
        return f"not in {kept} by {_words(one.score)}"
    if isinstance(one, LanguageParameters):
        return f"a side is not {' or '.join(one.languages)}"
    if isinstance(one, FlagParameters):
        return f"{'is' if one.refuse else 'is not'} marked {_words(one.column)}"
    if isinstance(one, NearDuplicatesParameters):
        return f"{one.per_reference:,} earlier with the same reference"
    if isinstance(one, DecontaminationParameters):
        return "shares text with a test file"
    assert isinstance(one, SampleParameters)
    return f"not among the {one.size:,} drawn at random"


def _words(name: str) -> str:
    return name.replace("_", " ")


def _interval(minimum: float | None, maximum: float | None) -> str:
    if minimum is None:
        return f"at most {maximum:g}"
    return f"at least {minimum:g}" if maximum is None else f"{minimum:g} to {maximum:g}"
