"""What the grades show: Table 3 of ParaNMT-50M, agreement, how many strong paraphrases the corpus has."""

import itertools
import math
import warnings
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from paraforge.base.errors import require
from paraforge.corpus.statistics.counts import BANDS
from paraforge.interface.annotation.store import AnnotationStore, Answer

GRADES = (1, 2, 3)


def cohen_kappa(first: Sequence[int], second: Sequence[int], *, linear: bool = False) -> float | None:
    """Cohen's kappa of two annotators over the same items (Cohen 1960; weighted, Cohen 1968).

    first, second: grades 1-3 of n items, in the same order.
    linear: weigh a disagreement by its distance: between 1 and 3 people disagree twice as much as between 2
        and 3.

    Returns at most 1; 0 is what chance gives. None where it is not defined: without items, or where both give
    one and the same grade throughout. Raises MissingPackageError: scikit-learn is not installed.
    """
    if not first and not second:
        return None
    metrics = require("sklearn.metrics", "annotate")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where both give one grade, 0 / 0
        kappa = float(
            metrics.cohen_kappa_score(first, second, labels=GRADES, weights="linear" if linear else None)
        )
    return None if math.isnan(kappa) else kappa


STRONG = 3
LEAST_ANSWERS = 10
"""Graded pairs that a band needs: 0 strong pairs of 3 would be an estimate of 0 without an error."""
QUESTIONS = ("paraphrase", "fluency")


@dataclass(frozen=True)
class BandRow:
    """One line of Table 3, in the order of its columns.

    pairs: of the corpus in this band.
    overlap_mean, overlap_deviation: trigram overlap of those pairs in [0, 1]. drawn: pairs of the sample.
    graded: how many of them have an answer.
    paraphrase, fluency: how many graded pairs have grade 1, 2, 3. A pair that several people graded counts
        once, in equal parts: with grades 2 and 3 it is half a 2 and half a 3.
    """

    band: str
    pairs: int
    overlap_mean: float | None
    overlap_deviation: float | None
    drawn: int
    graded: int
    paraphrase: tuple[float, float, float]
    fluency: tuple[float, float, float]


@dataclass(frozen=True)
class Agreement:
    """How far two annotators agree on one question over the pairs that both graded."""

    first: str
    second: str
    question: str
    pairs: int
    agreement: float | None
    kappa: float | None
    weighted_kappa: float | None


@dataclass(frozen=True)
class Estimate:
    """A number of pairs of the whole corpus.

    pairs: the number.
    standard_error: of sampling; None where only one pair of a band is graded.
    fewest_answers: graded pairs of the band that has the fewest, not counting bands that are graded whole;
        None where all are.
    """

    pairs: float
    standard_error: float | None
    fewest_answers: int | None = None

    @property
    def is_known(self) -> bool:
        """Whether there are enough answers from every band, and the error is at most half the number."""
        enough = self.fewest_answers is None or self.fewest_answers >= LEAST_ANSWERS
        return enough and self.standard_error is not None and self.standard_error <= self.pairs / 2


@dataclass(frozen=True)
class Report:
    """All results of an evaluation.

    table: Table 3 over all annotators. by_annotator: the same for each of them.
    strong: see :func:`estimate_strong`.
    """

    name: str
    signature: str
    seed: int
    annotators: dict[str, int]
    table: list[BandRow]
    by_annotator: dict[str, list[BandRow]]
    agreements: list[Agreement]
    strong: Estimate | None


Judgements = dict[int, list[tuple[str, Answer]]]


def build_report(store: AnnotationStore) -> Report:
    """Everything from the answers as they are now; half answers do not count."""
    judgements: Judgements = defaultdict(list)
    for pair, name, answer, _ in store.judgements():
        judgements[pair].append((name, answer))
    names = [annotator.name for annotator in store.annotators() if annotator.graded]
    table = band_table(store, judgements)
    by_annotator = {
        name: band_table(
            store, {pair: [one for one in given if one[0] == name] for pair, given in judgements.items()}
        )
        for name in names
    }
    return Report(
        name=store.draw.origin.name,
        signature=store.draw.origin.signature,
        seed=store.draw.seed,
        annotators={name: sum(row.graded for row in rows) for name, rows in by_annotator.items()},
        table=table,
        by_annotator=by_annotator,
        agreements=agreements(judgements, names),
        strong=estimate_strong(table),
    )


