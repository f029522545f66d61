"""Composes params.yaml from groups of YAML files and from values, and checks the result."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from paraforge.base.errors import InputError, did_you_mean
from paraforge.base.yaml_text import read_yaml_text
from paraforge.corpus.selection.parameters import SelectParameters, by_name
from paraforge.interface.configuration import (
    Location,
    check_parameters,
    describe_problems,
    found_at,
    read_yaml,
)
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
    groups: dict[str, set[str]] = {}
    for file in [*shipped("configs").glob("*/*.yaml"), *configs.glob("*/*.yaml")]:
        groups.setdefault(file.parent.name, set()).add(file.stem)
    return {group: sorted(names) for group, names in sorted(groups.items())}


def _file(configs: Path, name: str) -> Path:
    """Return a file of choices: the project's own, or else the one that comes with Paraforge."""
    return configs / name if (configs / name).is_file() else shipped("configs") / name


def compose(configs: Path, overrides: Sequence[str]) -> dict[str, Any]:
    """Return the content of params.yaml for these choices, with filters by name.

    configs: the project's directory of choices, whose files override Paraforge's.

    Raises:
        InputError: a group, choice or key does not exist, or a group's file cannot be read.
        ConfigurationError: a value is not allowed; all of them are named.
    """
    groups = choices(configs)
    for override in overrides:
        _check_name(override, groups)
    files = group_files(configs, overrides)
    content: dict[str, Any] = {name: {} for name in Parameters.model_fields}
    for file in (_file(configs, f"{ROOT}.yaml"), *files):
        content = _merge(content, sections_in(file))
    values = [override for override in overrides if key_of(override) not in groups]
    for override in values:
        _override(content, override)
        content = with_named_filters(content, override)
    return _add_defaults(content, check_parameters(content, _locator(configs, files, values)))


def _add_defaults(content: dict[str, Any], parameters: Parameters) -> dict[str, Any]:
    """Add the defaults of the keys in dvc.yaml that the content lacks, because DVC fails without them."""
    content = {name: content.get(name, {}) for name in Parameters.model_fields}
    content["publish"].setdefault("pairs", parameters.publish.pairs)
    for language in ("source_language", "target_language"):
        content["nmt"].setdefault(language, getattr(parameters.nmt, language))
    models: dict[str, Any] = {name: {} for name in parameters.embeddings.models}
    defaults = {**parameters.embeddings.model_dump(mode="json"), "models": models}
    return {**content, "embeddings": {**defaults, **content["embeddings"]}}


def sections_in(file: Path) -> dict[str, Any]:
    """Read the settings in a file of a group. Raises InputError if it has no sections."""
    content = read_yaml(file)[1] or {}
    if not isinstance(content, dict):
        raise InputError("no sections", file, remedy="Write SECTION: and below it KEY: VALUE.")
    return with_named_filters(
        {name: section for name, section in content.items() if name != "defaults"}, file
    )


def with_named_filters(content: dict[str, Any], where: str | Path) -> dict[str, Any]:
    """Turn a list of filters in section ``select`` into a mapping by name; both forms are allowed. Raises
    ConfigurationError, which names ``where``, if a filter is invalid."""
    section = content.get("select")
    if not isinstance(section, dict):
        return content
    try:
        return {**content, "select": by_name(section)}
    except ValidationError as error:
        raise describe_problems(error, SelectParameters, section, f"{where}: select") from error


def _merge(old: Any, new: Any) -> Any:
    """Merge the mappings of a value into those of another one. The result shares nothing with the value."""
    if isinstance(new, list):
        return [_merge(None, item) for item in new]
    if not isinstance(new, dict):
        return new
    mapping = old if isinstance(old, dict) else {}
    return mapping | {name: _merge(mapping.get(name), item) for name, item in new.items()}


def key_of(override: str) -> str:
    """Return the key or group that a choice names."""
    return override.lstrip("+~").partition("=")[0]


def _override(content: dict[str, Any], override: str) -> None:
    """Set or remove a value. The key need not be in a group's file, because the types catch misspelled keys.

    Raises InputError if the override has no ``=``, or its value cannot be read.
    """
    key, equals, text = key_of(override), "=" in override, override.partition("=")[2]
    if override.startswith("~"):
        container, name = place_of(content, key, create=False)
        if isinstance(container, dict):
            container.pop(name, None)
        return
    if not equals:
        raise InputError(f"'{override}' is neither GROUP=CHOICE nor KEY=VALUE")
    try:
        value = value_of(text)
    except ValueError as error:
        remedy = 'Close every bracket and quotation mark, as in [{name: "a: b"}].'
        raise InputError(f"{override} cannot be read: {error}", remedy=remedy) from error
    try:
        container, name = place_of(content, key)
    except ValueError as error:
        raise InputError(f"{override}: {error}") from error
    is_filter = key.startswith("select.filters.")
    if is_filter and value is None and key.count(".") == 2 and name not in container:
        raise InputError(f"{override}: there is no filter to remove{did_you_mean(name, container)}")
    container[name] = _merge(None if is_filter or isinstance(container, list) else container.get(name), value)


