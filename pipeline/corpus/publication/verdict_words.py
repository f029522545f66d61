"""Puts the verdict on a corpus' scores into words, for the summary, the report and the dataset card."""

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
"""A useful score reaches this separation. Below it, more than one in ten comparisons of a right with a
mismatched pair goes the wrong way."""
_HARDLY: Final = 0.7
_BEHIND: Final = 0.05
"""A source is named if its separation is this much below the best source's."""
_UNSURE: Final = 0.02
_NAMED: Final = 5
_SURE: Final = f"{100 * CONFIDENCE:g}% confidence"

Figures = Mapping[str, Any]


@dataclass(frozen=True)
class VerdictWords:
    """The verdict as sentences, and warnings."""

    sentences: list[str]
    warnings: list[str]


def verdict_words(manifest: Manifest) -> VerdictWords:
    """Return the verdict on a corpus in words; it is empty without mismatched pairs."""
    return words_of(
        manifest.verdict,
        selection_of(manifest.steps) or SelectParameters(),
        manifest.counts,
        list(manifest.sources),
    )


def words_of(
    verdict: Figures, parameters: SelectParameters, counts: Counts, sources: Sequence[str] = ()
) -> VerdictWords:
    """Return the verdict on scores in words, the most important first.

    verdict: see :func:`paraforge.corpus.selection.thresholds.verdict`; empty for none.
    parameters: the settled selection. counts: what it kept and rejected. sources: names of all sources.
    """
    idle = list(_idle_thresholds(parameters, counts))
    if not verdict:
        return VerdictWords([], idle)
    sentences = list(_of_adequacy(verdict.get("adequacy"), counts.kept))
    if not verdict["wrong_pairs"]:
        nothing = "The scores cannot be checked: no two rows of a source differ on both sides."
        return VerdictWords([*sentences, nothing], idle)
    scores: Mapping[str, Figures] = verdict["scores"]
    asked = _shares_asked_for(verdict, parameters)
    for score, figures in scores.items():
        sentences += _sentences(score, figures, asked.get(score))
    sentences += _of_altered_meanings(verdict.get("changed_meanings"))
    warnings = [line for score, figures in scores.items() for line in _bad_sources(score, figures)]
    judged = next(iter(scores.values()), {}).get("sources", {})
    few = [name for name in sources if name not in judged]
    if few and len(sources) > 1:
        warnings.append(f"Too few pairs to check the score in {_listed(few)}.")
    if verdict.get("trained_on_corpus"):
        warnings.append(
            "The paraphrase score was trained on the pairs that it judges, so it does not see their "
            "mistakes: choose one that was trained on other text (paragram=general for English)."
        )
    return VerdictWords(sentences, [*warnings, *idle])


def separations(manifest: Manifest) -> list[list[str]]:
    """Return a table of the verdicts on all sources together and on each with enough mismatched pairs.

    Columns: score, source, mismatched pairs, area under the curve, share that passes the minimum, suggested
    minimum, share of the pairs that it keeps.
    """
    rows = []
    for score, whole in (manifest.verdict.get("scores") or {}).items():
        sources = whole["sources"] if len(whole["sources"]) > 1 else {}
        for source, one in [("all sources", whole), *sources.items()] if whole["pairs"] else []:
            suggested, passing = one["suggested"], one["passing"]
            passes = "–" if passing is None else f"{100 * passing['value']:.2g}%"
            instead = ["–", "–"]
            if suggested is not None:
                instead = [f"{suggested:g}", share_text(one["suggested_kept"])]
            area = area_text(one["separation"])
            rows.append([label(score), source, f"{one['pairs']:,}", area, passes, *instead])
    return rows


def label(score: str) -> str:
    """Return the label of a score."""
    return LABELS.get(score, score.replace("_", " "))


def area_text(separation: Figures | None) -> str:
    """Format a separation with enough digits to distinguish it from 1, and its interval if that is wide."""
    if separation is None:
        return "–"
    shown = _area(separation["value"])
    if separation["high"] - separation["low"] > _UNSURE:
        shown += f" ({_area(separation['low'])} to {_area(separation['high'])})"
    return shown


def _area(value: float) -> str:
    # Rounded down, because only 1 is perfect.
    return f"{value:.2f}" if value < 0.99 else f"{math.floor(value * 1000) / 1000:.3f}"


