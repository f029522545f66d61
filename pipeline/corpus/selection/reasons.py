"""What the reasons in ``rejected`` mean, in words, from the parameters that a corpus was selected with."""

from collections.abc import Mapping
from typing import Any

from paraforge.corpus.columns import LABELS
from paraforge.corpus.selection.filters import missing_reason
from paraforge.corpus.selection.parameters import SelectParameters, selection_of
from paraforge.intake.bitext.block import REASONS


def explain_reasons(steps: Mapping[str, Any]) -> dict[str, str]:
    """Return a few words for each reason that ingest or selection may have given.

    steps: what the manifest says of each step.
    """
    explained = {reason: f"at ingest: {text}" for reason, text in REASONS.items()}
    parameters = selection_of(steps)
    return explained | explain_filters(parameters) if parameters else explained


def explain_filters(parameters: SelectParameters) -> dict[str, str]:
    """Return a few words for each reason that selection may give."""
    read = [*parameters.required, *(column for one in parameters.filters for column in one.columns())]
    missing = {missing_reason(column): f"no {LABELS.get(column, column)}" for column in read}
    return missing | {one.reason: one.refusal() for one in parameters.filters}
