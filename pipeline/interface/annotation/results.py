"""Computes the results of the grades: Table 3 of ParaNMT-50M, agreement, the number of strong paraphrases."""

import itertools
import math
import statistics
import warnings
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from paraforge.base.errors import require
from paraforge.corpus.statistics.counts import BANDS
from paraforge.interface.annotation.store import AnnotationStore, Answer, Draw

GRADES = (1, 2, 3)
STRONG = 3
LEAST_ANSWERS = 10
"""The least number of graded pairs in a band. With 0 strong pairs of 3, the estimate would be 0 without an
error."""
QUESTIONS = ("paraphrase", "fluency")
Judgments = dict[int, list[tuple[str, Answer]]]


def cohen_kappa(first: Sequence[int], second: Sequence[int], *, linear: bool = False) -> float | None:
    """Return Cohen's kappa of two annotators over the same items (Cohen 1960; weighted, Cohen 1968).

    first, second: grades 1-3 of n items, at least one, in the same order.
    linear: weigh a disagreement by its distance: grades 1 and 3 count twice as much as 2 and 3.

    At most 1; 0 for agreement by chance; None if both annotators always give the same grade.
    Raises MissingPackageError if scikit-learn is not installed.
    """
    metrics = require("sklearn.metrics", "annotate")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 0 / 0 if both always give the same grade
        weights = "linear" if linear else None
        kappa = float(metrics.cohen_kappa_score(first, second, labels=GRADES, weights=weights))
    return None if math.isnan(kappa) else kappa


@dataclass(frozen=True)
class BandRow:
    """One line of Table 3, in the order of its columns.

    pairs: pairs of the corpus in this band. overlap_3_mean, overlap_3_sd: their trigram overlap.
    drawn: pairs in the sample. graded: how many of these have an answer.
    paraphrase, fluency: how many graded pairs have grade 1, 2, 3. A pair that several people graded counts
        once, in equal parts: with grades 2 and 3 it is half a 2 and half a 3.
    strong_variance: sample variance of the pairs' parts of grade 3; None for fewer than two pairs.
    """

    band: str
    pairs: int
    overlap_3_mean: float | None
    overlap_3_sd: float | None
    drawn: int
    graded: int
    paraphrase: tuple[float, ...]
    fluency: tuple[float, ...]
    strong_variance: float | None


@dataclass(frozen=True)
class Agreement:
    """The agreement of two annotators on one question, over the pairs that both graded."""

    first: str
    second: str
    question: str
    pairs: int
    agreement: float
    kappa: float | None
    weighted_kappa: float | None


@dataclass(frozen=True)
class Estimate:
    """A number of pairs of the whole corpus.

    standard_error: of sampling; None if only one pair of a band is graded.
    fewest_answers: graded pairs of the band that has the fewest, not counting bands that are graded whole;
        None if all are.
    """

    pairs: float
    standard_error: float | None
    fewest_answers: int | None = None

    @property
    def has_enough_answers(self) -> bool:
        """Whether there are enough answers from every band."""
        return self.fewest_answers is None or self.fewest_answers >= LEAST_ANSWERS

    @property
    def is_known(self) -> bool:
        """Whether there are enough answers, and the error is at most half the number."""
        certain = self.standard_error is not None and self.standard_error <= self.pairs / 2
        return self.has_enough_answers and certain


@dataclass(frozen=True)
class Report:
    """All results of an evaluation.

    table: Table 3 over all annotators. graded: number of pairs that each annotator graded, by name.
    strong: see :func:`estimate_strong`.
    """

    draw: Draw
    table: list[BandRow]
    graded: dict[str, int]
    agreements: list[Agreement]
    strong: Estimate | None


def build_report(store: AnnotationStore) -> Report:
    """Compute all results from the current answers. Answers with only one grade do not count."""
    judgments: Judgments = defaultdict(list)
    graded: Counter[str] = Counter()
    for pair, name, answer, _ in store.judgments():
        judgments[pair].append((name, answer))
        graded[name] += 1
    table = band_table(store.draw, judgments)
    graded_by_name = dict(sorted(graded.items()))
    return Report(
        store.draw, table, graded_by_name, agreements(judgments, [*graded_by_name]), estimate_strong(table)
    )


def band_table(draw: Draw, judgments: Judgments) -> list[BandRow]:
    """Make one row per band from the answers of each pair, keyed by the pair's number."""
    rows = []
    for index, (band, figures) in enumerate(zip(BANDS, draw.bands, strict=True)):
        drawn = [number for number, pair in enumerate(draw.pairs, start=1) if pair.band == index]
        graded = [[answer for _, answer in judgments[number]] for number in drawn if judgments.get(number)]
        paraphrase, fluency = (
            [
                [
                    sum(getattr(answer, name) == grade for answer in answers) / len(answers)
                    for answers in graded
                ]
                for grade in GRADES
            ]
            for name in QUESTIONS
        )
        strong = paraphrase[STRONG - 1]
        rows.append(
            BandRow(
                band,
                **vars(figures),
                drawn=len(drawn),
                graded=len(graded),
                paraphrase=tuple(map(math.fsum, paraphrase)),
                fluency=tuple(map(math.fsum, fluency)),
                strong_variance=statistics.variance(strong) if len(strong) > 1 else None,
            )
        )
    return rows


def agreements(judgments: Judgments, names: Sequence[str]) -> list[Agreement]:
    """Return the agreement of each pair of annotators on each question; those without a common item are left
    out."""
    result = []
    for (first, second), question in itertools.product(itertools.combinations(names, 2), QUESTIONS):
        by_pair = [dict(answers) for answers in judgments.values()]
        grades = [
            (getattr(answers[first], question), getattr(answers[second], question))
            for answers in by_pair
            if first in answers and second in answers
        ]
        if grades:
            first_grades, second_grades = zip(*grades, strict=True)
            equal = sum(first_grade == second_grade for first_grade, second_grade in grades) / len(grades)
            kappas = (cohen_kappa(first_grades, second_grades, linear=linear) for linear in (False, True))
            result.append(Agreement(first, second, question, len(grades), equal, *kappas))
    return result


def estimate_strong(table: Sequence[BandRow]) -> Estimate | None:
    """Estimate how many pairs of the corpus are strong paraphrases (grade 3), from the stratified sample.

    Each band's pairs times its share of grade 3, summed (ParaNMT-50M, section 3.2: "approximately 30
    million"). The standard error is that of a stratified sample without replacement; it covers only sampling,
    not human error. None while a band that has pairs has no grades.
    """
    rows = [row for row in table if row.pairs]
    if not all(row.graded for row in rows):
        return None
    total = variance = 0.0
    for row in rows:
        total += row.pairs * row.paraphrase[STRONG - 1] / row.graded
        if row.graded < row.pairs:
            spread = math.inf if row.strong_variance is None else row.strong_variance / row.graded
            variance += row.pairs**2 * (1 - row.graded / row.pairs) * spread
    error = math.sqrt(variance) if math.isfinite(variance) else None
    return Estimate(total, error, min((row.graded for row in rows if row.graded < row.pairs), default=None))
