"""Another score is one file, with its column, and need not be in the package."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.plugin import install, run

SCORER = '''
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.corpus.scorer import Scorer
from paraforge.base.shards.column import column


class Shouting(Scorer):
    """Whether the translation shouts."""

    fields = (column("shouting", pa.bool_(), "the translation ends in an exclamation mark"),)
    labels = {"shouting": "loud"}

    def __call__(self, pairs):
        return {"shouting": pc.ends_with(pairs.translation, "!")}
'''
RUN = """
import json
from pathlib import Path

import numpy as np
import pyarrow as pa

from paraforge.interface.configuration.reference import columns_markdown
from paraforge.corpus.scoring.parameters import ScoreParameters
from paraforge.corpus.scoring.score import score
from paraforge.base.word_vectors.vectors import WordVectors
from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.base.shards.resources import Resources
from paraforge.corpus.columns import LABELS, schema_of
from paraforge.base.shards.store import ShardDirectory, ShardWriter

schema = schema_of(["reference", "translation", "rejected", "failed"])
writer = ShardWriter(Path("translated"), schema)
rows = [("Go", "Go!", None, None), ("Stay", "Stay.", None, None), ("No", "No!", "blank_source", None)]
writer.write(pa.Table.from_pylist([dict(zip(schema.names, row)) for row in rows], schema))
writer.close({"step": "translate"})
WordVectors(["go", "stay"], np.eye(2, dtype=np.float32)).save(Path("vectors"))
resources = Resources(work=Path("work"), workers=1)
score(ScoreParameters(identify_language=False), Path("translated"), Path("vectors"), Path("out"), resources)
table = ShardDirectory("out").read(0)
print(json.dumps([table.column_names[-1], table["shouting"].to_pylist(), LABELS["shouting"]]))
print("`shouting`" in columns_markdown())
SelectParameters.model_validate({"filters": [{"kind": "flag", "column": "shouting"}]})
"""


def test_a_scorer_from_outside_the_package(tmp_path: Path) -> None:
    install(tmp_path, "scorers", "shouting", SCORER)
    scored, documented = run(tmp_path, RUN).stdout.splitlines()
    assert json.loads(scored) == ["shouting", [True, False, None], "loud"]
    assert documented == "True"


def test_the_schema_does_not_import_what_takes_long() -> None:
    code = (
        "import sys, paraforge.corpus.columns; print(sorted({'numba', 'scipy', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
