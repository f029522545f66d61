"""Scores have the same bytes on every processor."""

import json
import os
import platform
import runpy
import subprocess
import sys

import pytest

from tests.project import ROOT

SCRIPT = ROOT / "scripts" / "test_processors.py"
CODE = """
import hashlib, json
from pathlib import Path
import numpy as np
import pyarrow as pa
from paraforge.corpus.scoring import general
from paraforge.corpus.scoring.lexical_learning import drawn_rows, learn
from paraforge.corpus.scoring.score import build_scorers, score_table
from paraforge.base.word_vectors.vectors import WordVectors
from tests.translation.models.tiny import bitext

references = [english for _, english in bitext(600, seed=3)]
references += [" ".join(references[row : row + 5]) for row in range(600)]
translations = [text if row % 3 else text[: len(text) * row // 1200]
                for row, text in enumerate(references[7:] + references[:7])]
foreign = [" ".join(word[::-1] for word in text.split()) for text in references]
table = pa.table({"source_text": foreign, "reference": references, "translation": translations})
lexical = learn(drawn_rows([table]))
words = sorted({word for text in references for word in text.lower().split()})
vectors = np.random.default_rng(1).normal(size=(len(words), 50)).astype(np.float32)
found = {}
for name, by in {"built-in": general.DIRECTORY, "vectors": WordVectors(words, vectors)}.items():
    scores = score_table(table, build_scorers(by, lexical=lexical))
    for column in scores.column_names:
        written = repr(scores[column].to_pylist()).encode()
        found[f"{name} {column}"] = hashlib.sha256(written).hexdigest()
print(json.dumps(found))
"""


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="for x86-64 alone")
def test_scores_are_same_bytes_on_every_processor() -> None:
    def scores(settings: dict[str, str]) -> dict[str, str]:
        environment = {**os.environ, **settings, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
        done = subprocess.run(
            [sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    here = scores({})
    assert {
        "built-in paraphrase_score",
        "vectors paraphrase_score",
        "vectors overlap_3",
        "vectors source_similarity",
    } <= here.keys()
    for name, settings in runpy.run_path(str(SCRIPT))["processors"]().items():
        found = scores({**settings, "NUMBA_CPU_FEATURES": ""})
        assert found == here, f"other bytes on a processor with {name}"
