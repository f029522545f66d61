"""The benchmarks of scorers and of signs: spoilt pairs, and what separates them from right ones."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from benchmarks.results import read
from benchmarks.scorers import areas, file_pairs, main
from benchmarks.signs import fitted, foreign_words, judged_correlation, pairs, spoilt
from benchmarks.spoiling import SPOILINGS
from paraforge.corpus.scoring.verdict import area

PAIRS = [(f"w{n} " * length, f"v{n} " * length) for n, length in enumerate([1, 2, 2, 3, 5, 5])]
PAIRS = [(reference.strip(), translation.strip()) for reference, translation in PAIRS]


class Oracle:
    """Knows the right translations: 1 for them, 0 for all others; or the reverse, or nothing."""

    def __init__(self, right: float, wrong: float) -> None:
        self.right, self.wrong = right, wrong

    def similarity(self, first: Sequence[str], second: Sequence[str]) -> npt.NDArray[np.float64]:
        return np.array([self.right if p in PAIRS else self.wrong for p in zip(first, second, strict=True)])


@pytest.mark.parametrize(("right", "wrong", "area"), [(1, 0, 1), (0, 1, 0), (0.5, 0.5, 0.5)])
def test_areas_of_a_scorer_that_knows_all_or_nothing(right: float, wrong: float, area: float) -> None:
    # "v0" alone is its own half and stays out of the wrong ones.
    assert areas(Oracle(right, wrong), PAIRS) == dict.fromkeys(SPOILINGS, area)


def test_what_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARAFORGE_RESULTS", str(tmp_path))
    bitext = tmp_path / "tiny.tsv"
    rows = [
        "The dog runs in the park",
        "A man is reading an old book",
        "She sold four houses in July",
        "It rained all day",
    ]
    bitext.write_text("".join(f"{n}\t{text}\t{text}!\n" for n, text in enumerate(rows)) + "9\t \tblank\n")
    human = tmp_path / "year.cs-en.tsv"
    human.write_text("1.5\ta cat sits\ta cat sits\n0.5\ta cat sits\ta cat\n-1\ta cat sits\tno dog\n")
    assert file_pairs(bitext, 1, 2) == [(text, f"{text}!") for text in rows]
    main(["chrf", "jaccard"], bitext, 1, 2, [human], [human])
    chrf, jaccard = read(tmp_path / "scorers.jsonl")
    assert (chrf.configuration["name"], jaccard.configuration["name"]) == ("chrf", "jaccard")
    assert jaccard.figures["other_sentence"] == 1
    # Jaccard of the judged pairs is 1, 2/3 and 0; Pearson's r with 1.5, 0.5 and -1 is 0.998...
    expected = np.corrcoef([1.5, 0.5, -1], [1, 2 / 3, 0])[0, 1]
    assert jaccard.figures["adequacy_year"] == pytest.approx(expected, abs=1e-5)


def test_words_of_the_foreign_side_take_the_place_of_a_quarter() -> None:
    foreign = ["kočka seděla na rohoži a spala", "ne"]
    for source, text, right in zip(
        foreign, foreign_words(foreign, ["a b c d e f g h", "no"], 1), ["a b c d e f g h", "no"], strict=True
    ):
        changed = [new for new, old in zip(text.split(), right.split(), strict=True) if new != old]
        assert len(changed) == max(1, round(0.25 * len(right.split())))
        assert set(changed) <= set(source.split())


def test_each_kind_keeps_references_and_sources() -> None:
    right = pairs("s", [(f"reference {n}", f"the translation number {n}", f"zdroj {n}") for n in range(8)])
    for name, table in spoilt(right, 1).items():
        assert name in [*SPOILINGS, "foreign_words"]
        assert table.drop_columns("translation").equals(right.drop_columns("translation"))
        assert not table["translation"].equals(right["translation"])
    without = pairs("s", [("a b", "c d", None), ("e f", "g h", None)])
    assert list(spoilt(without, 1)) == list(SPOILINGS)


def test_the_regression_adds_what_each_column_knows() -> None:
    rng = np.random.default_rng(1)
    right, wrong = rng.normal(1, 1, size=(5000, 2)), rng.normal(size=(9000, 2))
    both = fitted(right, wrong)
    together = area(both(right), both(wrong))
    # Each column alone: the normal distribution at 1 / sqrt(2), 0.76; both: at 1, 0.84.
    assert abs(together - 0.84) < 0.02
    assert abs(area(right[:, 0], wrong[:, 0]) - 0.76) < 0.02


def test_correlation_with_judgements() -> None:
    values = np.arange(20.0)
    assert judged_correlation({"score": values}, 3 * values - 7, ["score"]) == pytest.approx(1)
    assert judged_correlation({"score": np.zeros(20)}, values, ["score"]) is None
