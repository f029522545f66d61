"""Table 3, agreement, and the view of grades; the paper's table gives the paper's estimate."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from paraforge.interface.annotation.results import (
    BandRow,
    build_report,
    cohen_kappa,
    estimate_strong,
)
from paraforge.interface.annotation.store import AnnotationStore, Answer, create_store
from tests.interface.annotation.evaluations import NASTY, small_draw


@pytest.fixture
def store(tmp_path: Path) -> AnnotationStore:
    """Pairs 1, 2 in band 0, 3 in 1, 4 in 2, 5 in 3, 6-8 in 4."""
    store = create_store(tmp_path / "annotations.sqlite", small_draw())
    anna, boris = store.join("Anna").number, store.join("Boris").number
    for pair, grades in {1: (1, 3), 2: (1, 2), 3: (2, 3), 4: (2, 3), 5: (3, 3), 6: (3, 3), 7: (2, 1)}.items():
        store.record(anna, pair, Answer(*grades))
    for pair, grades in {6: (3, 3), 7: (3, 2)}.items():
        store.record(boris, pair, Answer(*grades, "a\tcomment"))
    store.record(boris, 8, Answer(2, None))
    return store


def band(pairs: int, grades: tuple[int, int, int]) -> BandRow:
    """A band of so many pairs with whole grades; its spread is their sample variance."""
    graded = sum(grades)
    share = grades[2] / graded
    spread = share * (1 - share) * graded / (graded - 1) if graded > 1 else None
    return BandRow("", pairs, 0.0, 0.0, graded, graded, grades, (0, 0, graded), spread)


def test_paper_table_3(store: AnnotationStore) -> None:
    report = build_report(store)
    assert report.graded == {"Anna": 7, "Boris": 2} and sum(row.graded for row in report.table) == 7
    first, _, _, _, last = report.table
    assert first == BandRow("(-0.1, 0.2]", 1_000, 0.5, 0.5, 2, 2, (2, 0, 0), (0, 1, 1), 0.0)
    # Pair 7 has grades 2 and 3, fluency 1 and 2: half of each. Pair 8 has no complete answer.
    assert last == BandRow("(0.8, 1.0]", 1_000, 0.5, 0.5, 3, 2, (0, 0.5, 1.5), (0.5, 0.5, 1), 0.125)


def test_agreement_uses_common_pairs(store: AnnotationStore) -> None:
    paraphrase, fluency = build_report(store).agreements
    assert (paraphrase.first, paraphrase.second, paraphrase.pairs) == ("Anna", "Boris", 2)
    # 3-3 and 2-3: Boris always says 3, so chance gives one half too.
    assert (paraphrase.agreement, paraphrase.kappa) == (0.5, 0)
    # 3-3 and 1-2: chance 1/4; (0.5 - 0.25) / 0.75. Linear: distance 1 of (1 + 2 + 1 + 0) / 2.
    assert fluency.kappa == pytest.approx(1 / 3)
    assert fluency.weighted_kappa == pytest.approx(1 - 1 / 2)


def test_strong_paraphrases_of_paranmt() -> None:
    """Table 3 of the paper says "approximately 30 million strong paraphrase pairs"."""
    millions = (4.0, 3.8, 6.9, 14.4, 18.0)
    grades = ((92, 6, 2), (53, 32, 15), (22, 45, 33), (1, 43, 56), (1, 13, 86))
    table = [band(round(number * 1e6), given) for number, given in zip(millions, grades, strict=True)]
    estimate = estimate_strong(table)
    # 4*0.02 + 3.8*0.15 + 6.9*0.33 + 14.4*0.56 + 18*0.86 = 26.471
    assert estimate.pairs == pytest.approx(26.471e6)
    # N * sqrt(p (1 - p) / 99): 0.056, 0.136, 0.326, 0.718, 0.628; the root of their squares' sum.
    assert estimate.standard_error == pytest.approx(1.02e6, rel=0.01)


@pytest.mark.parametrize(
    ("pairs", "graded", "strong", "error", "known"),
    [
        # 10^2 * (1 - 5 / 10) * 0.4 * 0.6 / (5 - 1) = 3
        (10, (5,), (2,), 3**0.5, False),
        (8, (2,), (1,), 12**0.5, False),  # 8^2 * (1 - 2 / 8) * 0.5 * 0.5 / (2 - 1)
        (10, (10,), (5,), 0.0, True),  # a whole band has no sampling error
        (1, (1,), (1,), 0.0, True),
        (1_000, (100, 100), (50, 80), None, True),
        (1_000, (9, 100), (5, 80), None, False),
        # 1 of 10 and 1 of 100, as in "261 ± 260": sqrt(0.09 / 9) is all of 0.1.
        (1_000, (10, 100), (1, 1), None, False),
        (1_000, (10, 100), (0, 0), None, True),
        (1_000, (3, 3), (0, 0), None, False),
    ],
)
def test_estimate_needs_enough_answers(
    pairs: int, graded: tuple[int, ...], strong: tuple[int, ...], error: float | None, known: bool
) -> None:
    answers = zip(graded, strong, strict=True)
    estimate = estimate_strong([band(pairs, (number - grade, 0, grade)) for number, grade in answers])
    assert estimate.is_known == known
    expected = sum(pairs * grade / number for number, grade in zip(graded, strong, strict=True))
    assert estimate.pairs == pytest.approx(expected)
    assert (estimate.fewest_answers is None) == (graded == (pairs,))
    assert error is None or estimate.standard_error == pytest.approx(error)


def test_no_estimate_without_grades(store: AnnotationStore, tmp_path: Path) -> None:
    empty = create_store(tmp_path / "other.sqlite", small_draw())
    report = build_report(empty)
    assert report.strong is None and report.agreements == [] and report.graded == {}
    # One pair of a thousand says nothing of how far it may be off.
    estimate = build_report(store).strong
    assert estimate is not None and estimate.standard_error is None


def test_grades_view(store: AnnotationStore) -> None:
    """docs/query.md tells users to query this view."""
    with closing(sqlite3.connect(store.path)) as connection:
        connection.row_factory = sqlite3.Row
        rows = connection.execute("SELECT * FROM grades").fetchall()
    assert [row["annotator"] for row in rows] == ["Anna"] * 6 + ["Boris", "Anna", "Boris"]
    assert (rows[-1]["comment"], rows[-1]["translation"]) == ("a\tcomment", f"Translation 6: {NASTY}")
    assert (rows[0]["paraphrase"], rows[0]["fluency"], rows[0]["rejected"]) == (1, 3, "paraphrase_score")


# Ten items. Equal: 6. First gives 1, 2, 3: 3, 3, 4 times; second: 3, 4, 3 times.
FIRST = [1, 1, 1, 2, 2, 2, 3, 3, 3, 3]
SECOND = [1, 1, 2, 2, 2, 3, 3, 3, 2, 1]


def test_kappa_by_hand() -> None:
    # Chance: (3*3 + 3*4 + 4*3) / 100 = 0.33; (0.6 - 0.33) / (1 - 0.33)
    assert cohen_kappa(FIRST, SECOND) == pytest.approx(0.27 / 0.67)
    # Observed distance: three by 1 and one by 2 = 5. Expected, over 10: by 1: 3*4 + 3*3 + 3*3 + 4*4 = 46;
    # by 2: (3*3 + 4*3) * 2 = 42; (46 + 42) / 10 = 8.8.
    assert cohen_kappa(FIRST, SECOND, linear=True) == pytest.approx(1 - 5 / 8.8)
    for linear in (False, True):
        assert cohen_kappa([3, 3], [3, 3], linear=linear) is None
