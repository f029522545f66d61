"""The choices that params.yaml was composed from. They stay until changed, and manual edits become choices.

Its first lines are comments: the user's, then the choices and a checksum of each section as it was written::

    # choices: corpus=my translate.beam=4
    # written: ingest=3fa9c1d2 nmt=...

A section that differs from its checksum was edited manually. A value in it that differs from the choices'
result becomes a choice, which stays until another choice sets the same key.
"""

import itertools
import shlex
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
    for one in overrides:
        if any(unicodedata.category(letter) in _NOT_IN_COMMENTS for letter in one if letter not in "\t\n"):
            raise InputError(
                f"{one!r} contains a control character", remedy='Write it as in YAML: KEY="a\\rb".'
            )
    was = _read(path, reset)
    text, current = was if was is not None and not reset else ("", {})
    header = _header(text)
    edits = _edits(configs, header, current, path)
    again = set(map(key_of, edits))
    earlier = [*(one for one in header[_CHOICES] if key_of(one) not in again), *edits]
    named = [_filter_named(one) for one in overrides]
    chosen, forgotten = _joined(configs, earlier, named)
    given = [one for one in earlier if not one.startswith("~")]
    removals = [one for one in named if one.startswith("~")]
    # A value that was given is taken back; its choice's own value counts again.
    chosen = [one for one in chosen if one not in removals or not _names_one_of(key_of(one), given)]
    removals = [one for one in removals if not _names_one_of(key_of(one), earlier)]
    if removals:
        _check_removals(compose(configs, [one for one in chosen if one not in removals]), removals)
    content = compose(configs, chosen)
    return Configured(
        _own_comments(text) + _header_text(chosen, content) + yaml_text(content),
        check_parameters(content, str(path)),
        chosen,
        [one for one in forgotten if one not in edits],
        [words for one, words in edits.items() if one in chosen],
        None if was is None else [_words(*one) for one in _differences(was[1], content)],
    )


def _edits(
    configs: Path, header: dict[str, list[str]], current: dict[str, Any], path: Path
) -> dict[str, str]:
    """Find manual edits since a file was written: as overrides of its choices, with descriptions."""
    edited = {name: value for name, value in current.items() if not _as_written(name, value, header)}
    if not edited:
        return {}
    edited = with_named_filters(edited, path)
    try:
        given = compose(configs, header[_CHOICES])
    except ParaforgeError:  # they cannot be read any more
        given = compose(configs, [])
    found = {}
    for key, old, new in _differences({name: given.get(name, _ABSENT) for name in edited}, edited):
        name = ".".join(key)
        found[f"~{name}" if new is _ABSENT else f"{name}={value_text(new)}"] = _words(key, old, new)
    return found


def _names_one_of(key: str, overrides: Sequence[str]) -> bool:
    """Return whether an override sets this key or one in it."""
    return any(f"{key_of(one)}.".startswith(f"{key}.") for one in overrides)


def _check_removals(content: dict[str, Any], removals: Sequence[str]) -> None:
    """Raise InputError if a removal names something that is not in the content."""
    for one in removals:
        container, last = place_of(content, key_of(one), make=False)
        if not isinstance(container, dict) or last not in container:
            keys = [".".join(key[:depth]) for key, _ in _leaves(content) for depth in range(1, len(key) + 1)]
            raise InputError(f"{one}: there is nothing to remove{did_you_mean(key_of(one), keys)}")


def _filter_named(override: str) -> str:
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
        given = compose(project / "configs", header[_CHOICES])
    except (OSError, ParaforgeError):
        return None
    changed = [
        name
        for name, value in current.items()
        if _as_written(name, value, header) and value != given.get(name)
    ]
    if not changed:
        return None
    sections = ", ".join(changed)
    return f"the choices changed after {PARAMETERS} was composed ({sections}): run 'paraforge configure'"


def _as_written(name: str, value: Any, header: Mapping[str, list[str]]) -> bool:
    """Return whether a section has no manual edits."""
    return f"{name}={_checksum(value)}" in header[_WRITTEN]


