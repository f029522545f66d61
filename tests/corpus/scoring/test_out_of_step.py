"""Lines that are out of step are named, and aligned ones are not; a text that is shifted in its middle."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from paraforge.base.text.tokens import tokenize_column
from paraforge.corpus.scoring.lexical_learning import drawn_rows, learn
from paraforge.corpus.scoring.lexical_table import foreign_units, units_of
from paraforge.corpus.scoring.out_of_step import Blocks, Stretch, warn_of
from tests.corpus.scoring.test_lexical import bitext


def rows(source: str, similarity: Any, first: int = 1) -> pa.Table:
    count = len(similarity)
    return pa.table(
        {
            "source": pa.array([source] * count, pa.string()),
            "line": np.arange(first, first + count),
            "source_similarity": pa.array(similarity, pa.float32(), from_pandas=True),
        }
    )


def test_a_text_with_a_missing_line_in_its_middle() -> None:
    pairs = bitext(6_000)
    foreign, reference = map(list, zip(*pairs, strict=True))
    foreign[2_000:4_000] = [*foreign[2_001:4_000], foreign[2_000]]
    text = pa.table({"source_text": foreign, "reference": reference})
    lexical = learn(drawn_rows([text]))
    units = foreign_units(text["source_text"]), units_of(tokenize_column(text["reference"]))
    blocks = Blocks()
    blocks.add(rows("news", lexical.similarities(*units)))
    (found,) = blocks.out_of_step()["news"]
    assert (found.first, found.last) == (2_001, 4_000)
    assert found.similarity < 0 < 0.1 < found.usual


def test_stretches_are_whole_blocks_and_their_means() -> None:
    similarity = np.full(4_000, 0.4)
    similarity[1_000:2_000], similarity[3_500:] = -0.1, -0.2
    similarity[::7] = np.nan
    blocks = Blocks()
    for first in range(0, 4_000, 130):  # however it is cut
        blocks.add(rows("a", similarity[first : first + 130], first + 1))
    blocks.add(rows("b", np.full(2_000, 0.3)))
    blocks.add(rows("c", np.concatenate([np.full(2_500, 0.4), np.full(100, -0.5)])))  # just enough
    assert blocks.out_of_step() == {
        "a": [Stretch(1_001, 2_000, -0.1, 0.4), Stretch(3_501, 4_000, -0.2, 0.4)],
        "c": [Stretch(2_501, 3_000, -0.5, 0.4)],
    }


@pytest.mark.parametrize(
    ("similarity", "why"),
    [
        (np.full(3_000, -0.1), "all is shifted, or no word is known: another check finds that"),
        (np.concatenate([np.full(2_500, 0.4), np.full(99, -0.5)]), "99 lines are too few"),
        (np.concatenate([np.full(2_500, 0.4), np.full(500, 0.0)]), "zero is not below zero"),
        (np.full(3_000, np.nan), "no foreign side"),
        (np.zeros(0), "nothing"),
    ],
)
def test_nothing_is_named(similarity: Any, why: str) -> None:
    blocks = Blocks()
    blocks.add(rows("a", similarity))
    assert blocks.out_of_step() == {}, why


def test_the_warning_names_source_and_lines(caplog: pytest.LogCaptureFixture) -> None:
    warn_of({"news": [Stretch(1_001, 2_000, -0.1, 0.4)] * 6, "": [Stretch(501, 1_000, -0.2, 0.3)]})
    assert "source news is out of step in lines 1,001 to 2,000" in caplog.text
    assert "and 1 more:" in caplog.text
    assert "from line 501 on" in caplog.text and "the file is out of step" in caplog.text
