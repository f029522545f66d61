"""Finds the minima of a selection on the mismatched pairs, and judges them."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import ValidationError

from paraforge.base.errors import ConfigurationError
from paraforge.base.logs import counted
from paraforge.base.section import problems_of
from paraforge.corpus.scorer import inside
from paraforge.corpus.scoring.verdict import (
    CONFIDENCE,
    judge,
    judge_adequacy,
    judge_changed,
    maximum_of,
    minimum_of,
)
from paraforge.corpus.scoring.wrong_pairs import CONTRADICTION, RIGHT, other_rows, trained_on_corpus
from paraforge.corpus.selection.filters.bounds import BoundsParameters, GoodPairs, WrongPairs
from paraforge.corpus.selection.parameters import SelectParameters

logger = logging.getLogger(__name__)

MAIN_SCORE = "paraphrase_score"
_NO_SAMPLE = "there are no mismatched pairs with the scores. Run 'dvc repro score', or set a number"
_NO_PAIRS = (
    "no mismatched pairs can be made from this corpus: no two rows differ on both sides (there is one row, "
    "or an untrained model gives all sentences the same translation). Set a number, or train the model longer"
)


def settle(
    parameters: SelectParameters, wrong_pairs: pa.Table | None, option: str | None = None
) -> SelectParameters:
    """Return the parameters with a number for every bound given as a share of the wrong or right pairs.

    option: the command-line option of a filter, if it is not from params.yaml.

    Raises ConfigurationError if there are no mismatched pairs to find a bound; it names all filters.
    """
    problems = []
    filters = []
    if wrong_pairs is not None:
        wrong_pairs = other_rows(wrong_pairs)
    for rule in parameters.filters:
        where = f"{option} ({rule.reason})" if option else f"select.filters.{rule.reason}"
        if isinstance(rule, BoundsParameters):
            if _has_no_scores(rule, wrong_pairs):
                logger.info("%s: no pair has a %s, so this filter rejects nothing", where, rule.reason)
                continue
            try:
                rule = rule.model_validate({**rule.model_dump(), **_find_bounds(rule, wrong_pairs, where)})
            except ValidationError as error:
                problems.append(f"{where}: no usable bound was found: {problems_of(error)[0]}. Set a number")
            except ValueError as error:
                problems.append(f"{where}: {error}")
        filters.append(rule)
    if problems:
        raise ConfigurationError(problems)
    return parameters.model_copy(update={"filters": filters})


def _find_bounds(bounds: BoundsParameters, wrong_pairs: pa.Table | None, where: str) -> dict[str, float]:
    """Return numbers for the bounds given as a share. Raises ValueError if there are no pairs to find one."""
    limits: dict[str, float] = {}
    minimum, maximum = bounds.minimum, bounds.maximum
    if not isinstance(minimum, WrongPairs) and not isinstance(maximum, GoodPairs):
        return limits
    if wrong_pairs is None:
        raise ValueError(_NO_SAMPLE)
    if not wrong_pairs.num_rows:
        raise ValueError(_NO_PAIRS)
    if isinstance(minimum, WrongPairs):
        limits["minimum"] = _find_minimum(bounds.score, minimum.wrong_pairs, wrong_pairs, where)
    if isinstance(maximum, GoodPairs):
        limits["maximum"] = maximum_of(wrong_pairs, maximum.good_pairs, bounds.score)
    return limits


def _find_minimum(score: str, share: float, wrong_pairs: pa.Table, where: str) -> float:
    if score not in wrong_pairs.column_names:
        raise ValueError(f"mismatched pairs have no {score}. Run 'dvc repro score', or set a number")
    minimum, bound = minimum_of(wrong_pairs, score, share)
    if bound > share:
        logger.warning(
            "%s: a minimum for %g%% needs more than %s: none of them reaches "
            "%g, but up to %.2g%% of such pairs may (with %g%% confidence)",
            where,
            100 * share,
            counted(wrong_pairs.num_rows, "mismatched pair"),
            minimum,
            100 * bound,
            100 * CONFIDENCE,
        )
    return minimum


def _has_no_scores(bounds: BoundsParameters, wrong_pairs: pa.Table | None) -> bool:
    """Return whether a bound has no effect because no pair has the score and pairs without it are accepted,
    e.g. source similarity in a corpus without a foreign side."""
    if bounds.missing != "accept" or not wrong_pairs:
        return False
    if not isinstance(bounds.minimum, WrongPairs) or f"{RIGHT}{bounds.score}" not in wrong_pairs.column_names:
        return False
    return all(
        wrong_pairs[name].null_count == wrong_pairs.num_rows
        for name in (bounds.score, f"{RIGHT}{bounds.score}")
    )


def minima(parameters: SelectParameters, cuts: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return the highest minimum of each score that has one.

    parameters: settled ones. cuts: for each score with deciles, the values at which deciles 2 to 10 begin.
    """
    limits: dict[str, float] = {}
    for rule in parameters.filters:
        if threshold := rule.threshold(cuts):
            score, minimum = threshold
            limits[score] = max(minimum, limits.get(score, minimum))
    return limits