def _header(text: str) -> dict[str, list[str]]:
    """Return the choices in the first lines of a file."""
    found: dict[str, list[str]] = {_CHOICES: [], _WRITTEN: []}
    for line in text.replace(_LINE, "\0").splitlines():
        if not line.startswith("#"):
            break
        for name in found:
            if line.startswith(name):
                found[name] = shlex.split(line.removeprefix(name).replace("\0", "\n"))
    return found


def _own_comments(text: str) -> str:
    """Return the user's comments in the first lines of a file, such as the schema for an editor."""
    lines = itertools.takewhile(lambda line: line.startswith("#"), text.split("\n"))
    ours = (_TITLE, _CHOICES, _WRITTEN, _LINE.strip())
    return "".join(f"{line}\n" for line in lines if not line.startswith(ours))


def _header_text(chosen: Sequence[str], content: Mapping[str, Any]) -> str:
    sums = [f"{name}={_checksum(value)}" for name, value in content.items()]
    choices = shlex.join(chosen).replace("\n", _LINE)
    return f"{_TITLE}\n{_CHOICES} {choices}".rstrip() + f"\n{_WRITTEN} {' '.join(sums)}\n"


def _checksum(section: Any) -> str:
    try:
        return hash_json(section)[:8]
    except ValueError:  # an infinite number, which no parameter can be
        return ""


def _joined(configs: Path, earlier: Sequence[str], now: Sequence[str]) -> tuple[list[str], list[str]]:
    """Merge earlier and new choices. Also returns the earlier values that a newly chosen group replaces."""
    groups = choices(configs)
    of_groups = _of_groups(configs, now)
    again = {key_of(one) for one in now}
    named = {tuple(key.split(".")) for key in again - groups.keys()}
    kept, forgotten = [], []
    for one in earlier:
        name = key_of(one)
        key = tuple(name.split("."))
        if name in again:
            continue
        # A mapping or a list stays if only a value in it is set now.
        has_values = one.partition("=")[2].startswith(("{", "["))
        again_set = any(key[: len(new)] == new for new in named) if has_values else _overlaps(key, named)
        if name not in groups and (again_set or _overlaps(key, of_groups)):
            forgotten.append(one)
        else:
            kept.append(one)
    return [*kept, *now], forgotten


def _of_groups(configs: Path, overrides: Sequence[str]) -> set[Key]:
    """Return the keys that the files of chosen groups set. ``GROUP=null`` sets the section of its name."""
    groups = choices(configs)
    keys: set[Key] = set()
    for one in overrides:
        group, equals, name = one.partition("=")
        if not equals or group not in groups:
            continue
        if name == "null":
            keys.add((group,))
            continue
        for file in files_of_choice(configs, group, name):
            found = (key for key, _ in _leaves(sections_in(file) if file.is_file() else {}) if key)
            keys |= {_WHOLE if key[:2] == _WHOLE else key for key in found}
    return keys


def _overlaps(key: Key, named: set[Key]) -> bool:
    return any(key[: len(one)] == one[: len(key)] for one in named)


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
    if lists and all(isinstance(one, dict) for one in [*old, *new]):
        old, new = (dict(enumerate(one)) for one in (old, new))
    names = {**old, **new} if isinstance(old, dict) and isinstance(new, dict) else {}
    # A name with a point or an equals sign, or an empty one, cannot be part of a key.
    if names and all(str(name) and not {".", "="} & {*str(name)} for name in names):
        for name in names:
            yield from _differences(old.get(name, _ABSENT), new.get(name, _ABSENT), (*key, str(name)))
    elif old != new:
        yield key, old, new


def _words(key: Key, old: Any, new: Any) -> str:
    """Describe a change; for two lists with mappings, such as sources, the elements that differ."""
    if isinstance(old, list) and isinstance(new, list) and any(isinstance(one, dict) for one in [*old, *new]):
        alone = [one for one in old if one not in new], [one for one in new if one not in old]
        old, new = alone if any(alone) else (old, new)
    return f"{'.'.join(key)}: {_text(old)} -> {_text(new)}"


def _text(value: Any) -> str:
    if value is _ABSENT:
        return "default"
    text: str = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=1e9)
    return text.removesuffix("...\n").strip()
