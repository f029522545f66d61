"""Another score is one file, with its column, and need not be in the package."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.plugin import install, run

SCORER = '''
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.corpus.scorer import Column, Scale, Scorer


class Shouting(Scorer):
    """Whether and how much the translation shouts."""

    columns = (
        Column("shouting", pa.bool_(), "the translation ends in an exclamation mark", label="loud"),
        Column("loudness", pa.float32(), "exclamation marks", label="marks a pair", scale=Scale(0, 4, 4)),
    )

    def __call__(self, pairs):
        marks = pc.count_substring(pairs.translation, "!").cast(pa.float32())
        return {"shouting": pc.ends_with(pairs.translation, "!"), "loudness": marks}
'''
RUN = """
import json
from pathlib import Path

import pyarrow as pa

from paraforge.corpus.columns import COLUMNS, LABELS
from paraforge.corpus.scoring.score import build_scorers, score_table
from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.corpus.statistics.parameters import StatisticsParameters
from paraforge.corpus.statistics.statistics import describe_corpus
from paraforge.corpus.statistics.tables import write_tables
from paraforge.interface.browse.browser import open_browser
from paraforge.interface.report.html import write_report
from paraforge.interface.report.parameters import ReportParameters
from tests.corpus.selection.corpora import random_pairs, resources
from tests.corpus.selection.published import publish_pairs

texts = {"reference": ["Go", "Stay", "No"], "translation": ["Go!", "Stay.", "No!"]}
table = score_table(pa.table({**texts, "rejected": [None, None, "blank_source"]}), build_scorers(None))
print(json.dumps([table.column_names[-2], table["shouting"].to_pylist(), LABELS["shouting"]]))
SelectParameters.model_validate({"filters": [{"kind": "flag", "column": "shouting"}]})
pairs = random_pairs(300, seed=5)
marks = pa.array([number % 4 for number in range(300)], pa.float32())
root = Path("published")
publish_pairs(root, table=pairs.append_column(COLUMNS["loudness"], marks))
scored = [root / "translated", root / "scored"]
described = describe_corpus(scored, root / "selected", StatisticsParameters(), resources(root))
write_tables(described, root / "tables", root / "plots")
write_report(root / "corpus", root / "report.html", ReportParameters())
with open_browser(root / "corpus") as opened:
    assert "loudness" in opened.scales
"""


@pytest.mark.full
def test_a_scorer_from_outside_scores_and_is_on_every_page(tmp_path: Path) -> None:
    install(tmp_path, "scorers", "shouting", SCORER)
    ran = run(tmp_path, RUN)
    assert json.loads(ran.stdout.splitlines()[0]) == ["shouting", [True, False, None], "loud"]
    root = tmp_path / "published"
    assert "| marks a pair " in (root / "corpus" / "_README.md").read_text(encoding="utf-8")
    report = (root / "report.html").read_text(encoding="utf-8")
    assert report.count("marks a pair") >= 2  # a histogram and a mean
    histograms = pq.read_table(root / "tables" / "histograms.parquet").to_pylist()
    loud = [row for row in histograms if row["column"] == "loudness"]
    assert {row["low"] for row in loud} == {0, 1, 2, 3}
    assert sum(row["pairs"] for row in loud) == sum(
        row["pairs"] for row in histograms if row["column"] == "reference_tokens"
    )
    assert "loudness_sd" in pq.read_schema(root / "tables" / "deciles.parquet").names


def test_the_schema_does_not_import_what_takes_long() -> None:
    code = (
        "import sys, paraforge.corpus.columns; print(sorted({'numba', 'scipy', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
