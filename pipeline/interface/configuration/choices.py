"""The choices that params.yaml was composed from. They stay until changed, and manual edits become choices.

Its first lines are comments: the user's, then the choices and a checksum of each section as it was written::

    # choices: corpus=my translate.beam=4
    # written: ingest=3fa9c1d2 nmt=...

A section that differs from its checksum was edited manually. A value in it that differs from the choices'
result becomes a choice, which stays until another choice sets the same key.
"""

import shlex
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap, takewhile
from pathlib import Path
from typing import Any

import yaml

from paraforge.base.errors import InputError, ParaforgeError, did_you_mean
from paraforge.base.files import hash_json
from paraforge.base.yaml_text import yaml_text
from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.interface.configuration import PARAMETERS, check_parameters, read_yaml
from paraforge.interface.configuration.composition import (
    choices,
    compose,
    files_of_choice,
    key_of,
    place_of,
    sections_in,
    value_text,
    with_named_filters,
)
from paraforge.interface.configuration.parameters import Parameters

_TITLE = "# Composed by 'paraforge configure', which keeps what is edited here."
_CHOICES, _WRITTEN = "# choices:", "# written:"
_LINE = "\n#+ "
"""A line end inside a choice."""
_NOT_IN_COMMENTS = ("Cc", "Cs", "Zl", "Zp")
Key = tuple[str, ...]
_WHOLE: Key = ("select", "filters")
"""A group defines these completely; keys that it does not name do not exist."""


@dataclass(frozen=True)
class Configured:
    """A params.yaml to be written.

    text: the whole text. parameters: the same, checked.
    choices: what it was composed from, including earlier choices and manual edits.
    forgotten: earlier values that a newly chosen group replaces.
    edited: manual edits that are kept, each as `KEY: OLD -> NEW`, `default` if not given.
    changes: differences from the existing file, in the same form; None if there was no file.
    """

    text: str
    parameters: Parameters
    choices: list[str]
    forgotten: list[str]
    edited: list[str]
    changes: list[str] | None


def reconfigure(configs: Path, overrides: Sequence[str], path: Path, reset: bool = False) -> Configured:
    """Compose the parameters from earlier choices, manual edits in ``path``, and new choices.

    Raises:
        InputError: a choice does not exist, or a file cannot be read.
        ConfigurationError: invalid values; it names all of them.
    """
    for override in overrides:
        if any(unicodedata.category(letter) in _NOT_IN_COMMENTS for letter in {*override} - {*"\t\n"}):
            remedy = 'Write it as in YAML: KEY="a\\rb".'
            raise InputError(f"{override!r} contains a control character", remedy=remedy)
    existing = _read(path, reset)
    text, current = existing if existing is not None and not reset else ("", {})
    header = _header(text)
    edits = _find_edits(configs, header, current, path)
    edited_keys = set(map(key_of, edits))
    earlier = [*(choice for choice in header[_CHOICES] if key_of(choice) not in edited_keys), *edits]
    new = [_expand_filter_name(override) for override in overrides]
    merged, forgotten = _merge_choices(configs, earlier, new)
    removals = [choice for choice in new if choice.startswith("~")]
    # Removing a value that an earlier choice set restores the value of the groups.
    values = [choice for choice in earlier if not choice.startswith("~")]
    chosen = [choice for choice in merged if choice not in removals or not _is_set_by(key_of(choice), values)]
    removals = [choice for choice in removals if not _is_set_by(key_of(choice), earlier)]
    if removals:
        _check_removals(compose(configs, [choice for choice in chosen if choice not in removals]), removals)
    content = compose(configs, chosen)
    return Configured(
        _user_comments(text) + _header_text(chosen, content) + yaml_text(content),
        check_parameters(content, str(path)),
        chosen,
        forgotten=[choice for choice in forgotten if choice not in edits],
        edited=[description for choice, description in edits.items() if choice in chosen],
        changes=None
        if existing is None
        else [*starmap(_describe_change, _differences(existing[1], content))],
    )


