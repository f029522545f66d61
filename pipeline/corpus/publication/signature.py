"""The one-line signature of a corpus in the style of sacreBLEU: what it was made from, and how.

Example:
``src:tatoeba|mt:3fa9c1d2|beam:12|nbest:1|tok:moses-lc|score:paragram:91ab77e0|sim:0.4-1|len:1-30|v:0.1.0``
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from paraforge.base.files import hash_json
from paraforge.corpus.selection.filters import FilterParameters, short_name
from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.versions import __version__

# The tokenizer of all lengths, overlaps and scores.
TOKENIZER = "moses-lc"
_NAMED_SOURCES = 4
_DIGITS = 8

Description = Mapping[str, Any]


def signature(sources: Sequence[str], steps: Mapping[str, Description], select: SelectParameters) -> str:
    """Build the signature.

    sources: names of the bitexts.
    steps: parameters and fingerprints of each step that ran, from ``_shards.json``.

    Returns ``key:value`` pairs joined by ``|``; the same inputs always give the same line.
    """
    translate, score, chosen = (steps.get(name, {}) for name in ("translate", "score", "select"))
    options = translate.get("parameters") or {}
    fields = [("src", _sources(sources)), ("mt", _translator(translate))]
    if known := translate.get("sentences_from_memory"):
        fields.append(("mem", f"{known}/{translate.get('sentences')}"))
    if first := translate.get("chosen") or (translate.get("forward") or {}).get("chosen"):
        fields.append(("first", str(first["maximum_sentences"])))
    if "translation_line" in options:
        fields.append(("pairs", "all"))
    if forward := _forward(translate):
        fields.append(("fwd", forward))
    if not is_given(steps):
        searched = ("nbest",) if options.get("engine") == "imported" else ("beam", "nbest")
        fields += [(key, format(options[key], ".10g")) for key in searched if options.get(key) is not None]
    fields.append(("tok", TOKENIZER))
    fields.append(("score", _scorer(steps.get("score-paraphrase_score", score))))
    fingerprints = chosen.get("fingerprints") or {}
    if select.required != SelectParameters().required:
        fields.append(("need", "+".join(map(short_name, select.required)) or "none"))
    fields += [_filter(rule, fingerprints.get(rule.reason)) for rule in select.filters]
    fields.append(("v", __version__))
    return "|".join(f"{key}:{value}" for key, value in fields)


def _filter(parameters: FilterParameters, fingerprint: str | None) -> tuple[str, str]:
    """Return a filter's key and value, with ``:accept`` or ``:refuse`` if pairs without a value are treated
    otherwise than usual."""
    key, value = parameters.signature(fingerprint)
    changed = parameters.model_dump(include={"missing"}, exclude_defaults=True)
    return key, ":".join([value, *changed.values()])


def short_fingerprint(description: Description, name: str) -> str:
    """Return the first eight hexadecimal digits of one of a step's fingerprints; empty if there is none."""
    fingerprint = str((description.get("fingerprints") or {}).get(name) or "").removeprefix("sha256:")
    if not fingerprint or fingerprint == "none":
        return ""
    return (
        fingerprint[:_DIGITS]
        if re.fullmatch(r"[0-9a-f]{8,}", fingerprint)
        else hash_json(fingerprint)[:_DIGITS]
    )


def is_given(steps: Mapping[str, Description]) -> bool:
    """Return whether the input pairs already had translations, so that nothing was translated."""
    translate = steps.get("translate") or {}
    parameters = translate.get("parameters") or {}
    if parameters.get("pivots"):
        return False
    return parameters.get("engine") == "none" or not short_fingerprint(translate, "model")


def _translator(description: Description) -> str:
    """Return the fingerprint of the model, or of each pivot's model; for engines without one, their name and
    a hash of their settings."""
    if pivots := (description.get("parameters") or {}).get("pivots"):
        return "+".join(f"{name}-{_translator(pivot)}" for name, pivot in pivots.items())
    if is_given({"translate": description}):
        return "given"
    model = short_fingerprint(description, "model")
    engine = (description.get("parameters") or {}).get("engine")
    return f"{engine}:{model}" if engine in ("fake", "imported") else model


def _forward(description: Description) -> str:
    """Return the model and the options of the forward translation, for each pivot if there are pivots; empty
    without one."""
    if pivots := (description.get("parameters") or {}).get("pivots"):
        models = {name: _forward(pivot) for name, pivot in pivots.items()}
        return "+".join(f"{name}-{pivot}" for name, pivot in models.items() if pivot)
    if (forward := description.get("forward")) is None:
        return ""
    options = {key: value for key, value in forward["parameters"].items() if key != "hypotheses"}
    return f"{_translator(forward)}:beam{options['beam']}:{hash_json(options)[:_DIGITS]}"


def is_round_trip(steps: Mapping[str, Description]) -> bool:
    """Return whether the foreign side is a machine translation of the references."""
    return bool(_forward(steps.get("translate") or {}))


def _scorer(score: Description) -> str:
    """Return what the paraphrase score was computed with: the built-in scorer, word vectors, or a trained
    model, whose scores are a step of their own."""
    for kind, name in (("general", "scorer"), ("paragram", "vectors"), ("model", "model")):
        if fingerprint := short_fingerprint(score, name):
            return f"{kind}:{fingerprint}"
    return "none"


def _sources(names: Sequence[str]) -> str:
    clean = sorted(re.sub(r"[|:+\s]+", "-", name) for name in set(names))
    if len(clean) <= _NAMED_SOURCES:
        return "+".join(clean) or "none"
    return f"{len(clean)}-sources:{hash_json(clean)[:_DIGITS]}"
