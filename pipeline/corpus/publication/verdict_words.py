"""The verdict on a corpus' scores in words, for the summary, the report and the dataset card."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from paraforge.corpus.columns import LABELS
from paraforge.corpus.publication.manifest import Manifest
from paraforge.corpus.scoring.verdict import CONFIDENCE, ENOUGH, LOST_SHARE
from paraforge.corpus.scoring.wrong_pairs import judged_scores
from paraforge.corpus.selection.fate import Counts
from paraforge.corpus.selection.parameters import SelectParameters, selection_of

_POOR: Final = 0.9
"""Separation that a score of use reaches: below it, one pair in ten is on the wrong side of a wrong one."""
_HARDLY: Final = 0.7
_BEHIND: Final = 0.05
"""How much less than the best source's separation a source's may be before it is named."""
_UNSURE: Final = 0.02
_NAMED: Final = 5

Figures = Mapping[str, Any]


@dataclass(frozen=True)
class VerdictWords:
    """What to begin with: sentences that say what the scores are worth, and what is wrong."""

    sentences: list[str]
    warnings: list[str]


def verdict_words(manifest: Manifest) -> VerdictWords:
    """The verdict on a corpus in words; no sentences for a corpus of an earlier version."""
    return words_of(
        manifest.verdict,
        selection_of(manifest.steps) or SelectParameters(),
        manifest.counts,
        list(manifest.sources),
    )


def words_of(
    verdict: Figures, parameters: SelectParameters, counts: Counts, sources: Sequence[str] = ()
) -> VerdictWords:
    """The verdict on scores in words.

    verdict: see :func:`paraforge.corpus.selection.thresholds.verdict`; empty for none.
    parameters: of the selection, settled. counts: what it kept and refused. sources: all that there are.
    """
    idle = list(_idle_thresholds(parameters, counts))
    if not verdict:
        return VerdictWords([], idle)
    if not verdict["wrong_pairs"]:
        nothing = (
            "No verdict on the scores: no two rows of a source differ on both sides, "
            "so no wrong pairs can be made."
        )
        return VerdictWords([nothing], idle)
    scores: Mapping[str, Figures] = verdict["scores"]
    asked = _shares_asked_for(verdict, parameters)
    sentences = list(_of_adequacy(verdict.get("adequacy"), counts.kept))
    sentences += [" ".join(_sentence(score, figures, asked.get(score))) for score, figures in scores.items()]
    sentences += _of_changed_meanings(verdict.get("changed_meanings"))
    warnings = [line for score, figures in scores.items() for line in _bad_sources(score, figures)]
    warnings += _of_few_pairs(sources, scores)
    if verdict.get("trained_on_corpus"):
        warnings.append(
            "The paraphrase score was trained on the pairs that it judges, so it finds their mistakes right: "
            "choose one that was trained on other text (paragram=general for English)."
        )
    return VerdictWords(sentences, [*warnings, *idle])


@dataclass(frozen=True)
class SeparationRow:
    """A line of the table of verdicts: what a score is worth in a source, in words."""

    score: str
    source: str
    pairs: int
    separation: str
    passing: str
    suggested: str
    kept: str


def separations(manifest: Manifest) -> list[SeparationRow]:
    """What the scores are worth in all sources together and in each that has enough wrong pairs."""
    rows = []
    for score, whole in (manifest.verdict.get("scores") or {}).items():
        if not whole["pairs"]:
            continue
        sources = whole["sources"] if len(whole["sources"]) > 1 else {}
        for source, one in [("all sources", whole), *sources.items()]:
            suggested, passing = one["suggested"], one["passing"]
            rows.append(
                SeparationRow(
                    label(score),
                    source,
                    one["pairs"],
                    area_text(one["separation"]),
                    "–" if passing is None else f"{100 * passing['value']:.2g} %",
                    "–" if suggested is None else f"{suggested:g}",
                    "–" if suggested is None else share_text(one["suggested_kept"]),
                )
            )
    return rows


def label(score: str) -> str:
    """What people call a score."""
    return LABELS.get(score, score.replace("_", " "))


def area_text(separation: Figures | None) -> str:
    """A separation with as many digits as distinguish it from 1, and its interval where that is wide."""
    if separation is None:
        return "–"
    shown = _area(separation["value"])
    if separation["high"] - separation["low"] > _UNSURE:
        shown += f" ({_area(separation['low'])} to {_area(separation['high'])})"
    return shown


def _area(value: float) -> str:
    # Rounded down: only 1 is perfect.
    return f"{value:.2f}" if value < 0.99 else f"{math.floor(value * 1000) / 1000:.3f}"


def _sentence(score: str, figures: Figures, asked: float | None) -> Iterator[str]:
    """``The paraphrase score separates true from wrong pairs with 0.98; one wrong pair in 20 passes ...``."""
    if figures["separation"] is None:
        yield f"No pair has a {label(score)}."
        return
    area, _, between = area_text(figures["separation"]).rstrip(")").partition(" (")
    scale = f"{between}; 1 is perfect, 0.5 is chance".removeprefix("; ")
    both = f"The {label(score)} separates true from wrong pairs with {area}"
    if figures.get("changed"):
        both += f", from changed meanings with {_area(figures['changed']['value'])}"
    parts = [f"{both} ({scale})"]
    if figures["minimum"] is not None:
        passing = passing_words(figures["passing"]["value"], figures["pairs"])
        threshold = f"your threshold of {figures['minimum']:g}"
        if asked is not None:
            threshold = (
                f"the threshold of {figures['minimum']:g} that was found for at most {100 * asked:g} %"
            )
        parts.append(f"{passing} {threshold}")
    if figures["suggested"] is not None:
        kept = f"{share_text(figures['suggested_kept'])} of the pairs"
        if figures["suggested"] == figures["minimum"]:
            parts.append(f"it keeps {kept}")
        else:
            share = f"at most one in 100 through ({100 * CONFIDENCE:g} % sure)"
            parts.append(f"{figures['suggested']:g} would let {share} and keep {kept}")
    yield "; ".join(parts) + "."
    if figures["suggested"] is None:
        yield (
            f"There are only {figures['pairs']:,} wrong pairs to judge by; a threshold that at most one in "
            f"100 passes takes {ENOUGH}."
        )


def _of_adequacy(figures: Figures | None, kept: int) -> Iterator[str]:
    """``About 35% (20 to 50%) of the 4,619 kept pairs are likely to be adequate paraphrases; ...``."""
    if not figures or not kept:
        return
    share, low, high = (round(100 * figures[name]) for name in ("share", "low", "high"))
    sentence = (
        f"About {share}% ({low} to {high}%) of the {kept:,} kept pairs are likely to be adequate paraphrases"
    )
    if "minimum" in figures:
        would = _rounded(figures["kept_by_it"] * kept)
        sentence += (
            f"; a minimum score of {figures['minimum']:g} would keep {would:,}, about "
            f"{round(100 * figures['minimum_share'])}% of them adequate"
        )
    yield f"{sentence}."


def _rounded(number: float) -> int:
    """Two digits of a number that a sample estimates."""
    whole = round(number)
    return int(round(whole, 2 - len(str(whole)))) if whole > 99 else whole


def _of_changed_meanings(figures: Figures | None) -> Iterator[str]:
    """What `contradiction` is worth on pairs that were changed by rule; nothing where there are too few."""
    if not figures:
        return
    area = area_text(figures["separation"])
    separates = f"The contradiction score separates true pairs from changed meanings with {area}"
    if "chosen" in figures:
        yield (
            f"{separates}; your maximum of {figures['chosen']:g} finds {share_text(figures['chosen_found'])} "
            f"of these and rejects {share_text(figures['chosen_lost'])} of the true pairs."
        )
    else:
        yield (
            f"{separates}; a maximum of {figures['maximum']:g} would find "
            f"{share_text(figures['found'])} of these and reject at most {100 * LOST_SHARE:g} % of the true "
            "pairs."
        )


def passing_words(passing: float, pairs: int) -> str:
    """``one wrong pair in 20 passes``."""
    if not passing:
        return f"none of {pairs:,} wrong pairs passes" if pairs > 1 else "the only wrong pair does not pass"
    if passing > 0.2:
        return f"{share_text(passing)} of the wrong pairs pass"
    return f"one wrong pair in {round(1 / passing):,} passes"


def share_text(share: float) -> str:
    """``4 %``; what is not nothing or not all is not rounded to it."""
    if 0 < share < 0.01:
        return "less than 1 %"
    if 0.99 < share < 1:
        return "more than 99 %"
    return f"{math.floor(100 * share)} %"


def _bad_sources(score: str, figures: Figures) -> Iterator[str]:
    """Sources in which the score hardly tells right from wrong, or the corpus if that is true of all."""
    areas = {name: one["separation"] for name, one in figures["sources"].items() if one["separation"]}
    best = max((one["low"] for one in areas.values()), default=0.0)
    poor = sorted(
        (name for name, one in areas.items() if one["high"] < max(_POOR, best - _BEHIND)),
        key=lambda name: areas[name]["value"],
    )
    if not poor:
        return
    wrong = "references" if score == "source_similarity" else "translations"
    cause = f"most of the {wrong} are bad, or the {label(score)} does not understand this text"
    how = "hardly" if areas[poor[0]]["value"] < _HARDLY else "poorly"
    if len(poor) == len(figures["sources"]):
        # Of several poor sources, the worst is still another than the best.
        worst, others = areas[poor[0]], areas[poor[-1]]
        apart = f", least in {poor[0]} ({_area(worst['value'])})" if worst["high"] < others["low"] else ""
        yield f"The {label(score)} {how} tells right from wrong{apart}: {cause}."
        return
    named = [f"{name} ({_area(areas[name]['value'])})" for name in poor[:_NAMED]]
    if len(poor) > _NAMED:
        named.append(f"{len(poor) - _NAMED} more")
    yield f"The {label(score)} {how} tells right from wrong in {', '.join(named)}: {cause}."


def _of_few_pairs(sources: Sequence[str], scores: Mapping[str, Figures]) -> Iterator[str]:
    judged = next(iter(scores.values()), {}).get("sources", {})
    few = [name for name in sources if name not in judged]
    if few and len(sources) > 1:
        named = ", ".join(few[:_NAMED]) + (f" and {len(few) - _NAMED} more" if len(few) > _NAMED else "")
        yield f"Too few pairs for a verdict of their own: {named}."


def _shares_asked_for(verdict: Figures, parameters: SelectParameters) -> dict[str, float]:
    """Of the scores whose minimum was found on the wrong pairs, the share that may pass."""
    asked: Mapping[str, float] = verdict.get("asked") or {}
    thresholds = {one.reason: one.threshold({}) for one in parameters.filters}
    return {found[0]: asked[reason] for reason, found in thresholds.items() if found and reason in asked}


def _idle_thresholds(parameters: SelectParameters, counts: Counts) -> Iterator[str]:
    """Minima of judged scores that refuse nothing, or everything that the filters before them accept.

    A sign of failed translations may well refuse nothing.
    """
    rejected = counts.rejected
    standing = counts.kept + sum(rejected[one.reason] for one in parameters.filters)
    judged = judged_scores()
    for one in parameters.filters:
        found = one.threshold({})
        if found and found[0] in judged and standing:
            score, minimum = found
            threshold = f"The threshold of {minimum.value:g} on the {label(score)}"
            if not rejected[one.reason]:
                yield f"{threshold} rejects no pair."
            elif rejected[one.reason] == standing:
                yield f"{threshold} rejects every pair that it is asked about."
        standing -= rejected[one.reason]
