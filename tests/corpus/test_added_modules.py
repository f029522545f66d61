"""A scorer and a filter of another package."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.corpus.selection.corpora import random_pairs
from tests.corpus.selection.published import publish_pairs
from tests.plugin import COMMAND, install, run

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
FILTER = '''
from typing import Literal

import pyarrow.compute as pc

from paraforge.corpus.selection.filters import Filter, FilterParameters


def judge(rows, shard):
    return pc.ends_with(rows["reference"], "e").to_numpy()


class EndingParameters(FilterParameters):
    """No reference that ends in e."""

    kind: Literal["ending"]

    def columns(self):
        return ("reference",)

    def refusal(self):
        return "it ends in e"

    def signature(self, fingerprint=None):
        return "no", "e"

    def prepare(self, pairs):
        return Filter(self.reason, ("reference",), judge)
'''
RUN = """
import json
from pathlib import Path

import pyarrow as pa

from paraforge.corpus.columns import COLUMNS, LABELS
from paraforge.corpus.scoring.score import build_scorers, score_table
from paraforge.corpus.selection.parameters import SelectParameters, explain_filters
from paraforge.corpus.statistics.parameters import StatisticsParameters
from paraforge.corpus.statistics.statistics import describe_corpus, write_tables
from paraforge.interface.browse.server import open_browser
from paraforge.interface.report.html import write_report
from tests.corpus.selection.corpora import random_pairs, resources
from tests.corpus.selection.published import publish_pairs

texts = {"reference": ["Go", "Stay", "No"], "translation": ["Go!", "Stay.", "No!"]}
table = score_table(pa.table({**texts, "rejected": [None, None, "blank_source"]}), build_scorers(None))
print(json.dumps([table.column_names[-2], table["shouting"].to_pylist(), LABELS["shouting"]]))
SelectParameters.model_validate({"filters": [{"kind": "flag", "column": "shouting"}]})
chosen = {"filters": [{"kind": "ending"}]}
pairs = random_pairs(300, seed=5)
marks = pa.array([number % 4 for number in range(300)], pa.float32())
root = Path("published")
made = publish_pairs(root, table=pairs.append_column(COLUMNS["loudness"], marks), filters=chosen).corpus
words = explain_filters(SelectParameters.model_validate(chosen))["ending"]
print(json.dumps([made.counts.rejected["ending"], words, made.signature]))
scored = [root / "translated", root / "scored"]
described = describe_corpus(scored, root / "selected", StatisticsParameters(), resources(root))
write_tables(described, root / "tables", root / "plots")
write_report(root / "corpus", root / "report.html")
with open_browser(root / "corpus") as opened:
    assert "loudness" in opened.scales
"""


@pytest.mark.full
def test_plugin_scorer_and_filter_are_used_everywhere(tmp_path: Path) -> None:
    install(tmp_path, "scorers", "shouting", SCORER)
    install(tmp_path, "filters", "endings", FILTER)
    scores, (rejected, words, signature) = map(json.loads, run(tmp_path, RUN).stdout.splitlines()[:2])
    assert scores == ["shouting", [True, False, None], "loud"]
    ending = sum(
        row["reference"].endswith("e")
        for row in random_pairs(300, seed=5).to_pylist()
        if not row["rejected"] and not row["failed"] and row["paraphrase_score"] is not None
    )
    assert rejected == ending > 0
    assert words == "it ends in e" and "|no:e|" in signature
    root = tmp_path / "published"
    assert "| marks a pair " in (root / "corpus" / "_README.md").read_text(encoding="utf-8")
    report = (root / "report.html").read_text(encoding="utf-8")
    assert report.count("marks a pair") >= 2  # a histogram and a mean
    histograms = pq.read_table(root / "tables" / "histograms.parquet").to_pylist()
    loud = [row for row in histograms if row["column"] == "loudness"]
    assert {row["low"] for row in loud} == {0, 1, 2, 3}
    lengths = [row for row in histograms if row["column"] == "reference_tokens"]
    assert sum(row["pairs"] for row in loud) == sum(row["pairs"] for row in lengths)
    assert "loudness_sd" in pq.read_schema(root / "tables" / "deciles.parquet").names


def test_broken_plugin_is_named(tmp_path: Path) -> None:
    publish_pairs(tmp_path / "data", rows=50)
    install(tmp_path, "filters", "endings", "import no_such_module")
    ran = run(tmp_path, COMMAND, "summary", str(tmp_path), expect=2)
    assert "'endings'" in ran.stderr and "Repair that package" in ran.stderr
    assert "Traceback" not in ran.stderr
