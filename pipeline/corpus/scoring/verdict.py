"""Measures how well a score separates right from wrong pairs, finds a minimum that few wrong ones pass, and
estimates how many pairs people would accept."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.corpus.scorer import inside
from paraforge.corpus.scoring.pairs import by_source
from paraforge.corpus.scoring.wrong_pairs import CONTRADICTION, FEW, RIGHT, changed_meanings, other_rows

FEWEST_CHANGED: Final = 100
"""The least number of changed meanings for a verdict on `contradiction`."""
LOST_SHARE: Final = 0.02
"""The suggested maximum of `contradiction` rejects at most this share of the right pairs."""
SUGGESTED_SHARE: Final = 0.01
"""The suggested minimum lets at most this share of mismatched pairs pass, with the confidence below."""
CONFIDENCE: Final = 0.95
"""The confidence that a minimum keeps within its share on all pairs, not only on the sample."""
ENOUGH: Final = 299
"""The least number of equally weighted mismatched pairs for a suggestion. With fewer, not even a minimum that
none reaches has this confidence."""
_Z: Final = 1.959964
_DIGITS: Final = 3

Numbers = npt.NDArray[np.float64]


def area(
    right: npt.NDArray[np.floating],
    wrong: npt.NDArray[np.floating],
    right_weights: npt.NDArray[np.floating] | None = None,
    wrong_weights: npt.NDArray[np.floating] | None = None,
) -> float:
    """Return the area under the ROC curve of the scores of right and wrong translations, 0 to 1.

    The probability that a right one has the higher score than a wrong one, ties counting one half: 1 if some
        threshold separates them, 0.5 if the score is uninformative. A translation of weight w counts as w.

    Raises ValueError if a side has no scores, or a score is NaN.
    """
    missing = int(np.isnan(right).sum() + np.isnan(wrong).sum())
    if not len(right) or not len(wrong) or missing:
        raise ValueError(f"{len(right)} and {len(wrong)} scores, {missing} of them NaN")
    order = np.argsort(wrong, kind="stable")
    weights = np.ones(len(wrong)) if wrong_weights is None else wrong_weights[order]
    below = np.concatenate([[0.0], np.cumsum(weights)])
    # Half of the wrong ones below, and half of those not above. A tie is only in the second.
    in_order = sum(below[np.searchsorted(wrong[order], right, side)] / 2 for side in ("left", "right"))
    return float(np.average(in_order, weights=right_weights) / below[-1])


@dataclass(frozen=True)
class Share:
    """An estimated share with its 95% interval, all from 0 to 1."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Verdict:
    """The verdict on a score, from the mismatched pairs of a corpus or a source.

    pairs: number of mismatched pairs, with or without this score.
    separation: area under the ROC curve of right against mismatched pairs; None without scores on both sides.
    minimum: the chosen threshold, None for none. passing: share of the mismatched pairs that reach it.
    suggested: the minimum that at most 1% of such mismatched pairs reach, with 95% confidence; None if there
        are too few pairs.
    suggested_kept: share of the right pairs that reach it.
    changed: area under the ROC curve of right pairs against those whose meaning was changed by rule.
    sources: the verdict for each source that has at least 30 mismatched pairs.
    """

    pairs: int
    separation: Share | None = None
    minimum: float | None = None
    passing: Share | None = None
    suggested: float | None = None
    suggested_kept: float | None = None
    changed: Share | None = None
    sources: dict[str, Verdict] = field(default_factory=dict)


def judge(wrong_pairs: pa.Table, score: str, minimum: float | None = None) -> Verdict:
    """Return the verdict on a score for a corpus and for each source.

    wrong_pairs: see :func:`~paraforge.corpus.scoring.wrong_pairs.write_wrong_pairs`.
    score: one of its columns for which it also has the right pair's score.
    minimum: the threshold on this score.
    """
    altered = changed_meanings(wrong_pairs)
    wrong_pairs = other_rows(wrong_pairs)
    by_name = dict(by_source(wrong_pairs["source"]))
    sources = {
        name: _judge(wrong_pairs.take(by_name[name]), score, minimum)
        for name in sorted(by_name)
        if len(by_name[name]) >= FEW
    }
    overall = _judge(wrong_pairs, score, minimum)
    return replace(overall, sources=sources, changed=_separation(*_columns(altered, score)))


