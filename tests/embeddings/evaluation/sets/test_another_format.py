"""A format of sets is added by adding one file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from paraforge.base.errors import InputError
from paraforge.embeddings.evaluation.sets import formats
from paraforge.embeddings.evaluation.sets.finding import read_sets

MODULE = '''
import json

import numpy as np

from paraforge.embeddings.evaluation.sets.formats import SetFormat
from paraforge.embeddings.evaluation.sets.sentence_pairs import SentencePairs


class JsonLines(SetFormat):
    """{"a": ..., "b": ..., "score": ...} a line."""

    endings = (".jsonl",)

    @staticmethod
    def recognises(path, first_line):
        return first_line.startswith("{")

    @staticmethod
    def read(path, name, group):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        gold = np.array([row["score"] for row in rows], np.float64)
        return [SentencePairs(name, group, [row["a"] for row in rows], [row["b"] for row in rows], gold)]
'''
SET = '{"a": "A dog", "b": "A cat, here", "score": 2.5}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A directory; its folder ``modules`` is beside the package, and its modules are found as its own."""
    yield tmp_path
    formats.set_formats.cache_clear()
    sys.modules.pop(f"{formats.__name__}.json_lines", None)


def test_a_file_is_all_that_a_format_needs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sets = folder / "sets"
    sets.mkdir()
    (sets / "2012.own.jsonl").write_text(SET)
    (sets / "2012.other.tsv").write_text("1\ta\tb\n")
    with pytest.raises(InputError, match="not a format of scored sentence pairs"):
        read_sets([sets / "2012.own.jsonl"])
    (folder / "modules").mkdir()
    (folder / "modules" / "json_lines.py").write_text(MODULE)
    monkeypatch.setattr(formats, "__path__", [*formats.__path__, str(folder / "modules")])
    formats.set_formats.cache_clear()
    other, own = read_sets([sets])
    assert (own.name, own.group, own.first, own.second) == ("2012.own", "2012", ["A dog"], ["A cat, here"])
    assert (other.name, own.gold.tolist()) == ("2012.other", [2.5])
