"""The report begins with the verdict, draws wrong pairs over the others, and has the lexicon's entries."""

import re
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from paraforge.corpus.publication.datasets import LEXICON, Dataset
from paraforge.interface.report.content import gather, lexicon_entries
from paraforge.interface.report.html import render
from paraforge.interface.report.parameters import ReportParameters
from paraforge.interface.report.svg import Bar, histogram
from tests.corpus.publication.test_verdict_words import NUMBER, drawn, published


def page(root: Path) -> str:
    return render(gather(root / "corpus", ReportParameters()))


def test_the_verdict_comes_first(tmp_path: Path) -> None:
    published(tmp_path, drawn(500, {"news": 0.0, "tatoeba": 0.6}), NUMBER)
    text = page(tmp_path)
    verdict = text.index("The paraphrase score separates true from wrong pairs with")
    warning = text.index("The paraphrase score hardly tells right from wrong in news")
    assert text.index("</h1>") < verdict < warning < text.index("Where the rows went</h2>")
    table = text[text.index("What the scores are worth: ") :]
    cell = r"</td><td [^>]*>"
    row = rf"<bdi>tatoeba</bdi>{cell}500{cell}(0\.99|1\.00)"
    assert re.search(row, table)


def test_wrong_pairs_are_counted_as_they_weigh(tmp_path: Path) -> None:
    wrong = drawn(500, {"news": 0.6, "elsewhere": 0.6})
    published(tmp_path, wrong, NUMBER)
    scores = dict(gather(tmp_path / "corpus", ReportParameters()).scores)
    assert sum(bar.wrong for bar in scores["all sources"]) == pytest.approx(1_000)
    assert sum(bar.wrong for bar in scores["news"]) == pytest.approx(500)
    assert sum(bar.wrong for bar in scores["tatoeba"]) == 0
    values = wrong["paraphrase_score"].to_numpy()
    for bar in scores["all sources"]:
        inside = (values >= np.float32(bar.low)) & (values < np.float32(bar.high))
        assert bar.wrong == pytest.approx(inside.sum(), abs=2)


def test_a_corpus_without_wrong_pairs_has_no_third_colour(tmp_path: Path) -> None:
    published(tmp_path, None, NUMBER)
    text = page(tmp_path)
    assert 'class="wrong"' not in text and "What the scores are worth" not in text


def test_the_line_of_wrong_pairs_fits_the_picture() -> None:
    bars = [Bar(0.0, 0.1, 1, 0, 40.0), Bar(0.1, 0.2, 10, 5, 0.0)]
    drawing = str(histogram(bars, "x", "score"))
    points = re.search(r'd="M([^"]+)" class="wrong"', drawing)
    assert points is not None
    heights = [float(number) for number in points[1].split()[1::2]]
    assert min(heights) == 8 and max(heights) <= 160
    assert "most wrong pairs from 0 to 0.1" in drawing


@pytest.mark.parametrize(("pairs", "shown"), [(2, ["big / large"]), (3, ["ask / sondwom", "big / large"])])
def test_entries_of_one_or_two_pairs_are_not_the_best(pairs: int, shown: list[str]) -> None:
    rows = {
        "word": ["ask", "big", "large"],
        "paraphrase": ["sondwom", "large", "big"],
        "pairs": [pairs, 40, 40],
        "cross_pmi": [9.0, 5.0, 5.0],
        "ordinary_pmi": [0.0, 1.0, 1.0],
        "adjusted_pmi": [9.0, 4.0, 4.0],
    }
    table = pa.table(rows)
    with duckdb.connect() as connection:
        connection.register("lexicon", table)
        views = {"lexicon": Dataset(LEXICON, Path("lexicon"), [], table.num_rows, table.schema)}
        found = lexicon_entries(connection, views, 5)
    assert found is not None and found.entries == 3
    assert [f"{row['word']} / {row['paraphrase']}" for row in found.best] == shown
    assert [f"{row['word']} / {row['paraphrase']}" for row in found.worst] == shown[::-1]
