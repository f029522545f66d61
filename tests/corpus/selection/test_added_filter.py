"""A filter is one file: here one of another package, which nothing here knows."""

import json
from pathlib import Path

import pytest

from tests.corpus.selection.corpora import random_pairs
from tests.corpus.selection.published import publish_pairs
from tests.plugin import COMMAND, install, run

MODULE = '''
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
PROGRAM = """
import json
from pathlib import Path
from paraforge.corpus.selection.parameters import SelectParameters, explain_filters
from tests.corpus.selection.published import publish_pairs

chosen = {"filters": [{"kind": "ending"}]}
corpus = publish_pairs(Path(), 200, 60, filters=chosen).corpus
words = explain_filters(SelectParameters.model_validate(chosen))["ending"]
print(json.dumps([corpus.counts.rejected["ending"], words, corpus.signature]))
"""


@pytest.mark.full
def test_a_filter_of_another_package(tmp_path: Path) -> None:
    install(tmp_path, "filters", "endings", MODULE)
    ending = sum(
        row["reference"].endswith("e")
        for row in random_pairs(200, seed=7).to_pylist()
        if not row["rejected"] and not row["failed"] and row["paraphrase_score"] is not None
    )
    rejected, words, signature = json.loads(run(tmp_path, PROGRAM).stdout)
    assert rejected == ending > 0
    assert words == "it ends in e"
    assert "|no:e|" in signature


def test_a_package_that_is_broken(tmp_path: Path) -> None:
    publish_pairs(tmp_path / "data", rows=50)
    install(tmp_path, "filters", "endings", "import no_such_module")
    ran = run(tmp_path, COMMAND, "summary", str(tmp_path), expect=2)
    assert "'endings'" in ran.stderr and "Repair that package" in ran.stderr
    assert "Traceback" not in ran.stderr
