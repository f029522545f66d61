"""A search of settings: its trials are cells, and the best is recorded."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from benchmarks.results import read
from experiments import __main__ as program
from experiments import training
from experiments.tables import Cell, read_table
from tests.experiments.small_table import SMALL, run


def test_a_search_is_replayed_and_records_the_best_row_alone(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("optuna", reason="the extra 'experiments' is not installed")
    space = {
        "training.learning_rate": {"low": 0.001, "high": 0.1, "log": True},
        "training.batch_size": [10, 20],
        "encoder.dimension": {"low": 2, "high": 9, "whole": True},
    }
    row = {**SMALL["rows"][1], "name": "word, searched", "search": {"trials": 5, "space": space}}
    row.pop("start")
    (data / "tables" / "small.yaml").write_text(yaml.safe_dump({**SMALL, "rows": [row]}))
    asked: list[tuple[int, dict[str, Any]]] = []

    def train(cell: Cell, directory: Path, *others: object) -> dict[str, Any]:
        """Best at a rate of 0.01 and many dimensions; a set that may not choose has it the other way."""
        assert cell.row.encoder is not None and cell.row.search is None
        if len(asked) == 3 and not (data / "killed").exists():
            (data / "killed").touch()
            raise KeyboardInterrupt
        setting = {**cell.row.training, **cell.row.encoder}
        asked.append((cell.seed, setting))
        score = round(setting["dimension"] - abs(float(np.log(setting["learning_rate"] / 0.01))), 2)
        return {"stsb_dev": score, "sts2012": -score}

    monkeypatch.setattr(training, "train", train)
    done = CliRunner().invoke(program.app, ["run", "small", "--work", str(data / "work")])
    assert done.exit_code and not (data / "results").exists() and len(asked) == 3
    run(data / "work")
    trials = [setting for seed, setting in asked if seed == 1]
    assert len(trials) == 5 and len({str(setting) for setting in trials}) == 5
    assert all(2 <= one["dimension"] <= 9 and one["batch_size"] in (10, 20) for one in trials)
    (line,) = read(data / "results" / "small.jsonl")
    assert line.configuration["name"] == "word, searched" and line.seeds == [1, 2]
    scores = [one["dimension"] - abs(np.log(one["learning_rate"] / 0.01)) for one in trials]
    assert line.figures["stsb_dev"] == pytest.approx(max(scores), abs=0.006)
    best = trials[int(np.argmax(scores))]
    assert line.note is not None and f"learning_rate {best['learning_rate']}" in line.note
    assert [setting for seed, setting in asked if seed == 2] == [best]
    run(data / "work")
    assert len(asked) == 6 and len(read(data / "results" / "small.jsonl")) == 1


@pytest.mark.parametrize("space", [{}, {"pairs.limit": [1]}, {"training.margin": {"low": 1}}])
def test_a_search_of_nothing_or_of_pairs_is_refused(data: Path, space: dict[str, Any]) -> None:
    row = {**SMALL["rows"][0], "search": {"trials": 2, "space": space}}
    (data / "tables" / "small.yaml").write_text(yaml.safe_dump({**SMALL, "rows": [row]}))
    with pytest.raises(SystemExit, match="space"):
        read_table("small")
