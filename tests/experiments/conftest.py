"""Data, tables and results for tests of experiments."""

import gzip
import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from experiments import __main__ as program
from experiments import pairs, tables
from experiments.pairs import FILES
from tests.here import run_command

SMALL: dict[str, Any] = {
    "title": "Small",
    "paper": "A paper, Table 1",
    "about": "Two passes.",
    "seeds": [1, 2],
    "pairs": {"sources": ["ppdb"], "limit": 60},
    "training": {"mega_batch": 1, "anneal": 0, "batch_size": 20},
    "rows": [
        {
            "name": "word, {epochs}",
            "each": {"epochs": [1, 2]},
            "encoder": {"kind": "average", "unit": "word", "dimension": 8},
            "training": {"epochs": "{epochs}"},
            "paper": {"stsb_dev": 70.0},
        },
        {
            "name": "word, continued",
            "encoder": {"kind": "average", "unit": "word", "dimension": 8},
            "training": {"epochs": 1},
            "start": "word, 1",
        },
        {
            "name": "overlap",
            "commands": [["paraforge", "evaluate", "general", "{sts}", "-o", "{out}/scores.json", "--force"]],
            "scores": {"": "{out}/scores.json"},
        },
    ],
}


def run(work: Path, *arguments: str) -> str:
    arguments = ("run", "small", "--work", str(work), "--threads", "1", *arguments)
    return str(run_command(*arguments, app=program.app).output)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data directory with one source of pairs and one STS set, tables and results of its own."""
    dice = random.Random(1)
    words = [f"w{number}" for number in range(30)]

    def sentence() -> str:
        return " ".join(dice.choices(words, k=5))

    place = tmp_path / "data"
    for name in ("ppdb", "sts"):
        (place / name).mkdir(parents=True)
    text = "".join(f"{sentence()}\t{sentence()}\n" for _ in range(100))
    (place / FILES["ppdb"]).write_bytes(gzip.compress(text.encode(), mtime=0))
    judged = "".join(f"{dice.uniform(0, 5):.1f}\t{sentence()}\t{sentence()}\n" for _ in range(40))
    (place / "sts" / "stsb-dev.tsv").write_text(judged)
    monkeypatch.setenv("PARAFORGE_DATA", str(place))
    monkeypatch.setenv("PARAFORGE_RESULTS", str(tmp_path / "results"))
    monkeypatch.setattr(pairs, "STS_GROUPS", ("stsb-dev",))
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "small.yaml").write_text(yaml.safe_dump(SMALL))
    monkeypatch.setattr(tables, "TABLES", tmp_path / "tables")
    return tmp_path
