"""A small table for tests, and its run."""

from pathlib import Path
from typing import Any

from experiments import __main__ as program
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
