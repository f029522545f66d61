"""The benchmark of scorers on a tiny bitext, against figures that a reader can work out."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from benchmarks.results import read
from benchmarks.scorers import areas, file_pairs, main
from benchmarks.spoiling import SPOILINGS

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