def band_table(store: AnnotationStore, judgements: Judgements) -> list[BandRow]:
    """One row a band from the answers of each pair, keyed by the pair's number."""
    rows = []
    for index, (band, figures) in enumerate(zip(BANDS, store.draw.bands, strict=True)):
        drawn = [number for number, pair in enumerate(store.draw.pairs, start=1) if pair.band == index]
        graded = [judgements[number] for number in drawn if judgements.get(number)]
        rows.append(
            BandRow(
                band=band,
                pairs=figures.pairs,
                overlap_mean=figures.overlap.mean,
                overlap_deviation=figures.overlap.deviation,
                drawn=len(drawn),
                graded=len(graded),
                paraphrase=_counts([[answer.paraphrase for _, answer in given] for given in graded]),
                fluency=_counts([[answer.fluency for _, answer in given] for given in graded]),
            )
        )
    return rows


def _counts(grades: Sequence[Sequence[int | None]]) -> tuple[float, float, float]:
    counts = [math.fsum(given.count(grade) / len(given) for given in grades) for grade in GRADES]
    return counts[0], counts[1], counts[2]


def agreements(judgements: Judgements, names: Sequence[str]) -> list[Agreement]:
    """Agreement of each two annotators on each question; those without a common pair are left out."""
    result = []
    for first, second in itertools.combinations(names, 2):
        both = [dict(given) for given in judgements.values()]
        common = [(given[first], given[second]) for given in both if first in given and second in given]
        for question in QUESTIONS if common else ():
            one = [getattr(left, question) for left, _ in common]
            other = [getattr(right, question) for _, right in common]
            equal = [left == right for left, right in zip(one, other, strict=True)]
            result.append(
                Agreement(
                    first,
                    second,
                    question,
                    len(common),
                    sum(equal) / len(equal),
                    cohen_kappa(one, other),
                    cohen_kappa(one, other, linear=True),
                )
            )
    return result


def estimate_strong(table: Sequence[BandRow]) -> Estimate | None:
    """How many pairs of the corpus are strong paraphrases (grade 3), from the stratified sample.

    Each band's pairs times its share of grade 3, summed (ParaNMT-50M, section 3.2: "approximately 30
    million"). The standard error is that of a stratified sample without replacement; it counts sampling
    alone, not that people may err. None while a band that has pairs has no grades.
    """
    total = variance = 0.0
    known = True
    fewest: int | None = None
    for row in table:
        if not row.pairs:
            continue
        if not row.graded:
            return None
        share = row.paraphrase[STRONG - 1] / row.graded
        total += row.pairs * share
        left_out = 1 - row.graded / row.pairs
        if left_out:
            fewest = row.graded if fewest is None else min(fewest, row.graded)
        if row.graded > 1:
            variance += row.pairs**2 * left_out * share * (1 - share) / (row.graded - 1)
        elif left_out:
            known = False
    return Estimate(total, math.sqrt(variance) if known else None, fewest)


TABLE_SCHEMA = pa.schema(
    [
        ("annotator", pa.string()),
        ("band", pa.string()),
        ("pairs", pa.int64()),
        ("overlap_3_mean", pa.float64()),
        ("overlap_3_sd", pa.float64()),
        ("drawn", pa.int64()),
        ("graded", pa.int64()),
        *((f"{question}_{grade}", pa.float64()) for question in QUESTIONS for grade in GRADES),
    ]
)
EVERYBODY = "all"


def table_rows(report: Report) -> pa.Table:
    """Table 3 as rows: of all annotators together (``all``), then of each."""
    tables = {EVERYBODY: report.table, **report.by_annotator}
    rows: list[dict[str, Any]] = []
    for name, table in tables.items():
        for row in table:
            *plain, paraphrase, fluency = vars(row).values()
            values = [name, *plain, *paraphrase, *fluency]
            rows.append(dict(zip(TABLE_SCHEMA.names, values, strict=True)))
    return pa.Table.from_pylist(rows, TABLE_SCHEMA)


ANSWER_SCHEMA = pa.schema(
    [
        ("band", pa.string()),
        ("source", pa.string()),
        ("line", pa.int64()),
        ("rank", pa.int8()),
        ("rejected", pa.string()),
        ("reference", pa.string()),
        ("translation", pa.string()),
        ("paraphrase_score", pa.float32()),
        ("overlap_3", pa.float32()),
        ("annotator", pa.string()),
        ("paraphrase", pa.int8()),
        ("fluency", pa.int8()),
        ("comment", pa.string()),
        ("answered_at", pa.string()),
    ]
)


def answer_rows(store: AnnotationStore) -> pa.Table:
    """Every complete answer with its pair, one row an answer."""
    rows = [
        {
            **vars(store.draw.pairs[number - 1]),
            "band": BANDS[store.draw.pairs[number - 1].band],
            "annotator": name,
            **vars(answer),
            "answered_at": at,
        }
        for number, name, answer, at in store.judgements()
    ]
    return pa.Table.from_pylist(rows, ANSWER_SCHEMA)
