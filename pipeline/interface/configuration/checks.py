"""What 'paraforge configure' finds out: files that are wrong, and which stages ``dvc repro`` will run."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from paraforge.base.errors import InputError
from paraforge.base.text.paths import expand
from paraforge.intake.bitext.parameters import IngestParameters
from paraforge.intake.bitext.sources import problems
from paraforge.interface.configuration import PARAMETERS, read_yaml
from paraforge.interface.configuration.inputs import unreadable_files
from paraforge.interface.configuration.parameters import Parameters
from paraforge.translation.models.archives import is_archive
from paraforge.translation.models.importers import importer_for
from paraforge.translation.models.model import MODEL_FILE
from paraforge.translation.training.parameters import languages_of


def stages_to_run(project: Path, content: Mapping[str, Any]) -> tuple[list[str], list[str]] | None:
    """Stages whose parameters, version or inputs are others than in their last run, and those that read what
    these make.

    project: directory with dvc.yaml.

    Returns names in the order of dvc.yaml, a stage for several models as ``embeddings@word``; None where
    nothing was run yet.
    """
    lock = project / "dvc.lock"
    if not lock.is_file():
        return None
    ran = (read_yaml(lock)[1] or {}).get("stages") or {}
    stages = dict(stages_of(read_yaml(project / "dvc.yaml")[1]["stages"], content))
    made = {out["path"]: out.get("md5") for one in ran.values() for out in one.get("outs", [])}
    versions = _versions(project)
    own = [
        name
        for name, (_, stage) in stages.items()
        if _changed(stage, ran.get(name), content, versions) or _is_behind(ran[name], made)
    ]
    remade = [path for name in own for path in paths_of(stages[name][1], "outs", "metrics", "plots")]
    after = []
    # dvc.yaml lists a stage after those that it reads from.
    for name, (_, stage) in stages.items():
        if name not in own and any(reads(path, remade) for path in paths_of(stage, "deps")):
            after.append(name)
            remade += paths_of(stage, "outs", "metrics", "plots")
    return own, after


def stages_of(
    described: Mapping[str, Any], content: Mapping[str, Any]
) -> Iterator[tuple[str, tuple[str, dict[str, Any]]]]:
    for name, stage in described.items():
        if "matrix" not in stage:
            yield name, (name, stage)
            continue
        for item in content["embeddings"]["names"]:
            yield f"{name}@{item}", (name, _filled(stage, item))


def _filled(value: Any, item: str) -> Any:
    if isinstance(value, dict):
        return {_filled(key, item): _filled(one, item) for key, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, item) for one in value]
    return value.replace("${item.name}", item) if isinstance(value, str) else value


def _changed(
    stage: Mapping[str, Any],
    ran: Mapping[str, Any] | None,
    content: Mapping[str, Any],
    versions: Mapping[str, Any],
) -> bool:
    if ran is None:
        return True
    were = ran.get("params", {})
    for key in stage.get("params", []):
        if isinstance(key, str):
            if value_at(content, key) != were.get(PARAMETERS.name, {}).get(key):
                return True
        elif any(
            name in versions and name in were.get(file, {}) and versions[name] != were[file][name]
            for file, names in key.items()
            for name in names
        ):
            return True
    return False


def _is_behind(ran: Mapping[str, Any], made: Mapping[str, Any]) -> bool:
    """Whether a stage has read what another stage has since made anew."""
    return any(made.get(one["path"], one.get("md5")) != one.get("md5") for one in ran.get("deps", []))


def _versions(project: Path) -> dict[str, Any]:
    """The numbers in the project's versions.py."""
    file = project / "pipeline" / "versions.py"
    tree = ast.parse(file.read_text(encoding="utf-8")) if file.is_file() else ast.Module([], [])
    return {
        target.id: one.value.value
        for one in tree.body
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Constant)
        for target in one.targets
        if isinstance(target, ast.Name)
    }


def value_at(content: Any, key: str) -> Any:
    for name in key.split("."):
        content = content.get(name) if isinstance(content, dict) else None
    return content


def paths_of(stage: Mapping[str, Any], *kinds: str) -> list[Path]:
    entries = [entry for kind in kinds for entry in stage.get(kind, [])]
    return [Path(next(iter(entry)) if isinstance(entry, dict) else entry) for entry in entries]


def reads(path: Path, made: list[Path]) -> bool:
    return any(path.is_relative_to(one) or one.is_relative_to(path) for one in made)


def check_files(parameters: Parameters) -> list[str]:
    """Everything wrong with files of the user's that shows without reading them whole; nothing is written."""
    found: list[str] = []
    models: list[str] = []
    looked_at: list[str] = []
    for _, place, one in parameters.by_pivot():
        above = ".".join([*place.parts, ""])
        sources = {"ingest": one.ingest}
        if isinstance(one.nmt.bitext, IngestParameters):
            sources["nmt.bitext"] = one.nmt.bitext
        for key, section in sources.items():
            looked_at.append(f"{above}{key}.sources.")
            found += [
                f"{above}{key}: {each}" for each in problems(section, languages_of(one.nmt, above + key))
            ]
        models += [f"{above}nmt.model: {problem}" for problem in _model_problems(one.nmt.model)]
    found += [one for one in unreadable_files(parameters) if not one.startswith(tuple(looked_at))]
    return found or models


def _model_problems(name: str) -> list[str]:
    """What is wrong with a ready model that exists here: no format fits."""
    path = Path(expand(name))
    if name in ("train", "none") or not path.exists() or is_archive(path) or (path / MODEL_FILE).is_file():
        return []
    try:
        importer_for(path)
    except InputError as error:
        return [str(error)]
    return []
