"""Composes params.yaml from groups of YAML files and from values, and checks the result."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from paraforge.base.errors import InputError, did_you_mean
from paraforge.base.yaml_text import read_yaml_text
from paraforge.corpus.selection.parameters import by_name
from paraforge.interface.configuration import Location, check_parameters, has, line_of, read_yaml
from paraforge.interface.configuration.parameters import Parameters

ROOT = "paraforge"
_PACKAGE = Path(__file__).resolve().parents[2]


def shipped(name: str) -> Path:
    """Return a file or directory of the repository: inside an installed package, beside the package of a
    clone."""
    inside = _PACKAGE / name
    return inside if inside.exists() else _PACKAGE.parent / name


def choices(configs: Path) -> dict[str, list[str]]:
    """Return the groups, each with its choices, both sorted: those of Paraforge and those of a project.

    configs: the project's directory of choices; it need not exist.
    """
    found: dict[str, set[str]] = {}
    for file in [*shipped("configs").glob("*/*.yaml"), *configs.glob("*/*.yaml")]:
        found.setdefault(file.parent.name, set()).add(file.stem)
    return {group: sorted(names) for group, names in sorted(found.items())}


def _file(configs: Path, name: str) -> Path:
    """Return a file of choices: the project's own, or else the one that comes with Paraforge."""
    return configs / name if (configs / name).is_file() else shipped("configs") / name


def compose(configs: Path, overrides: Sequence[str]) -> str:
    """Return the text of params.yaml for these choices.

    configs: the project's directory of choices, whose files go before those of Paraforge.

    Raises:
        InputError: a group, choice or key does not exist, or a group's file cannot be read.
        ConfigurationError: a value is not allowed; all of them are named.
    """
    from omegaconf import OmegaConf
    from omegaconf.errors import InterpolationKeyError, OmegaConfBaseException

    root = _file(configs, f"{ROOT}.yaml")
    groups = choices(configs)
    for override in overrides:
        _check_names(override, groups)
    chosen = group_files(configs, overrides)
    composed: Any = OmegaConf.create()
    try:
        for file in (root, *chosen):
            composed = OmegaConf.merge(composed, _sections(file))
            _name_filters(composed)
        for one in overrides:
            if key_of(one) not in groups:
                _override(composed, one)
                _name_filters(composed)
        container = OmegaConf.to_container(composed, resolve=True)
    except InterpolationKeyError as error:
        raise InputError(
            str(error).splitlines()[0],
            remedy="${...} stands for another key; an environment variable is written $NAME, without braces.",
        ) from error
    except (OmegaConfBaseException, TypeError) as error:
        raise InputError(str(error).splitlines()[0]) from error
    assert isinstance(container, dict)
    content = {str(key): value for key, value in container.items()}
    check_parameters(content, _place(configs, chosen))
    return OmegaConf.to_yaml(OmegaConf.create({**content, "select": by_name(content["select"])}))


def _sections(file: Path) -> Any:
    """Read the settings in a file. Raises InputError if it has no sections."""
    from omegaconf import OmegaConf

    # Checked first, because OmegaConf would expand aliases beyond the memory.
    if not isinstance(read_yaml(file)[1] or {}, dict):
        raise InputError("no sections", file, remedy="Write SECTION: and below it KEY: VALUE.")
    found: Any = OmegaConf.load(file)
    found.pop("defaults", None)
    return found


def key_of(override: str) -> str:
    """Return the key or group that a choice names."""
    return override.lstrip("+~").partition("=")[0]


def _name_filters(composed: Any) -> None:
    """Turn a list of filters into a mapping by name; both forms are allowed."""
    from omegaconf import OmegaConf

    if OmegaConf.is_list(OmegaConf.select(composed, "select.filters")):
        selected = OmegaConf.to_container(composed.select, resolve=True)
        assert isinstance(selected, dict)
        composed.select = by_name({str(key): value for key, value in selected.items()})


