"""What the search of the engine ``torch`` offers beyond what every engine does."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

from paraforge.decoding.translator import DecodingOptions
from paraforge.errors import InputError


@dataclass(frozen=True)
class SearchSettings:
    """How hypotheses are looked for; a translation depends on each of these.

    Attributes:
        method: ``beam``, or ``sampling``: ``beam`` independent samples a sentence.
        target_factor, target_extra: a hypothesis has at most target_factor * source tokens + target_extra
            tokens, end-of-sentence included on both sides, and never more than ``maximum_target_tokens``;
            a factor of 0 leaves that maximum alone.
        no_repeat_ngram: no n-gram of so many tokens comes twice in a hypothesis; 0 lets it.
        forced_prefix: text that every hypothesis begins with; a part of it, in text, score and length.
        groups: diverse beam search (Vijayakumar et al. 2016): so many groups share the beam, and each step
            of a group shuns the tokens that the groups before it have taken at this step.
        diversity: what such a token costs, in nats, for each time that it was taken. It decides what is
            chosen, and is no part of any score.
        temperature: sampling: logits are divided by it.
        top_k: sampling: only among so many most probable tokens; 0 is all.
        top_p: sampling: only among the fewest most probable tokens that have this probability together.
        seed: sampling: with sentence, number of the sample and position it decides what is drawn.
    """

    method: Literal["beam", "sampling"] = "beam"
    target_factor: float = 0.0
    target_extra: int = 0
    no_repeat_ngram: int = 0
    forced_prefix: str = ""
    groups: int = 1
    diversity: float = 0.5
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 1

    def changed(self) -> dict[str, Any]:
        """The settings that are not as they are by default: what goes into fingerprints."""
        default = SearchSettings()
        return {
            name: value for name, value in dataclasses.asdict(self).items() if value != getattr(default, name)
        }

    def cap(self, source_tokens: int, maximum: int) -> int:
        """Most tokens of a hypothesis, end-of-sentence included.

        Args:
            source_tokens: of the sentence, end-of-sentence included.
            maximum: for any sentence.
        """
        if not self.target_factor:
            return maximum
        return max(2, min(maximum, int(self.target_factor * source_tokens) + self.target_extra))


def settings_of(values: dict[str, Any], options: DecodingOptions) -> SearchSettings:
    """Settings from names and values, checked against the other options.

    Raises:
        InputError: there is no such setting, or a value cannot be.
    """
    known = {field.name for field in dataclasses.fields(SearchSettings)}
    unknown = sorted(set(values) - known)
    if unknown:
        raise InputError(
            f"the engine 'torch' has no setting {', '.join(unknown)}",
            remedy=f"There are {', '.join(sorted(known))}.",
        )
    settings = SearchSettings(**values)
    problems = list(_problems(settings, options))
    if problems:
        raise InputError("; ".join(problems), remedy="Change translate.torch.")
    return settings


def _problems(settings: SearchSettings, options: DecodingOptions) -> list[str]:
    sampling = settings.method == "sampling"
    checks = [
        (settings.method in ("beam", "sampling"), f"there is no method '{settings.method}'"),
        (settings.groups >= 1, f"groups is {settings.groups}"),
        (
            settings.groups < 1 or options.beam % settings.groups == 0,
            f"a beam of {options.beam} cannot be shared by {settings.groups} groups of the same size",
        ),
        (not sampling or settings.groups == 1, "samples have no groups"),
        (settings.diversity >= 0, f"diversity is {settings.diversity}: it cannot be below 0"),
        (settings.temperature > 0, f"temperature is {settings.temperature}: it has to be above 0"),
        (settings.top_k >= 0, f"top_k is {settings.top_k}"),
        (0 < settings.top_p <= 1, f"top_p is {settings.top_p}: it has to be above 0 and at most 1"),
        (settings.no_repeat_ngram >= 0, f"no_repeat_ngram is {settings.no_repeat_ngram}"),
        (settings.target_factor >= 0, f"target_factor is {settings.target_factor}"),
    ]
    return [problem for right, problem in checks if not right]
