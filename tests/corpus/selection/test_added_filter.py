"""A filter is one file: here one of another package, which nothing here knows."""

import json
from pathlib import Path

import pytest

from tests.corpus.selection.corpora import cut, random_pairs, with_columns, write_corpus
from tests.corpus.selection.published import publish_pairs
from tests.plugin import COMMAND, install, run

MODULE = '''
from typing import Literal

import pyarrow.compute as pc

from paraforge.corpus.selection.filters import Filter, FilterParameters


def judge(rows, shard):
    return pc.ends_with(rows["reference"], "?").to_numpy()


class QuestionParameters(FilterParameters):
    """No questions."""

    kind: Literal["question"]

    def columns(self):
        return ("reference",)

    def refusal(self):
        return "a question"

    def signature(self, fingerprint=None):
        return "no", "questions"

    def prepare(self, pairs):
        return Filter(self.reason, ("reference",), judge)

'''
PROGRAM = """
import json
from pathlib import Path
from paraforge.corpus.publication.parameters import PublishParameters
from paraforge.corpus.publication.publication import publish
from paraforge.corpus.selection.parameters import SelectParameters, explain_filters
from paraforge.corpus.selection.select import select
from paraforge.base.shards.resources import Resources

root = Path()
inputs = [root / "translated", root / "scored"]
parameters = SelectParameters.model_validate({"filters": [{"kind": "question"}]})
resources = Resources(workers=1, work=root / "work")
report = select(parameters, inputs, root / "selected", resources)
outputs = root / "corpus", root / "rejected"
published = publish(PublishParameters(), inputs, root / "selected", *outputs, resources)
print(json.dumps({
    "rejected": report.counts.rejected["question"],
    "result": report.result(),
    "words": explain_filters(parameters)["question"],
    "signature": published.corpus.signature,
}))
"""


@pytest.mark.full
def test_a_filter_of_another_package(tmp_path: Path) -> None:
    install(tmp_path, "filters", "questions", MODULE)
    pairs = random_pairs(200, seed=2)
    texts = [f"{text}?" if place % 3 else text for place, text in enumerate(pairs["reference"].to_pylist())]
    pairs = with_columns(pairs, reference=texts)
    write_corpus(pairs, tmp_path, cut(200, 60))
    rows = pairs.to_pylist()
    asked = sum(
        row["reference"].endswith("?")
        for row in rows
        if not row["rejected"] and not row["failed"] and row["paraphrase_score"] is not None
    )
    seen = json.loads(run(tmp_path, PROGRAM).stdout)
    assert seen["rejected"] == asked > 0
    assert seen["result"].endswith(" s") and f"{100 * asked / 200:.1f}% a question" in seen["result"]
    assert seen["words"] == "a question"
    assert "|no:questions|" in seen["signature"]


def test_a_package_that_is_broken(tmp_path: Path) -> None:
    publish_pairs(tmp_path / "data", rows=50)
    install(tmp_path, "filters", "questions", "import no_such_module")
    ran = run(tmp_path, COMMAND, "summary", str(tmp_path), expect=2)
    assert "'questions'" in ran.stderr and "Repair that package" in ran.stderr
    assert "Traceback" not in ran.stderr
