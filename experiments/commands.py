"""Runs the commands of a cell, and reads the figures that they write."""

import json
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.hardware import data_directory
from benchmarks.results import sts_figures
from experiments.pairs import sts_files
from experiments.tables import Cell, fill
from paraforge.base.errors import Interrupted, ParaforgeError
from paraforge.interface.cli import app
from paraforge.papers.transfer.evaluate import FIXED


def run(
    cell: Cell, directory: Path, needed: dict[str, Path], corpora: list[Path], threads: int
) -> dict[str, dict[str, Any]]:
    """Run the row's commands in order. Returns the figures of each score.

    Raises:
        ParaforgeError: a command failed.
    """
    values: dict[str, Any] = {"data": data_directory(), "out": directory}
    values |= {"seed": cell.seed, "threads": threads}
    values |= {f"row:{name}": place for name, place in needed.items()}
    for command in cell.row.commands:
        arguments: list[str] = []
        for argument in command:
            if argument == "{sts}":
                arguments += [part for path in sts_files() for part in ("--sts", str(path))]
            elif argument == "{corpus}":
                arguments += [part for path in corpora for part in ("--corpus", str(path))]
            else:
                arguments.append(str(fill(argument, values)))
        _run(arguments)
    return {
        label: _figures(json.loads(Path(fill(path, values)).read_text(encoding="utf-8")))
        for label, path in cell.row.scores.items()
    }


def _run(arguments: list[str]) -> None:
    """Run a command of the product in this process, which saves its imports, or a module in its own
    process."""
    if arguments[0] == "paraforge":
        code = app(arguments[1:], standalone_mode=False)
    else:
        code = subprocess.run([sys.executable, *arguments[1:]], check=False).returncode
    if code in (Interrupted.exit_code, -signal.SIGINT, -signal.SIGTERM):
        raise Interrupted()
    if code:
        raise ParaforgeError(f"{shlex.join(arguments)} ended with {code}")


def _figures(content: dict[str, Any]) -> dict[str, Any]:
    """Of what `paraforge evaluate -o` wrote: on STS Pearson of years and sets (`2012_msrpar`) and years'
    Spearman (`sts2012_spearman`), Spearman on words, transfer tasks (`sick_r`, and of an encoder trained for
    the task how it was, such as `sick_r_fine_tuned`); or the mean absolute difference in Pearson of a row
    that compares two models."""
    if "figures" in content:
        return dict(content["figures"])
    if compared := list(content.get("differences", {}).values()):
        return {"difference": compared[0]["mean_absolute_pearson"]}
    years = content.get("years", [])
    figures: dict[str, Any] = sts_figures({item["name"]: item["pearson"] for item in years})
    ranks = sts_figures({item["name"]: item["spearman"] for item in years})
    figures |= {f"{name}_spearman": value for name, value in ranks.items()}
    sets = {re.sub(r"\W+", "_", item["name"]): item["pearson"] for item in content.get("sets", [])}
    figures |= {name: value for name, value in sts_figures(sets).items() if name not in figures}
    for name, words in content.get("words", {}).items():
        figures[name.lower().replace("-", "_")] = words["spearman"]
    for task in content.get("transfer", {}).get("tasks", []):
        training = "" if task["training"] == FIXED else f" {task['training']}"
        name = re.sub(r"\W+", "_", f"{task['name']}{training}".lower()).strip("_")
        figures[name] = task["accuracy"] if task["accuracy"] is not None else task["pearson"]
        if task["f1"] is not None:
            figures[f"{name}_f1"] = task["f1"]
    return figures