def _sentences(score: str, figures: Figures, asked: float | None) -> Iterator[str]:
    """Yield sentences: how well a score separates, what its threshold lets through, and what another one
    would."""
    if figures["separation"] is None:
        yield f"No pair has a {label(score)}."
        return
    areas = f"{area_text(figures['separation'])} against mismatched pairs"
    if figures.get("changed"):
        areas += f", {_area(figures['changed']['value'])} against altered meanings"
    yield f"{label(score).capitalize()}: AUC {areas} (1 = perfect, 0.5 = chance)."
    minimum, suggested = figures["minimum"], figures["suggested"]
    if minimum is not None:
        passing = passing_words(figures["passing"]["value"], figures["pairs"])
        origin = (
            "your threshold of" if asked is None else f"the threshold found for at most {100 * asked:g}%,"
        )
        yield f"At {origin} {minimum:g}, {passing}."
    if suggested is None:
        yield (
            f"Only {figures['pairs']:,} mismatched pairs could be made; a threshold that 1 in 100 of them "
            f"passes takes {ENOUGH}."
        )
        return
    kept = f"{share_text(figures['suggested_kept'])} of the pairs"
    if suggested == minimum:
        yield f"It keeps {kept}."
    elif minimum is not None and suggested > minimum:
        yield f"Raising it to {suggested:g} would let at most 1 in 100 through ({_SURE}) and keep {kept}."
    else:
        yield f"A threshold of {suggested:g} would let at most 1 in 100 through ({_SURE}) and keep {kept}."


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
    """Round an estimate to two significant digits."""
    whole = round(number)
    return int(round(whole, 2 - len(str(whole)))) if whole > 99 else whole


def _of_altered_meanings(figures: Figures | None) -> Iterator[str]:
    """Yield a sentence on how well `contradiction` finds pairs altered by rule; nothing if there are too
    few."""
    if not figures:
        return
    area = f"Contradiction: AUC {area_text(figures['separation'])} against altered meanings"
    if "chosen" in figures:
        yield (
            f"{area}; rejecting scores above {figures['chosen']:g} catches "
            f"{share_text(figures['chosen_found'])} of these and loses {share_text(figures['chosen_lost'])} "
            "of the good pairs."
        )
    else:
        yield (
            f"{area}; rejecting scores above {figures['maximum']:g} would catch "
            f"{share_text(figures['found'])} of these and lose at most {100 * LOST_SHARE:g}% of the good "
            "pairs."
        )


def passing_words(passing: float, pairs: int) -> str:
    """``1 in 20 mismatched pairs gets through``."""
    if not passing:
        return f"none of {pairs:,} mismatched pairs gets through"
    if passing > 0.2:
        return f"{share_text(passing)} of the mismatched pairs get through"
    return f"1 in {round(1 / passing):,} mismatched pairs gets through"


def share_text(share: float) -> str:
    """Format a share, e.g. ``4%``; only exact 0 and 1 become 0% and 100%."""
    if 0 < share < 0.01:
        return "less than 1%"
    if 0.99 < share < 1:
        return "more than 99%"
    return f"{math.floor(100 * share)}%"


def _bad_sources(score: str, figures: Figures) -> Iterator[str]:
    """Yield warnings about sources in which the score hardly separates right from mismatched pairs."""
    areas = {name: one["separation"] for name, one in figures["sources"].items() if one["separation"]}
    best = max((one["low"] for one in areas.values()), default=0.0)
    poor = sorted(
        (name for name, one in areas.items() if one["high"] < max(_POOR, best - _BEHIND)),
        key=lambda name: areas[name]["value"],
    )
    if not poor:
        return
    side = "references" if score == "source_similarity" else "translations"
    how = "hardly" if areas[poor[0]]["value"] < _HARDLY else "poorly"
    named = [f"{name} ({_area(areas[name]['value'])})" for name in poor]
    where = f" in {_listed(named)}"
    if len(poor) == len(figures["sources"]):
        # Even if all sources are poor, the worst may be far below the best.
        worst, other = areas[poor[0]], areas[poor[-1]]
        where = f", least in {poor[0]} ({_area(worst['value'])})" if worst["high"] < other["low"] else ""
    yield (
        f"The {label(score)} {how} tells good from mismatched pairs{where}: most of the {side} are bad, or "
        f"the {label(score)} does not understand this text."
    )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _shares_asked_for(verdict: Figures, parameters: SelectParameters) -> dict[str, float]:
    """Yield, for minima found on the mismatched pairs, the share that may pass."""
    asked: Mapping[str, float] = verdict.get("asked") or {}
    thresholds = {one.reason: one.threshold({}) for one in parameters.filters}
    return {found[0]: asked[reason] for reason, found in thresholds.items() if found and reason in asked}


def _idle_thresholds(parameters: SelectParameters, counts: Counts) -> Iterator[str]:
    """Yield warnings about minima of judged scores that reject nothing, or everything that earlier filters
    accept.

    A sign of failed translations can legitimately reject nothing.
    """
    standing = counts.kept + sum(counts.rejected[one.reason] for one in parameters.filters)
    for one in parameters.filters:
        found, rejected = one.threshold({}), counts.rejected[one.reason]
        if found and found[0] in judged_scores() and standing and rejected in (0, standing):
            does = "every pair that reaches it" if rejected else "no pair"
            yield f"The threshold of {found[1].value:g} on the {label(found[0])} rejects {does}."
        standing -= rejected
