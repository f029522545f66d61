"""Records and reads measurements, which benchmarks and experiments append to ``results/``."""

import datetime
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

ROOT = Path(__file__).resolve().parent.parent
Value = str | int | float | bool | None


class Paper(BaseModel):
    """The figures of a paper for the same thing, under our names, and where they are from."""

    model_config = ConfigDict(extra="forbid", strict=True)
    source: str
    figures: dict[str, int | float]


class Measurement(BaseModel):
    """One line of ``results/*.jsonl``; unknown values are null.

    Attributes:
        task: name of the file without ``.jsonl``.
        configuration: what was measured; ``name`` labels it for people. A later line with the same
            configuration takes the place of an earlier one on the page.
        figures: numbers by name; the name ends with the unit where there is one (``seconds``, ``peak_mib``).
        deviations: standard deviations over the seeds, for some of the figures.
        seeds: random seeds of the runs that the figures are of, or are the mean of.
    """

    model_config = ConfigDict(extra="forbid", strict=True)
    task: str = Field(pattern=r"^[a-z0-9_]+$")
    configuration: dict[str, Value]
    figures: dict[str, int | float] = Field(min_length=1)
    deviations: dict[str, int | float] | None = None
    seeds: list[int] | None = None
    command: str | None = None
    commit: str | None = None
    hardware: str | None = None
    date: str | None = None
    note: str | None = None
    paper: Paper | None = None


def directory() -> Path:
    """Return the directory of measurements: ``results/`` of the checkout, or ``PARAFORGE_RESULTS``."""
    return Path(os.environ.get("PARAFORGE_RESULTS") or ROOT / "results")


def _commit() -> str | None:
    """Return the current commit, with ``+`` if tracked files differ from it; None outside a checkout."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!results", ":!docs")
        return git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def _command() -> str:
    """Return the command line of this process in a form that can be typed."""
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    start = f"python -m {main.name}" if main and main.name else shlex.quote(sys.argv[0])
    return " ".join([start, *map(shlex.quote, sys.argv[1:])])


def sts_figures(scores: Mapping[str, float | None]) -> dict[str, float]:
    """Return Pearson x 100 by group of STS sets: ``sts2012``, ``stsb_dev``."""
    named = {group.lower().replace("-", "_"): score for group, score in scores.items()}
    return {
        f"sts{name}" if name.isdigit() else name: round(score, 1)
        for name, score in named.items()
        if score is not None
    }


def rounded(value: float) -> int | float:
    """Return a figure as it is recorded, with six digits."""
    return value if isinstance(value, int) else float(f"{value:.6g}")


def append(
    task: str,
    name: str,
    figures: Mapping[str, float | None],
    *,
    seeds: Sequence[int] | None = None,
    deviations: Mapping[str, float] | None = None,
    note: str | None = None,
    paper: Paper | None = None,
    command: str | None = None,
    **configuration: Value,
) -> Measurement:
    """Print and record a measurement, with command, commit, hardware and date.

    Args:
        task: file to append to, without ``.jsonl``.
        name: what was measured, in words.
        figures: numbers by name with unit; those that are None are left out.
        seeds: random seeds of the runs.
        deviations: standard deviations over the seeds.
        note: what a reader has to know to use the figures.
        paper: what a paper reports for the same.
        command: that measures it again; by default this process'.
        configuration: what else tells this measurement from others.

    Returns:
        The line that was written.
    """
    from benchmarks.hardware import hardware

    line = Measurement(
        task=task,
        configuration={"name": name, **configuration},
        figures={key: rounded(value) for key, value in figures.items() if value is not None},
        deviations=dict(deviations) if deviations else None,
        seeds=list(seeds) if seeds else None,
        command=command or _command(),
        commit=_commit(),
        hardware=hardware(),
        date=datetime.date.today().isoformat(),
        note=note,
        paper=paper,
    )
    shown = ", ".join(f"{key} {number(value, decimals([value]))}" for key, value in line.figures.items())
    print(f"{name}: {shown}", flush=True)
    path = directory() / f"{task}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line.model_dump(), ensure_ascii=False) + "\n")
    return line


def read(path: Path) -> list[Measurement]:
    """Read the measurements in a file.

    Raises:
        ValueError: if a line is not one, naming file and line.
    """
    found = []
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            found.append(Measurement.model_validate_json(text))
            if found[-1].task != path.stem:
                raise ValueError(f"task {found[-1].task!r} belongs in {found[-1].task}.jsonl")
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}") from error
    return found


def latest(measurements: Iterable[Measurement]) -> list[Measurement]:
    """Return the last measurement of each configuration, in the order of their first ones."""
    kept: dict[str, Measurement] = {}
    for measurement in measurements:
        kept[json.dumps(measurement.configuration, sort_keys=True)] = measurement
    return list(kept.values())


def number(value: float, decimals: int) -> str:
    """Format a figure."""
    return f"{value:,.{decimals}f}" if abs(value) >= 1e-3 or value == 0 else f"{value:.1e}"


def decimals(values: Collection[float]) -> int:
    """Return the decimals for a column's values: at most three, and none if every value has three digits
    before the point."""
    fractions = [len(repr(v).partition(".")[2]) for v in values if not float(v).is_integer()]
    return min(3, max(fractions, default=0)) if any(abs(v) < 100 for v in values) else 0