def place_of(content: Any, key: str, create: bool = True) -> tuple[Any, Any]:
    """Return the mapping or list that a key such as ``a.b.0.c`` is in, and its name or index there.

    create: whether missing mappings are created; otherwise the first value in their place is returned.

    Raises ValueError if a list has no such item.
    """
    name, _, rest = key.partition(".")
    index: Any = name
    if isinstance(content, list):
        if not name.isdecimal() or int(name) >= len(content):
            raise ValueError(f"there is no item {name}")
        index = int(name)
    if not rest or not isinstance(content, dict | list):
        return content, index
    inner = content.get(index) if isinstance(content, dict) else content[index]
    if create and not isinstance(inner, dict | list):
        inner = content[index] = {}
    return place_of(inner, rest, create)


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
    constants: dict[str, Any] = {"null": None, "true": True, "false": False}
    constants |= {".nan": math.nan, ".inf": math.inf, "-.inf": -math.inf}
    if text.lower() in constants:
        return constants[text.lower()]
    for number_type in (int, float):
        with suppress(ValueError):
            return number_type(text)
    return text


def value_text(value: Any) -> str:
    """Write a value as one line of JSON that :func:`value_of` reads; unprintable characters are escaped."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return "".join(
        character if character.isprintable() else json.dumps(character)[1:-1] for character in text
    )


def group_files(configs: Path, overrides: Sequence[str]) -> list[Path]:
    """Return the group files that these choices read, each after the files that it builds on."""
    groups = choices(configs)
    chosen: dict[str, str | None] = {}
    for default in _defaults(_file(configs, f"{ROOT}.yaml")):
        chosen |= default if isinstance(default, dict) else {}
    for override in overrides:
        group, equals, name = override.lstrip("+").partition("=")
        if equals and group in groups:
            chosen[group] = name
    return [
        file
        for group, name in chosen.items()
        if name not in (None, "null")
        for file in files_of_choice(configs, group, name)
    ]


def files_of_choice(configs: Path, group: str, name: str, above: tuple[str, ...] = ()) -> list[Path]:
    """Return the file of a choice, after the files that it builds on. above: choices that build on it."""
    file = _file(configs, f"{group}/{name}.yaml")
    above = (*above, name)
    bases = [name for name in _defaults(file) if isinstance(name, str) and name not in ("_self_", *above)]
    for base in bases:
        if not _file(configs, f"{group}/{base}.yaml").is_file():
            raise InputError(f"defaults: there is no choice {group}={base}", file)
    return [*(below for base in bases for below in files_of_choice(configs, group, base, above)), file]


def _defaults(file: Path) -> list[Any]:
    content = read_yaml(file)[1] if file.is_file() else None
    defaults = content.get("defaults", []) if isinstance(content, dict) else []
    if not isinstance(defaults, list):
        raise InputError("defaults is not a list of choices", file)
    return defaults


def _locator(configs: Path, files: Sequence[Path], overrides: Sequence[str]) -> Callable[[Location], str]:
    """Return a function that names the file and line of a value; a value of ``overrides`` needs none, nor a
    mapping with one in it."""
    keys = [key_of(override).split(".") for override in overrides]

    def locate(location: Location) -> str:
        if any(all(name == str(part) for name, part in zip(key, location, strict=False)) for key in keys):
            return ""
        for file in reversed(files):
            line, depth = found_at(read_yaml(file)[0], location)
            if depth == len(location) > 0:
                return f"{file}:{line}"
        return str(configs)

    return locate


def _check_name(override: str, groups: dict[str, list[str]]) -> None:
    """Raise InputError for an unknown group, section or choice, with a suggestion."""
    key, equals, value = override.lstrip("+~").partition("=")
    name = key.split(".")[0]
    known = [*groups, *Parameters.model_fields]
    if equals and name not in known:
        raise InputError(
            f"{override}: there is no group or section '{name}'{did_you_mean(name, known)}",
            remedy=f"Groups and sections: {', '.join(sorted(set(known)))}.",
        )
    # Some groups have a section's name: 'select=paranmt', but 'select.deciles=[]'.
    if equals and key in groups and value not in (*groups[key], "null"):
        raise InputError(
            f"{override}: there is no such choice{did_you_mean(value, groups[key])}",
            remedy=f"Choices of {key}: {', '.join(groups[key])}; null for none of them.",
        )