def _override(composed: Any, override: str) -> None:
    """Set or remove a value. The key need not be in a group's file, because the types catch misspelled keys.

    Raises InputError if the override has no ``=``, or its value cannot be read.
    """
    from omegaconf import OmegaConf

    key, equals, text = key_of(override), "=" in override, override.partition("=")[2]
    if not override.startswith("~"):
        if not equals:
            raise InputError(f"'{override}' is neither GROUP=CHOICE nor KEY=VALUE")
        try:
            value = value_of(text)
        except ValueError as error:
            remedy = 'Close every bracket and quotation mark, as in [{name: "a: b"}].'
            raise InputError(f"{override} cannot be read: {error}", remedy=remedy) from error
        merge = not key.startswith("select.filters.")
        OmegaConf.update(composed, key, value, merge=merge, force_add=True)
        return
    above, _, last = key.rpartition(".")
    container = OmegaConf.select(composed, above) if above else composed
    if container is not None and last in container:
        del container[last]


def value_of(text: str) -> Any:
    """Read the value of ``KEY=VALUE``: a number, ``true``, ``false``, ``null``, YAML in brackets or quotation
    marks, or else a text of any characters. Raises ValueError if a bracket or a quotation mark is not
    closed."""
    if text[:1] in ("[", "{", "'", '"'):
        with suppress(ValueError, RecursionError):
            return json.loads(text)
        try:
            return read_yaml_text(text)
        except yaml.YAMLError as error:
            raise ValueError(str(error).splitlines()[0]) from error
    words: dict[str, Any] = {"null": None, "true": True, "false": False}
    words |= {".nan": math.nan, ".inf": math.inf, "-.inf": -math.inf}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


def value_text(value: Any) -> str:
    """Write a value as one line of JSON that :func:`value_of` reads; unprintable characters are escaped."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return "".join(one if one.isprintable() else json.dumps(one)[1:-1] for one in text)


def group_files(configs: Path, overrides: Sequence[str]) -> list[Path]:
    """Return the group files that these choices read, each after the files that it builds on."""
    content = read_yaml(_file(configs, f"{ROOT}.yaml"))[1]
    defaults = content.get("defaults", []) if isinstance(content, dict) else []
    named = dict(one.lstrip("+").split("=", 1) for one in overrides if "=" in one)
    chosen = {group: name for one in defaults if isinstance(one, dict) for group, name in one.items()}
    groups = choices(configs)
    chosen |= {group: name for group, name in named.items() if group in chosen or group in groups}
    return [
        file
        for group, name in chosen.items()
        if name not in (None, "null")
        for file in files_of_choice(configs, group, name)
    ]


def files_of_choice(configs: Path, group: str, name: str, above: tuple[str, ...] = ()) -> list[Path]:
    """Return the file of a choice, after the files that it builds on. above: choices that build on it."""
    file = _file(configs, f"{group}/{name}.yaml")
    content = read_yaml(file)[1] if file.is_file() else None
    below = content.get("defaults", []) if isinstance(content, dict) else []
    above = (*above, name)
    others = [one for one in below if isinstance(one, str) and one not in ("_self_", *above)]
    return [*(found for other in others for found in files_of_choice(configs, group, other, above)), file]


def _place(configs: Path, files: Sequence[Path]) -> Callable[[Location], str]:
    def place(location: Location) -> str:
        for file in reversed(files):
            text, content = read_yaml(file)
            if location and has(content, location):
                return f"{file}:{line_of(text, location)}"
        return str(configs)

    return place


def _check_names(override: str, groups: dict[str, list[str]]) -> None:
    """Raise InputError for an unknown group, section or choice, with a suggestion."""
    key, equals, value = override.lstrip("+~").partition("=")
    name = key.split(".")[0]
    known = [*groups, *Parameters.model_fields]
    if equals and name not in known:
        raise InputError(
            f"{override}: there is no group or section '{name}'{did_you_mean(name, known)}",
            remedy=f"There are {', '.join(sorted(set(known)))}.",
        )
    # Some groups have a section's name: 'select=paranmt', but 'select.deciles=[]'.
    if equals and key in groups and value not in (*groups[key], "null"):
        raise InputError(
            f"{override}: there is no such choice{did_you_mean(value, groups[key])}",
            remedy=f"There are {key}: {', '.join(groups[key])}.",
        )