def judge_changed(wrong_pairs: pa.Table, chosen: float | None = None) -> dict[str, Any]:
    """Return how well `contradiction` finds pairs with a changed meaning.

    chosen: the selection's maximum, None for none.

    Returns ``pairs``, their number; ``separation``, a :class:`Share` as a dictionary; ``maximum``, which at
    most 2% of the right pairs exceed, and ``found``, the share of the changed pairs that exceed it; with
    ``chosen``, also ``chosen``, ``chosen_found`` and ``chosen_lost``, the shares of the changed and of the
    right pairs that exceed it. Empty if there are too few pairs.
    """
    altered = changed_meanings(wrong_pairs)
    if altered.num_rows < FEWEST_CHANGED or f"{RIGHT}{CONTRADICTION}" not in altered.column_names:
        return {}
    right, wrong, weights = _columns(altered, CONTRADICTION)
    separation = _separation(-right, -wrong, weights)
    own, _, own_weights = _columns(other_rows(wrong_pairs), CONTRADICTION)
    # If all references are equal, no pair has another row's translation.
    if separation is None or np.isnan(own).all():
        return {}
    maximum = maximum_of(wrong_pairs)
    verdicts = {
        "pairs": altered.num_rows,
        "separation": asdict(separation),
        "maximum": maximum,
        "found": _share_above(wrong, maximum, weights),
    }
    if chosen is not None:
        verdicts["chosen"] = chosen
        verdicts["chosen_found"] = _share_above(wrong, chosen, weights)
        verdicts["chosen_lost"] = _share_above(own, chosen, own_weights)
    return verdicts


def maximum_of(wrong_pairs: pa.Table, share: float = LOST_SHARE, score: str = CONTRADICTION) -> float:
    """Return the least three-digit value of `contradiction`, or of another non-negative score, that at most a
    share of the right pairs exceeds. Raises ValueError if none of the corpus' own pairs has the score."""
    rows = other_rows(wrong_pairs)
    if f"{RIGHT}{score}" in rows.column_names:
        right, _, weights = _columns(rows, score)
        if not np.isnan(right).all():
            return max(0.0, minimum_for(right, weights, share, above=False))
    raise ValueError(f"none of the corpus' own pairs has {score}: run 'dvc repro score', or set a number")


def _separation(right: Numbers, wrong: Numbers, weights: Numbers) -> Share | None:
    both = ~np.isnan(right), ~np.isnan(wrong)
    if not (both[0].any() and both[1].any()):
        return None
    value = area(right[both[0]], wrong[both[1]], *(weights[known] for known in both))
    return interval(value, min(_effective(weights[known]) for known in both))


def _judge(rows: pa.Table, score: str, minimum: float | None) -> Verdict:
    right, wrong, weights = _columns(rows, score)
    verdict = Verdict(len(wrong), minimum=minimum)
    if not len(wrong):
        return verdict
    number = _effective(weights)
    if number >= ENOUGH and not np.isnan(wrong).all():
        suggested = minimum_for(wrong, weights, SUGGESTED_SHARE)
        kept = _share_reaching(right, suggested, weights)
        verdict = replace(verdict, suggested=suggested, suggested_kept=kept)
    if minimum is not None:
        verdict = replace(verdict, passing=interval(_share_reaching(wrong, minimum, weights), number))
    return replace(verdict, separation=_separation(right, wrong, weights))


def minimum_of(wrong_pairs: pa.Table, score: str, share: float) -> tuple[float, float]:
    """Return the minimum of a score that at most a share of the mismatched pairs reaches, and the
    :func:`upper_bound` of that share, which exceeds it if there are too few pairs. Raises ValueError if there
    are no mismatched pairs, or none has the score."""
    _, wrong, weights = _columns(other_rows(wrong_pairs), score)
    if np.isnan(wrong).all():
        raise ValueError("no mismatched pair has this score")
    minimum = minimum_for(wrong, weights, share)
    passing = np.array([_share_reaching(wrong, minimum, weights)])
    return minimum, float(upper_bound(passing, _effective(weights))[0])


def _columns(rows: pa.Table, score: str) -> tuple[npt.NDArray[Any], npt.NDArray[Any], Numbers]:
    """Return the scores of the right and of the mismatched pairs, NaN for none, and the weights."""
    right, wrong = (rows[name].to_numpy() for name in (f"{RIGHT}{score}", score))
    return right, wrong, rows["weight"].to_numpy()


def _share_reaching(scores: npt.NDArray[Any], minimum: float, weights: Numbers) -> float:
    return float(np.average(inside(scores, minimum), weights=weights))


def _share_above(scores: npt.NDArray[Any], maximum: float, weights: Numbers) -> float:
    above = inside(scores) & ~inside(scores, maximum=maximum)
    return float(np.average(above, weights=weights))


def _effective(weights: Numbers) -> float:
    """Return the effective sample size: the number of equally weighted pairs with the same variance (Kish
    1965)."""
    return float(weights.sum() ** 2 / np.square(weights).sum())


def interval(share: float, number: float) -> Share:
    """Return Wilson's 95% interval of a share observed in ``number`` cases.

    It also holds for an area under the ROC curve with the ``number`` of the smaller side, because the
    variance is at most area (1 - area) / number (Birnbaum and Klose 1957).
    """
    center = (share + _Z**2 / (2 * number)) / (1 + _Z**2 / number)
    half = _Z * math.sqrt(share * (1 - share) / number + (_Z / (2 * number)) ** 2) / (1 + _Z**2 / number)
    return Share(share, max(0.0, min(share, center - half)), min(1.0, max(share, center + half)))