def _find_edits(
    configs: Path, header: dict[str, list[str]], current: dict[str, Any], path: Path
) -> dict[str, str]:
    """Find manual edits since a file was written: as overrides of its choices, with descriptions."""
    edited = {name: value for name, value in current.items() if not _is_unedited(name, value, header)}
    if not edited:
        return {}
    edited = with_named_filters(edited, path)
    try:
        composed = compose(configs, header[_CHOICES])
    except ParaforgeError:  # they cannot be read any more
        composed = compose(configs, [])
    overrides = {}
    for key, old, new in _differences({name: composed.get(name, _ABSENT) for name in edited}, edited):
        name = ".".join(key)
        overrides[f"~{name}" if new is _ABSENT else f"{name}={value_text(new)}"] = _describe_change(
            key, old, new
        )
    return overrides


def _is_set_by(key: str, overrides: Sequence[str]) -> bool:
    """Return whether an override sets this key or one in it."""
    return any(f"{key_of(override)}.".startswith(f"{key}.") for override in overrides)


def _check_removals(content: dict[str, Any], removals: Sequence[str]) -> None:
    """Raise InputError if a removal names something that is not in the content."""
    for removal in removals:
        container, last = place_of(content, key_of(removal), create=False)
        if not isinstance(container, dict) or last not in container:
            keys = [".".join(key[:depth]) for key, _ in _leaves(content) for depth in range(1, len(key) + 1)]
            raise InputError(f"{removal}: there is nothing to remove{did_you_mean(key_of(removal), keys)}")


def _expand_filter_name(override: str) -> str:
    """Turn ``select.NAME.KEY=VALUE`` into ``select.filters.NAME.KEY=VALUE``, and ``select.NAME=null``."""
    section, *rest = key_of(override).split(".")
    names_filter = len(rest) > 1 or (len(rest) == 1 and override.endswith("=null"))
    if section == "select" and names_filter and rest[0] not in SelectParameters.model_fields:
        return override.replace("select.", "select.filters.", 1)
    return override


def _read(path: Path, reset: bool) -> tuple[str, dict[str, Any]] | None:
    """Return text and content of the existing file; None if there is none or it can be replaced."""
    try:
        text, content = read_yaml(path)
    except FileNotFoundError:
        return None
    except InputError:
        if reset:
            return None
        raise
    if content is not None and not isinstance(content, dict):
        raise InputError("no sections", path, remedy="'paraforge configure --reset' rewrites it.")
    return text, content or {}


def stale_words(project: Path) -> str | None:
    """Return what to do about choices that changed after params.yaml was composed; None if composing
    again would give the same file, or if that is unknown."""
    try:
        text, current = read_yaml(project / PARAMETERS)
        header = _header(text)
        composed = compose(project / "configs", header[_CHOICES])
    except (OSError, ParaforgeError):
        return None
    changed = [
        name
        for name, value in current.items()
        if _is_unedited(name, value, header) and value != composed.get(name)
    ]
    if not changed:
        return None
    sections = ", ".join(changed)
    return f"the choices changed after {PARAMETERS} was composed ({sections}): run 'paraforge configure'"


def _is_unedited(name: str, value: Any, header: Mapping[str, list[str]]) -> bool:
    """Return whether a section has no manual edits."""
    return f"{name}={_checksum(value)}" in header[_WRITTEN]


def _header(text: str) -> dict[str, list[str]]:
    """Return the choices in the first lines of a file."""
    header: dict[str, list[str]] = {_CHOICES: [], _WRITTEN: []}
    for line in text.replace(_LINE, "\0").splitlines():
        if not line.startswith("#"):
            break
        for name in header:
            if line.startswith(name):
                header[name] = shlex.split(line.removeprefix(name).replace("\0", "\n"))
    return header


def _user_comments(text: str) -> str:
    """Return the user's comments in the first lines of a file, such as the schema for an editor."""
    lines = takewhile(lambda line: line.startswith("#"), text.split("\n"))
    generated = (_TITLE, _CHOICES, _WRITTEN, _LINE.strip())
    return "".join(f"{line}\n" for line in lines if not line.startswith(generated))


