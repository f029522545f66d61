"""The small project of the guarantee tests: all stages run, on several shards."""

import os
import shutil
import sys
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

from paraforge.base.files import write_json
from paraforge.intake.sample_bitext import write_sample
from tests.here import inside, run_stage
from tests.project import ROOT, TRAINED, digests, make_project, read_parameters, stage_names, write_parameters
from tests.translation.training.test_training import parameters as tiny_model

OVERRIDES = (
    TRAINED,
    "embeddings.models.word.encoder.dimension=8",
    "lexicon.minimum_pairs=1",
    "triplets=default",
)
RENAMES = "renames.json"
FAILING = "kolo"
"""The fake engine fails on Czech sentences with this in them."""
DIRTY = (
    "Pes běží.\tThe dog runs.",
    "Pes běží.\tThe dog runs.",  # a duplicate
    "Pes utíká.\tThe dog runs.",  # another sentence of the same reference
    "OK.\tOK.",  # identical
    "\tNothing on the left.",
    "Nic vpravo.\t",
    "no tab at all",
    "Kolo stojí.\tThe bike stands.",
    "Kolo stojí tam.\tThe bike stands there.",
    "Velké kolo stojí u domu.\tThe big bike stands by the house.",
)
SOURCES = ("sample-everyday", "sample-captions", "dirty")
STAGES: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]


def outputs(stage: str) -> list[str]:
    """Return what DVC tracks of a stage, except its metrics, which contain times."""
    outs = [name for name in STAGES[stage]["outs"] if isinstance(name, str)]
    return [name.replace("${item.name}", "word") for name in outs]


def result(project: Path, stage: str) -> dict[str, dict[str, str]]:
    """Return the digests of all files of a stage's outputs."""
    return {name: digests(project / name) or _file(project / name) for name in outputs(stage)}


def _file(path: Path) -> dict[str, str]:
    return {path.name: digests(path.parent)[path.name]} if path.is_file() else {}


def make(project: Path, changed: Mapping[str, Any] | None = None) -> Path:
    """Make the project, optionally with other parameter values. No stage has run yet."""
    make_project(project, *OVERRIDES)
    write_sample(project, pairs=600)
    (project / "dirty.tsv").write_text("".join(f"{line}\n" for line in DIRTY), encoding="utf-8")
    parameters = read_parameters(project)
    source = {"format": "tsv", "columns": {"source_text": 0, "reference": 1}, "license": "MIT"}
    parameters["ingest"] = {
        "kind": "bitext",
        "rows_per_shard": 100,
        "cleaning": {"malformed": "reject"},
        "sources": [{"name": name, "path": f"{name}.tsv", **source} for name in SOURCES],
    }
    parameters["publish"] |= {"licenses": {}, "rows_per_file": 100}
    parameters["nmt"] = tiny_model(vocabulary={"size": 120}).model_dump(mode="json", exclude_unset=True)
    parameters["translate"]["sentences_per_task"] = 30
    parameters["translate"]["fake"]["fail_pattern"] = FAILING
    parameters["paraphraser"] = {
        # Copies: in YAML, a value that two keys share would be an alias, and change with both.
        **{name: deepcopy(parameters["nmt"][name]) for name in ("architecture", "training", "validation")},
        "model": "train",
        "vocabulary": {"size": 120},
        "maximum_tokens": 40,
    }
    parameters["resources"] |= {"threads": 1, "devices": ["cpu"]}
    for key, value in (changed or {}).items():
        put(parameters, key, value)
    write_parameters(project, parameters)
    return project


def make_finished(project: Path, changed: Mapping[str, Any] | None = None) -> None:
    """Make the project and run all its stages in this process, one after the other. The number of files and
    directories that each renamed is written to RENAMES."""
    make(project, {"publish.splits": {"validation": 20}, **(changed or {})})
    renames: dict[str, int] = {}
    running: list[str] = []

    def count(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "os.rename" and running:
            inside_project = Path(os.fsdecode(arguments[1])).absolute().is_relative_to(project)
            renames[running[0]] = renames.get(running[0], 0) + inside_project

    sys.addaudithook(count)
    with inside(project):
        for stage in stage_names():
            running[:] = [stage]
            run_stage(stage)
    running.clear()
    write_json(project / RENAMES, renames)


def put(parameters: dict[str, Any], key: str, value: Any) -> None:
    """Set the value of a dotted key."""
    *sections, name = key.split(".")
    for section in sections:
        parameters = parameters.setdefault(section, {})
    parameters[name] = value


def change(project: Path, changed: Mapping[str, Any]) -> None:
    """Change values in the project's params.yaml."""
    parameters = read_parameters(project)
    for key, value in changed.items():
        put(parameters, key, value)
    write_parameters(project, parameters)


def copy(finished: Path, project: Path, *, work: bool = True) -> Path:
    """Copy a finished project, optionally without its work directory."""
    ignored = () if work else ("work",)
    shutil.copytree(finished, project, symlinks=True, ignore=shutil.ignore_patterns(*ignored))
    return project


def remove(project: Path, stage: str) -> None:
    """Remove a stage's outputs."""
    for name in outputs(stage):
        path = project / name
        path.unlink() if path.is_file() else shutil.rmtree(path)
