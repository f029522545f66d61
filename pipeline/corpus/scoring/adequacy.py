"""Estimates how likely people accept a pair as a paraphrase, from its built-in score and signs of an altered
meaning.

A logistic regression, calibrated by ``experiments/adequacy.py`` on human judgements: STS 2012 to 2014 (4 and
above of 5), MSRP, and WMT 2015 (a z-score of 0.3 and above); every domain has the same weight.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.corpus.scorer import inside
from paraforge.corpus.scoring.wrong_pairs import RIGHT, other_rows

ADEQUACY: Final = "adequacy"
SCORE: Final = "paraphrase_score"
_CONSTANT, _OF_SCORE, _OF_CONTRADICTION = -4.895, 7.46, -0.886
SPREAD: Final = 1.194
"""Root mean square error, in logits, of the predicted share in a domain that was left out."""
FEWEST: Final = 30
_DIGITS: Final = 4

Numbers = npt.NDArray[np.float64]


def adequacy(scores: npt.NDArray[Any], contradictions: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Return the probability that people accept each pair, (pairs,); NaN without a score."""
    logits = _CONSTANT + _OF_SCORE * scores.astype(np.float64)
    logits += _OF_CONTRADICTION * contradictions.astype(np.float64)  # known where the score is
    return np.round(1 / (1 + np.exp(-logits)), _DIGITS).astype(np.float32)


def shifted(probabilities: Numbers, logits: float) -> Numbers:
    """Add a number to the logits of probabilities, which are above 0 and below 1."""
    return np.asarray(1 / (1 + np.exp(-logits) / (probabilities / (1 - probabilities))))


def judge_adequacy(right: pa.Table, kept: npt.NDArray[np.bool_]) -> dict[str, float]:
    """Estimate the share of the kept pairs that are adequate.

    right: the sample of scored pairs, see :func:`~paraforge.corpus.scoring.wrong_pairs.write_wrong_pairs`.
    kept: which of these selection keeps.

    Returns ``share``, ``low`` and ``high``. Empty if another scorer is used or too few pairs are kept.
    """
    probabilities, _, weights = _known(right, kept)
    if len(probabilities) < FEWEST:
        return {}
    low, share, high = (
        float(np.average(shifted(probabilities, logits), weights=weights)) for logits in (-SPREAD, 0, SPREAD)
    )
    return {"share": share, "low": low, "high": high}


def _known(right: pa.Table, chosen: npt.NDArray[np.bool_]) -> tuple[Numbers, Numbers, Numbers]:
    """Return adequacy, paraphrase score and weight of the chosen pairs that have both scores; empty if the
    columns are missing."""
    names = (f"{RIGHT}{ADEQUACY}", f"{RIGHT}{SCORE}", "weight")
    if not {*names} <= {*right.column_names}:
        return np.zeros(0), np.zeros(0), np.zeros(0)
    probabilities, scores, weights = (right[name].to_numpy().astype(np.float64) for name in names)
    known = chosen & ~np.isnan(probabilities) & ~np.isnan(scores)
    return probabilities[known], scores[known], weights[known]


def minimum_of_adequate(wrong_pairs: pa.Table, share: float) -> float:
    """Return the least two-digit paraphrase score above which this share of the pairs is likely to be
    adequate. Raises ValueError if adequacy is unknown, or if fewer than 30 pairs would remain."""
    right = other_rows(wrong_pairs)
    probabilities, scores, weights = _known(right, np.ones(len(right), bool))
    if not len(scores):
        raise ValueError("adequacy is only defined for the built-in scorer (paragram=general); set a number")
    # 0.7 as a 32-bit score is slightly less.
    for minimum in (np.unique(np.floor(100 * scores + 1e-5)) / 100).tolist():
        above = inside(scores.astype(np.float32), minimum)
        if above.sum() >= FEWEST and np.average(probabilities[above], weights=weights[above]) >= share:
            return float(minimum)
    raise ValueError(
        f"no minimum score gives {100 * share:g}% adequate pairs and leaves {FEWEST} of the {len(scores):,} "
        "sampled ones; use a lower share or a number"
    )
