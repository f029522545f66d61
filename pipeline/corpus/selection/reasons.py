"""Explains the reasons in ``rejected`` from the parameters of a corpus' selection."""

from collections.abc import Mapping
from typing import Any

from paraforge.corpus.columns import LABELS
from paraforge.corpus.selection.filters import missing_reason
from paraforge.corpus.selection.parameters import SelectParameters, selection_of
from paraforge.intake.bitext.block import REASONS


def explain_reasons(steps: Mapping[str, Any]) -> dict[str, str]:
    """Explain in a few words each reason from ingest or selection.

    steps: the manifest's steps.
    """
    explained = {reason: f"at ingest: {text}" for reason, text in REASONS.items()}
    parameters = selection_of(steps)
    return explained | explain_filters(parameters) if parameters else explained


def explain_filters(parameters: SelectParameters) -> dict[str, str]:
    """Explain in a few words each reason that selection can give."""
    read = [*parameters.required, *(column for one in parameters.filters for column in one.columns())]
    missing = {missing_reason(column): f"no {LABELS.get(column, column)}" for column in read}
    return missing | {one.reason: one.refusal() for one in parameters.filters}
