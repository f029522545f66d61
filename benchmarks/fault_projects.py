"""Makes small projects to test faults in: all stages, short trainings, and two hosts with one memory."""

import hashlib
import random
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from paraforge.intake.sample_bitext import write_sample
from tests.project import ROOT, TRAINED, make_project, read_parameters, run, stage_names, write_parameters

PAIRS = 500
MEMORY = "memory"
"""The name of the stage translate of two hosts, which add to one translation memory."""
HOSTS = ("one", "two")
_CHOICES = (
    *(TRAINED, "triplets=default", "paraphraser=small", "lexicon.minimum_pairs=1"),
    "embeddings.models.word.encoder.dimension=16",
)
_TRAINING = {
    "vocabulary": {"size": 300, "shared": True},
    "architecture": {"encoder_layers": 1, "decoder_layers": 1, "width": 16, "feed_forward": 16, "heads": 2},
    "training": {
        "batch_tokens": 512,
        "learning_rate": 0.01,
        "warmup_updates": 5,
        "maximum_updates": 12,
        "accumulate": 1,
    },
    "validation": {"held_out": 10, "every_updates": 4, "average": 2, "beam": 1, "final_beam": 1},
}


def make(directory: Path, wanted: Sequence[str]) -> None:
    """Make ``directory/one``, in which some stages have run, and ``directory/two``, which shares half of its
    corpus with the first. Neither has a work directory."""
    first_host, second_host = (directory / host for host in HOSTS)
    make_project(first_host, *_CHOICES)
    paths = write_sample(first_host, pairs=PAIRS)
    parameters = read_parameters(first_host)
    for section in ("nmt", "paraphraser"):
        parameters[section] |= {"model": "train", **_TRAINING}
    parameters["embeddings"]["models"]["word"]["training"] |= {"epochs": 2, "mega_batch": 2}
    parameters["translate"] |= {"sentences_per_task": 40}
    parameters["ingest"]["rows_per_shard"] = 100
    parameters["resources"] |= {"threads": 1, "batch_tokens": 60}
    shutil.copytree(first_host, second_host)
    for project, sources in ((first_host, paths[:2]), (second_host, paths[1:3])):
        form = {"format": "tsv", "columns": {"source_text": 0, "reference": 1}}
        parameters["ingest"]["sources"] = [{"name": p.stem, "path": p.name, **form} for p in sources]
        parameters["publish"]["licenses"] = {p.stem: "MIT" for p in sources}
        write_parameters(project, parameters)
        shutil.copy(ROOT / "benchmarks" / "faulty_process.py", project / "sitecustomize.py")
    for name in stage_names():
        if name in wanted:
            run("python", "-m", *stages()[name].command, cwd=first_host)
    run("python", "-m", *stages()["ingest"].command, cwd=second_host)
    for project in (first_host, second_host):
        shutil.rmtree(project / "work")


@dataclass(frozen=True)
class Stage:
    """A stage, or MEMORY.

    Attributes:
        command: what ``python -m`` is given.
        outputs: what DVC keeps of it, without metrics and plots, which have times.
        inputs: what other stages made that it reads, without metrics and plots.
        hosts: the projects that run it.
    """

    command: list[str]
    outputs: list[str]
    inputs: list[str]
    hosts: Sequence[str]


@cache
def stages() -> dict[str, Stage]:
    """Return every stage of dvc.yaml, and MEMORY."""
    found = {}
    declared = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
    for name, arguments in stage_names().items():
        outputs, inputs = (
            [place.replace("${item.name}", "word") for place in declared[name][key] if isinstance(place, str)]
            for key in ("outs", "deps")
        )
        inputs = [place for place in inputs if place.startswith(("data/", "models/"))]
        found[name] = Stage([f"paraforge.stages.{name}", *arguments], outputs, inputs, HOSTS[:1])
    found[MEMORY] = Stage(
        found["translate"].command, found["translate"].outputs, found["translate"].inputs, HOSTS
    )
    return found