def _header_text(chosen: Sequence[str], content: Mapping[str, Any]) -> str:
    sums = [f"{name}={_checksum(value)}" for name, value in content.items()]
    choices = shlex.join(chosen).replace("\n", _LINE)
    return f"{_TITLE}\n{_CHOICES} {choices}".rstrip() + f"\n{_WRITTEN} {' '.join(sums)}\n"


def _checksum(section: Any) -> str:
    try:
        return hash_json(section)[:8]
    except ValueError:  # an infinite number, which no parameter can be
        return ""


def _merge_choices(configs: Path, earlier: Sequence[str], now: Sequence[str]) -> tuple[list[str], list[str]]:
    """Merge earlier and new choices. Also returns the earlier values that a newly chosen group replaces."""
    groups = choices(configs)
    group_keys = _keys_of_groups(configs, now)
    new_keys = {key_of(choice) for choice in now}
    new_paths = {tuple(key.split(".")) for key in new_keys - groups.keys()}
    kept, forgotten = [], []
    for choice in earlier:
        name = key_of(choice)
        key = tuple(name.split("."))
        if name in new_keys:
            continue
        # A mapping or a list stays if only a value in it is set now.
        has_values = choice.partition("=")[2].startswith(("{", "["))
        is_replaced = (
            any(key[: len(new)] == new for new in new_paths) if has_values else _overlaps(key, new_paths)
        )
        if name not in groups and (is_replaced or _overlaps(key, group_keys)):
            forgotten.append(choice)
        else:
            kept.append(choice)
    return [*kept, *now], forgotten


def _keys_of_groups(configs: Path, overrides: Sequence[str]) -> set[Key]:
    """Return the keys that the files of chosen groups set. ``GROUP=null`` sets the section of its name."""
    groups = choices(configs)
    keys: set[Key] = set()
    for override in overrides:
        group, equals, name = override.partition("=")
        if not equals or group not in groups:
            continue
        if name == "null":
            keys.add((group,))
            continue
        for file in files_of_choice(configs, group, name):
            file_keys = (key for key, _ in _leaves(sections_in(file) if file.is_file() else {}) if key)
            keys |= {_WHOLE if key[:2] == _WHOLE else key for key in file_keys}
    return keys


def _overlaps(key: Key, others: set[Key]) -> bool:
    return any(key[: len(other)] == other[: len(key)] for other in others)


_ABSENT = object()


def _leaves(value: Any, key: Key = ()) -> Iterator[tuple[Key, Any]]:
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _leaves(inner, (*key, str(name)))
    else:
        yield key, value


def _differences(old: Any, new: Any, key: Key = ()) -> Iterator[tuple[Key, Any, Any]]:
    """Yield the keys of two mappings whose values differ, with both values; lists of equal length are
    compared by index."""
    lists = isinstance(old, list) and isinstance(new, list) and len(old) == len(new)
    if lists and all(isinstance(item, dict) for item in [*old, *new]):
        old, new = (dict(enumerate(item)) for item in (old, new))
    names = {**old, **new} if isinstance(old, dict) and isinstance(new, dict) else {}
    # A key cannot contain an empty name, or one with a dot or an equals sign.
    if names and all(str(name) and not {".", "="} & {*str(name)} for name in names):
        for name in names:
            yield from _differences(old.get(name, _ABSENT), new.get(name, _ABSENT), (*key, str(name)))
    elif old != new:
        yield key, old, new


def _describe_change(key: Key, old: Any, new: Any) -> str:
    """Describe a change; for two lists with mappings, such as sources, the elements that differ."""
    if (
        isinstance(old, list)
        and isinstance(new, list)
        and any(isinstance(item, dict) for item in [*old, *new])
    ):
        changed = [item for item in old if item not in new], [item for item in new if item not in old]
        old, new = changed if any(changed) else (old, new)
    return f"{'.'.join(key)}: {_yaml_line(old)} -> {_yaml_line(new)}"


def _yaml_line(value: Any) -> str:
    if value is _ABSENT:
        return "default"
    text: str = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=1e9)
    return text.removesuffix("...\n").strip()
