"""Puts the verdict on a corpus' scores into words, for the summary, the report and the dataset card."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from paraforge.base.logs import counted
from paraforge.corpus.columns import LABELS
from paraforge.corpus.publication.manifest import Manifest
from paraforge.corpus.scoring.verdict import CONFIDENCE, LOST_SHARE

_POOR: Final = 0.9
"""A useful score reaches this separation. Below it, more than one in ten comparisons of a right with a
mismatched pair goes the wrong way."""
_UNSURE: Final = 0.02
_NAMED: Final = 5

Figures = Mapping[str, Any]


def verdict_words(verdict: Figures, kept: int) -> list[str]:
    """Return the verdict on scores in sentences, the most important first, and warnings last.

    verdict: see :func:`paraforge.corpus.selection.thresholds.verdict`; empty for none.
    kept: the number of kept pairs.
    """
    if not verdict:
        return []
    sentences = []
    if kept and (adequacy := verdict.get("adequacy")):
        share, low, high = (round(100 * adequacy[name]) for name in ("share", "low", "high"))
        sentences.append(
            f"About {share}% ({low} to {high}%) of the {counted(kept, 'kept pair')} are likely to be "
            "adequate paraphrases."
        )
    if not verdict["wrong_pairs"]:
        return [*sentences, "The scores cannot be checked: no two rows of a source differ on both sides."]
    for score, figures in verdict["scores"].items():
        sentences += _describe_score(score, figures)
    if changed := verdict.get("changed_meanings"):
        sentences.append(_describe_altered_meanings(changed))
    for score, figures in verdict["scores"].items():
        sentences += _poor_sources(score, figures)
    if verdict.get("trained_on_corpus"):
        sentences.append(
            "The paraphrase score was trained on the pairs that it judges, so it does not see their "
            "mistakes: choose one that was trained on other text (paragram=general for English)."
        )
    return sentences


def separations(manifest: Manifest) -> list[list[str]]:
    """Return a table of the verdicts on all sources together and on each with enough mismatched pairs.

    Columns: score, source, mismatched pairs, area under the curve, share that passes the minimum, suggested
    minimum, share of the pairs that it keeps.
    """
    rows = []
    for score, verdict in (manifest.verdict.get("scores") or {}).items():
        sources = verdict["sources"] if len(verdict["sources"]) > 1 else {}
        for source, group in [("all sources", verdict), *sources.items()] if verdict["pairs"] else []:
            suggested, passing = group["suggested"], group["passing"]
            passes = "–" if passing is None else _two_digits(passing["value"])
            instead = ["–", "–"]
            if suggested is not None:
                instead = [f"{suggested:g}", share_text(group["suggested_kept"])]
            area = area_text(group["separation"])
            rows.append([label(score), source, f"{group['pairs']:,}", area, passes, *instead])
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


def _describe_score(score: str, figures: Figures) -> Iterator[str]:
    """Yield sentences on how well a score separates mismatched pairs, and how many pass its threshold and the
    suggested one."""
    if figures["separation"] is None:
        return
    areas = f"{area_text(figures['separation'])} against mismatched pairs"
    # An altered translation has the same similarity to the source.
    if figures.get("changed") and score != "source_similarity":
        areas += f", {_area(figures['changed']['value'])} against altered meanings"
    yield f"{label(score).capitalize()}: AUC {areas} (1 = perfect, 0.5 = chance)."
    if figures["minimum"] is not None:
        passing = _two_digits(figures["passing"]["value"])
        yield f"The threshold of {figures['minimum']:g} lets {passing} of the mismatched pairs through."
    if figures["suggested"] not in (None, figures["minimum"]) and figures["suggested_kept"]:
        kept = share_text(figures["suggested_kept"])
        yield (
            f"A threshold of {figures['suggested']:g} would let at most 1 in 100 through "
            f"({100 * CONFIDENCE:g}% confidence) and keep {kept} of the pairs."
        )


def _describe_altered_meanings(figures: Figures) -> str:
    """Return how well `contradiction` finds pairs altered by rule, at its maximum or at a suggested one."""
    if "chosen" in figures:
        maximum, found_share = figures["chosen"], figures["chosen_found"]
        lost = _two_digits(figures["chosen_lost"])
    else:
        maximum, found_share, lost = figures["maximum"], figures["found"], f"at most {100 * LOST_SHARE:g}%"
    return (
        f"Contradiction: AUC {area_text(figures['separation'])} against altered meanings; rejecting scores "
        f"above {maximum:g} catches {share_text(found_share)} of these and loses {lost} of the good pairs."
    )


def _two_digits(share: float) -> str:
    """Format a share that should be small with two digits, e.g. ``7.5%``."""
    return f"{100 * share:.2g}%" if share < 0.99 else share_text(share)


def share_text(share: float) -> str:
    """Format a share, e.g. ``4%``; only exact 0 and 1 become 0% and 100%."""
    if 0 < share < 0.01:
        return "less than 1%"
    if 0.99 < share < 1:
        return "more than 99%"
    return f"{math.floor(round(100 * share, 9))}%"  # 100 * 0.29 is less than 29


def _poor_sources(score: str, figures: Figures) -> Iterator[str]:
    """Yield a warning that names the sources in which a score poorly separates right from mismatched
    pairs."""
    areas = {name: area["separation"] for name, area in figures["sources"].items() if area["separation"]}
    poor = sorted(
        (name for name, area in areas.items() if area["high"] < _POOR), key=lambda name: areas[name]["value"]
    )
    if poor:
        named = ", ".join(f"{name or 'this file'} ({_area(areas[name]['value'])})" for name in poor[:_NAMED])
        more = f" and {len(poor) - _NAMED} more" if len(poor) > _NAMED else ""
        side = "references" if score == "source_similarity" else "translations"
        yield (
            f"The {label(score)} poorly tells good from mismatched pairs in {named}{more}: most of the "
            f"{side} are bad, or the {label(score)} does not understand this text."
        )