def copied(snapshot: Path, place: Path, stage: str, workers: int, without_outputs: bool) -> None:
    """Copy the projects that a stage needs, without sharing files with the snapshot.

    Args:
        snapshot: what :func:`make` made.
        place: a directory that does not exist.
        stage: see :func:`stages`.
        workers: above 1: processes of a local cluster, however few rows there are.
        without_outputs: remove what the stage wrote before, as DVC does.
    """
    kind = stages()[stage]
    for host in kind.hosts:
        project = place / host
        shutil.copytree(snapshot / host, project, symlinks=True)
        parameters = read_parameters(project)
        if workers > 1:
            parameters["resources"] |= {"workers": workers, "in_process_rows": 0}
        if stage == MEMORY:
            parameters["resources"]["translation_memory"] = str(place / MEMORY)
        write_parameters(project, parameters)
        for output in kind.outputs if without_outputs else ():
            path = project / output
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def digests(place: Path, stage: str) -> dict[str, str]:
    """Return the SHA-256 of every file that a stage has written, by path; a missing output has none."""
    kind = stages()[stage]
    found = {}
    for host in kind.hosts:
        for output in kind.outputs:
            for path in files(place / host / output):
                if stage == MEMORY and path.suffix != ".parquet":
                    continue  # it counts what the memory knew, which depends on who was first
                found[path.relative_to(place).as_posix()] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def files(path: Path) -> list[Path]:
    """Return a file, or all files in a directory, in order."""
    if path.is_file():
        return [path]
    return sorted(file for file in path.rglob("*") if file.is_file() and not file.is_symlink())


def candidates(place: Path, stage: str, where: str) -> list[Path]:
    """Return the files of the stage's ``work``, ``outputs`` or ``inputs`` that can be damaged: no locks and
    no empty files."""
    kind = stages()[stage]
    names = {"work": ["work"], "outputs": kind.outputs, "inputs": kind.inputs}[where]
    roots = [place / host / name for host in kind.hosts for name in names]
    if where == "work" and stage == MEMORY:
        roots.append(place / MEMORY)
    found = [path for root in roots for path in files(root)]
    return [path for path in found if path.stat().st_size and path.suffix != ".lock" and path.name != "lock"]


def damage(path: Path, how: str, dice: random.Random) -> str:
    """Damage a file that shares its bytes with no other. Returns what was done.

    Args:
        path: the file.
        how: flip (one byte), truncate, empty or remove.
        dice: where.
    """
    content = path.read_bytes()
    path.unlink()
    if how == "remove":
        return "removed"
    if how == "flip":
        at = dice.randrange(len(content))
        changed = bytes([content[at] ^ (1 << dice.randrange(8))])
        path.write_bytes(content[:at] + changed + content[at + 1 :])
        return f"byte {at} of {len(content)} flipped"
    left = 0 if how == "empty" else dice.randrange(len(content))
    path.write_bytes(content[:left])
    return f"cut to {left} of {len(content)} bytes"


def sources(snapshot: Path) -> dict[str, str]:
    """Return possible new contents of the first project's second source, by description."""
    lines = (snapshot / HOSTS[0] / source_name(snapshot)).read_text(encoding="utf-8").splitlines(True)
    other = lines[len(lines) // 2].replace(".", "!")
    return {
        "a line more": "".join([*lines, "Nový pes běží.\tA new dog is running.\n"]),
        "a line less": "".join(lines[:-1]),
        "a line changed": "".join([*lines[: len(lines) // 2], other, *lines[len(lines) // 2 + 1 :]]),
    }


def source_name(snapshot: Path) -> str:
    """Return the file of the first project to change."""
    parameters: dict[str, Any] = read_parameters(snapshot / HOSTS[0])
    return str(parameters["ingest"]["sources"][-1]["path"])
