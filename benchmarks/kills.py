"""Kills 'dvc repro' at random times and compares the bytes of all outputs with those of an undisturbed run.

All stages take part, statistics and report too, on the sample corpus and the fake engine. Each run is a fresh
project, and nothing is repaired by hand: after a kill the next command is 'dvc repro' again or, where DVC
refuses a file of its own that was cut off, any command of paraforge and then 'dvc repro'.

    python -m benchmarks.kills --runs 50
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks.results import append
from paraforge.shards.dvc_files import LOCK, RUNNING
from tests.project import digests, make_project, project_environment

PLACES = ("data", "models", "reports")


def outputs(project: Path) -> dict[str, str]:
    """SHA-256 of every file of every output."""
    return {
        f"{place}/{name}": digest for place in PLACES for name, digest in digests(project / place).items()
    }


def repro(project: Path, patience: float | None, log: Path) -> int | None:
    """Exit code of 'dvc repro', or None where it was killed with all its children."""
    with log.open("wb") as said:
        process = subprocess.Popen(
            ["dvc", "repro"],
            cwd=project,
            env=project_environment(project),
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            return process.wait(patience)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return None


def killed_run(project: Path, dice: random.Random, longest: float, log: Path) -> tuple[int, int]:
    """Run to the end in spite of kills; gives kills, and how often a file of DVC had been cut off.

    Raises:
        RuntimeError: a run failed.
    """
    kills = cut = 0
    while True:
        # Four kills, then it may end.
        code = repro(project, dice.uniform(0.3, longest) if kills < 4 else None, log)
        if code is None:
            kills += 1
        elif code == 0:
            return kills, cut
        else:
            words = log.read_text(encoding="utf-8")
            if LOCK.name not in words and str(RUNNING) not in words:
                raise RuntimeError(words[-3000:])
            cut += 1
            command = ["paraforge", "work", "list"]
            subprocess.run(
                command, cwd=project, env=project_environment(project), capture_output=True, check=False
            )


def main() -> None:
    """Say of every run whether its bytes are those of the first."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--pairs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    dice = random.Random(chosen.seed)
    changes = ["embeddings.models.word.encoder.dimension=16", "lexicon.minimum_pairs=1"]
    done = total = total_cut = different = 0
    with tempfile.TemporaryDirectory(prefix="paraforge-kills-") as place:
        undisturbed = make_project(Path(place) / "undisturbed", *changes, pairs=chosen.pairs)
        started = time.monotonic()
        log = Path(place) / "log"
        if repro(undisturbed, None, log) != 0:
            raise SystemExit(log.read_text(encoding="utf-8")[-3000:])
        seconds = time.monotonic() - started
        wanted = outputs(undisturbed)
        print(f"undisturbed: {seconds:.0f} s, {len(wanted)} files", flush=True)
        try:
            for run in range(1, chosen.runs + 1):
                project = make_project(Path(place) / f"run{run}", *changes, pairs=chosen.pairs)
                kills, cut = killed_run(project, dice, seconds / 2, log)
                found = outputs(project)
                wrong = sorted(name for name in wanted | found if wanted.get(name) != found.get(name))
                done, total, total_cut = done + 1, total + kills, total_cut + cut
                different += bool(wrong)
                print(f"run {run}: {kills} kills, {wrong or 'identical'}", flush=True)
                shutil.rmtree(project)
        finally:  # also of what was done when it is stopped
            if done:
                figures = {
                    "runs": done,
                    "kills": total,
                    "cut_files": total_cut,
                    "runs_that_differ": different,
                }
                append("kills", "all stages", figures, seeds=[chosen.seed], pairs=chosen.pairs)
    raise SystemExit(1 if different else 0)


if __name__ == "__main__":
    main()
