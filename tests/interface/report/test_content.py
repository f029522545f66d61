"""What the report takes from the corpus' tables."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from paraforge.corpus.publication.datasets import LEXICON, Dataset
from paraforge.interface.report.content import lexicon_entries


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
