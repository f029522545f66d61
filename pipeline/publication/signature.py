"""The one-line signature of a corpus, in the manner of sacreBLEU: what it was made of, and how.

Example:
``src:tatoeba|mt:3fa9c1d2|beam:12|nbest:1|tok:moses-lc|score:paragram:91ab77e0|sim:0.4-1|len:1-30|v:0.1.0``
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from paraforge import __version__
from paraforge.files import hash_json
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

# The tokens that all lengths, overlaps and scores are counted in.
TOKENISER = "moses-lc"
_SHORT = {
    "paraphrase_score": "sim",
    "overlap_1": "uni",
    "overlap_2": "bi",
    "overlap_3": "tri",
    "translation_score": "logp",
}
_NAMED_SOURCES = 4
_DIGITS = 8

Description = Mapping[str, Any]


def signature(sources: Sequence[str], steps: Mapping[str, Description], select: SelectParameters) -> str:
    """Make the signature.

    Args:
        sources: names of the bitexts.
        steps: what ``_shards.json`` says of each step that ran: parameters and fingerprints.
        select: the filters.

    Returns:
        ``key:value`` pairs joined by ``|``; the same inputs always give the same line.
    """
    translate, score, chosen = (steps.get(name, {}) for name in ("translate", "score", "select"))
    options = translate.get("parameters") or {}
    fields = [("src", _sources(sources)), ("mt", _translator(translate))]
    fields += [(key, _number(options[key])) for key in ("beam", "nbest") if options.get(key) is not None]
    fields.append(("tok", TOKENISER))
    vectors = short_fingerprint(score, "vectors")
    fields.append(("score", f"paragram:{vectors}" if vectors else "none"))
    fingerprints = chosen.get("fingerprints") or {}
    fields += [filter_field(one, fingerprints.get(one.reason)) for one in select.filters]
    fields.append(("v", __version__))
    return "|".join(f"{key}:{value}" for key, value in fields)


def short_fingerprint(description: Description, name: str) -> str:
    """First eight hexadecimal digits of one of a step's fingerprints; empty where there is none."""
    fingerprint = str((description.get("fingerprints") or {}).get(name) or "").removeprefix("sha256:")
    if not fingerprint or fingerprint == "none":
        return ""
    return (
        fingerprint[:_DIGITS]
        if re.fullmatch(r"[0-9a-f]{8,}", fingerprint)
        else hash_json(fingerprint)[:_DIGITS]
    )


def _translator(description: Description) -> str:
    """The model's fingerprint; what is no model says so."""
    model = short_fingerprint(description, "model")
    engine = (description.get("parameters") or {}).get("engine")
    if not model or engine == "none":
        return "given"  # the pairs came with their translations
    return f"fake:{model}" if engine == "fake" else model


def _sources(names: Sequence[str]) -> str:
    clean = sorted(re.sub(r"[|:+\s]+", "-", name) for name in set(names))
    if len(clean) <= _NAMED_SOURCES:
        return "+".join(clean) or "none"
    return f"{len(clean)}-sources:{hash_json(clean)[:_DIGITS]}"


def filter_field(one: Any, fingerprint: str | None = None) -> tuple[str, str]:
    """Key and value of one filter.

    Args:
        one: the filter's parameters.
        fingerprint: SHA-256 of the files it was made from, if any.
    """
    if isinstance(one, LengthParameters):
        return "len", _interval(one.minimum, one.maximum)
    if isinstance(one, BoundsParameters):
        return _SHORT.get(one.score, one.score), _interval(one.minimum, one.maximum, one.closed)
    if isinstance(one, DecileParameters):
        return "dec", f"{_SHORT.get(one.score, one.score)}:{_runs(one.tenths())}"
    if isinstance(one, LanguageParameters):
        return "lang", "+".join(sorted(one.languages))
    if isinstance(one, FlagParameters):
        return "not" if one.refuse else "only", one.column
    if isinstance(one, NearDuplicatesParameters):
        return "ndup", str(one.per_reference)
    if isinstance(one, DecontaminationParameters):
        rules = ["exact"] * one.exact + [f"{one.ngram}gram"] * (one.ngram is not None)
        return "decon", f"{'+'.join(rules)}:{(fingerprint or 'none')[:_DIGITS]}"
    assert isinstance(one, SampleParameters)
    return "sample", f"{one.size}:seed{one.seed}"


def _number(value: float) -> str:
    return f"{value:.10g}"


def _interval(minimum: float | None, maximum: float | None, closed: str = "both") -> str:
    """``1-30``, ``5-`` or ``-0.7`` where both bounds belong to it; otherwise as ``(0.4-1]``."""
    low, high = ("" if bound is None else _number(bound) for bound in (minimum, maximum))
    # A negative bound would run into the dash.
    dash = ".." if low.startswith("-") or high.startswith("-") else "-"
    if closed == "both":
        return f"{low}{dash}{high}"
    left = "[" if closed == "left" else "("
    right = "]" if closed == "right" else ")"
    return f"{left}{low}{dash}{high}{right}"


def _runs(numbers: Sequence[int]) -> str:
    """``9-10`` for 9, 10; ``1,9-10`` for 1, 9, 10."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