def maxima(parameters: SelectParameters) -> dict[str, float]:
    """Return the lowest maximum of each score that has one. parameters: settled ones."""
    limits: dict[str, float] = {}
    for rule in parameters.filters:
        if isinstance(rule, BoundsParameters) and isinstance(rule.maximum, float):
            limits[rule.score] = min(rule.maximum, limits.get(rule.score, rule.maximum))
    return limits


def _kept(
    sample: pa.Table, parameters: SelectParameters, lowest: Mapping[str, float], highest: Mapping[str, float]
) -> npt.NDArray[np.bool_]:
    """Return which right pairs of the sample the bounds on scores keep; other filters cannot be applied to
    the sample."""
    required = {*parameters.required}
    for rule in parameters.filters:
        required.update(rule.tenths_of())
        if isinstance(rule, BoundsParameters) and rule.missing == "refuse":
            required.add(rule.score)
    kept = np.ones(sample.num_rows, np.bool_)
    for name in required.union(lowest, highest):
        if f"{RIGHT}{name}" in sample.column_names:
            values = sample[f"{RIGHT}{name}"].to_numpy()
            missing = np.isnan(values) & (name not in required)
            kept &= inside(values, lowest.get(name), highest.get(name)) | missing
    return kept


def verdict(
    parameters: SelectParameters,
    wrong_pairs: pa.Table | None,
    cuts: Mapping[str, Sequence[float]],
    scores: Sequence[str] = (MAIN_SCORE,),
) -> dict[str, Any]:
    """Return the verdict on the scores for the manifest: how well they find mismatched pairs, and how many of
    these reach the minima.

    parameters: with numbers for all bounds, see :func:`settle`. cuts: see :func:`minima`.
    scores: scores to judge besides those with a minimum.

    Returns ``wrong_pairs``, their number without those made by rule; ``changed_meanings``, see
    :func:`~paraforge.corpus.scoring.verdict.judge_changed`; ``trained_on_corpus``; ``adequacy``, see
    :func:`~paraforge.corpus.scoring.verdict.judge_adequacy`; ``scores``, the
    :class:`~paraforge.corpus.scoring.verdict.Verdict` of each score. It is empty without a sample.
    """
    if wrong_pairs is None:
        return {}
    lowest, highest, sample = minima(parameters, cuts), maxima(parameters), other_rows(wrong_pairs)
    return {
        "wrong_pairs": sample.num_rows,
        "changed_meanings": judge_changed(wrong_pairs, highest.get(CONTRADICTION)),
        "trained_on_corpus": trained_on_corpus(wrong_pairs),
        "adequacy": judge_adequacy(sample, _kept(sample, parameters, lowest, highest)),
        "scores": {
            name: asdict(judge(wrong_pairs, name, lowest.get(name)))
            for name in dict.fromkeys([*scores, *lowest])
            if f"{RIGHT}{name}" in wrong_pairs.column_names
        },
    }