def upper_bound(passing: Numbers, number: float) -> Numbers:
    """Return an upper bound, with 95% confidence, on the share of all mismatched pairs that reach a minimum
    found on ``number`` of them.

    passing: the shares of these, 0 to 1, that reach it. If the minimum is just above the (k + 1)-th best of
        n, the share that reaches it is distributed as Beta(k + 1, n - k) for any scores. This is also the
        bound of Clopper and Pearson (1934). Weighted pairs count as their effective number (Korn and Graubard
        1998).
    """
    from scipy.special import betaincinv

    above = np.minimum(passing, 1) * number
    # If all pairs reach the minimum, the bound is 1.
    bounds = betaincinv(above + 1, np.maximum(number - above, 1e-9), CONFIDENCE)
    return np.where(above < number, bounds, 1.0)


def minimum_for(wrong: npt.NDArray[Any], weights: Numbers, share: float, above: bool = True) -> float:
    """Return the least rounded minimum that at most a share of such mismatched pairs reaches, with 95%
    confidence; with too few pairs for that, a minimum that none of them reaches.

    wrong: their scores, NaN for none, which never reaches a minimum; at least one is a number.
    share: share of the weight, 0 to less than 1.
    above: whether the result must be above the best score that too many pairs reach. A maximum may equal that
        score, because a score does not exceed itself.
    """
    known = ~np.isnan(wrong)
    order = np.argsort(-wrong[known], kind="stable")
    scores, passing = wrong[known][order], np.cumsum(weights[known][order])
    # Pairs with the same score pass together.
    last = np.append(np.flatnonzero(np.diff(scores)), len(scores) - 1)
    refused = last[upper_bound(passing[last] / weights.sum(), _effective(weights)) > share]
    spread = float(scores[0]) - float(scores[-1])
    digits = _DIGITS if spread <= 0 else max(_DIGITS, _DIGITS - 1 - math.floor(math.log10(spread)))
    unit = 10.0**-digits
    if not len(refused):
        return round(math.floor(float(scores[-1]) / unit) * unit, digits)
    bound = scores[refused[0]]
    place = math.floor(float(bound) / unit)
    minimum = round(place * unit, digits)
    while (reached := wrong.dtype.type(minimum)) < bound or (above and reached == bound):
        place += 1
        minimum = round(place * unit, digits)
    return minimum


# A logistic regression, calibrated by `experiments/adequacy.py` on human judgments: STS 2012 to 2014 (4 and
# above of 5), MSRP, and WMT 2015 (a z-score of 0.3 and above); every domain has the same weight.
_CONSTANT, _OF_SCORE, _OF_CONTRADICTION = -4.895, 7.46, -0.886
_SPREAD: Final = 1.194
"""Root mean square error, in logits, of the predicted share in a domain that was left out."""
_FEWEST: Final = 30
_ADEQUACY_DIGITS: Final = 4


def adequacy(scores: npt.NDArray[Any], contradictions: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Return the probability that people accept each pair as a paraphrase, (pairs,); NaN without a score.

    scores, contradictions: built-in score and `contradiction` of each pair.
    """
    logits = _CONSTANT + _OF_SCORE * scores.astype(np.float64)
    logits += _OF_CONTRADICTION * contradictions.astype(np.float64)  # known where the score is
    return np.round(1 / (1 + np.exp(-logits)), _ADEQUACY_DIGITS).astype(np.float32)


def _shift_logits(probabilities: Numbers, logits: float) -> Numbers:
    """Add a number to the logits of probabilities, which are above 0 and below 1."""
    return np.asarray(1 / (1 + np.exp(-logits) / (probabilities / (1 - probabilities))))


def judge_adequacy(right: pa.Table, kept: npt.NDArray[np.bool_]) -> dict[str, float]:
    """Estimate the share of the kept pairs that are adequate.

    right: the sample of scored pairs, see :func:`~paraforge.corpus.scoring.wrong_pairs.write_wrong_pairs`.
    kept: which of these selection keeps.

    Returns ``share``, ``low`` and ``high``. Empty if another scorer is used or too few pairs are kept.
    """
    names = (f"{RIGHT}adequacy", "weight")
    if not {*names} <= {*right.column_names}:
        return {}
    probabilities, weights = (right[name].to_numpy().astype(np.float64) for name in names)
    known = kept & ~np.isnan(probabilities)
    probabilities, weights = probabilities[known], weights[known]
    if len(probabilities) < _FEWEST:
        return {}
    low, share, high = (
        float(np.average(_shift_logits(probabilities, logits), weights=weights))
        for logits in (-_SPREAD, 0, _SPREAD)
    )
    return {"share": share, "low": low, "high": high}
