"""Composing params.yaml from Hydra's groups, and checking what comes out."""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml

from paraforge.base.errors import InputError, did_you_mean
from paraforge.corpus.selection.parameters import by_name
from paraforge.interface.configuration import check_parameters, not_yaml, read_yaml
from paraforge.interface.configuration.parameters import Parameters
from paraforge.interface.configuration.places import Location, has, line_of

# Not "config": fairseq registers a schema of that name with Hydra, process-wide, when it is imported.
ROOT = "paraforge"
# Of the behaviours that Hydra offers the oldest: fairseq refuses to be imported after a newer one was chosen.
_HYDRA_BEHAVIOUR = "1.1"
_GLOBAL = "# @package _global_"

# Choices of 0.1.0 that another one replaces.
_RENAMED = dict.fromkeys(["translation=opus-mt", "translation=fairseq-checkpoint"], "translation=ready")


def configs_directory(given: Path | None) -> Path:
    """The directory of the groups: the one that is named, the project's own, or the package's."""
    package = Path(__file__).resolve().parents[2]
    # An installed package has it inside, a clone beside itself.
    places = [Path("configs"), package / "configs", package.parent / "configs"]
    return given or next((place for place in places if place.is_dir()), places[0])


def choices(configs: Path) -> dict[str, list[str]]:
    """The groups of a configuration directory, each with its choices, both sorted."""
    if not configs.is_dir():
        raise InputError("no such directory of configurations", configs)
    return {
        group.name: sorted(file.stem for file in group.glob("*.yaml"))
        for group in sorted(configs.iterdir())
        if group.is_dir() and any(group.glob("*.yaml"))
    }


def compose(configs: Path, overrides: Sequence[str]) -> str:
    """The text of params.yaml for these choices.

    Raises:
        InputError: a group, choice or key does not exist, or a group's file cannot be read.
        ConfigurationError: a value is not allowed; all of them are named.
    """
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.errors import HydraException, OverrideParseException
    from omegaconf import OmegaConf
    from omegaconf.errors import InterpolationKeyError, OmegaConfBaseException

    if not (configs / f"{ROOT}.yaml").is_file():
        raise InputError(
            "no such file", configs / f"{ROOT}.yaml", remedy="Pass the directory with --configs."
        )
    groups = choices(configs)
    for override in overrides:
        _check_names(override, groups)
    of_groups = [one for one in overrides if one.lstrip("+~").partition("=")[0].partition("@")[0] in groups]
    # Hydra would read aliases that stand for more than memory can hold.
    chosen = group_files(configs, overrides)
    try:
        # Hydra warns at every call that the next release will not have this behaviour any more.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with initialize_config_dir(str(configs.resolve()), version_base=_HYDRA_BEHAVIOUR):
                composed = hydra_compose(ROOT, overrides=of_groups)
        OmegaConf.set_struct(composed, False)
        _name_filters(composed)
        for one in overrides:
            if one not in of_groups:
                _override(composed, _quoted(one))
                _name_filters(composed)
        container = OmegaConf.to_container(composed, resolve=True)
    except yaml.YAMLError as error:
        raise _broken(error, configs) from error
    except InterpolationKeyError as error:
        raise InputError(
            str(error).splitlines()[0],
            remedy="${...} stands for another key; an environment variable is written $NAME, without braces.",
        ) from error
    except OverrideParseException as error:
        raise InputError(
            f"cannot be read: {error.override.lstrip('+')}",
            remedy="Close every bracket, and put text with other characters than English letters, digits and "
            '-._/ in quotation marks: [{name: "můj"}].',
        ) from error
    except (HydraException, OmegaConfBaseException, TypeError) as error:
        available = "; ".join(f"{group}: {', '.join(names)}" for group, names in groups.items())
        raise InputError(f"{str(error).splitlines()[0]}", remedy=f"There are {available}.") from error
    assert isinstance(container, dict)
    content = {str(key): value for key, value in container.items()}
    for group in groups:
        # Without the first line, what a group's file says lands in a section that is called as the group.
        if group in content and group not in Parameters.model_fields:
            file = next((file for file in chosen if file.parent.name == group), configs / group)
            raise InputError("it names no section", file, 1, f"Its first line must be '{_GLOBAL}'.")
    check_parameters(content, _place(configs, chosen))
    return OmegaConf.to_yaml(OmegaConf.create({**content, "select": by_name(content["select"])}))


def _name_filters(composed: Any) -> None:
    """Give the filters of a list their names: both are allowed."""
    from omegaconf import OmegaConf

    if OmegaConf.is_list(composed.select.filters):
        selected = OmegaConf.to_container(composed.select, resolve=True)
        assert isinstance(selected, dict)
        composed.select = by_name({str(key): value for key, value in selected.items()})


def _override(composed: Any, override: str) -> None:
    """Set a value, also of a key that no group's file has, as the types catch misspelt ones; or remove it."""
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from omegaconf import OmegaConf

    (parsed,) = OverridesParser.create().parse_overrides([override])
    key = parsed.key_or_group
    if not parsed.is_delete():
        merge = not key.startswith("select.filters.")
        OmegaConf.update(composed, key, parsed.value(), merge=merge, force_add=True)
        return
    above, _, last = key.rpartition(".")
    container = OmegaConf.select(composed, above) if above else composed
    if container is not None and last in container:
        del container[last]


def group_files(configs: Path, overrides: Sequence[str]) -> list[Path]:
    """The files of all groups that these choices read, each after those of its group that it builds on."""
    content = read_yaml(configs / f"{ROOT}.yaml")[1]
    defaults = content.get("defaults", []) if isinstance(content, dict) else []
    named = dict(one.lstrip("+").split("=", 1) for one in overrides if "=" in one)
    chosen = {group: name for one in defaults if isinstance(one, dict) for group, name in one.items()}
    chosen |= {group: name for group, name in named.items() if group in chosen or (configs / group).is_dir()}
    return [file for group, name in chosen.items() if name for file in files_of_choice(configs, group, name)]


def files_of_choice(configs: Path, group: str, name: str, above: tuple[str, ...] = ()) -> list[Path]:
    """The file of a choice, after those of its group that it builds on. above: choices that build on it."""
    file = configs / group / f"{name}.yaml"
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


def _broken(error: yaml.YAMLError, configs: Path) -> InputError:
    """The file that is not YAML: the one that Hydra stumbled over, or the first that there is."""
    for file in sorted(configs.rglob("*.yaml")):
        try:
            read_yaml(file)
        except InputError as found:
            return found
    return not_yaml(error, configs)


def _check_names(override: str, groups: dict[str, list[str]]) -> None:
    """Refuse a group, section or choice that does not exist, with the one that was probably meant."""
    key, equals, value = override.lstrip("+~").partition("=")
    name = key.split(".")[0].split("@")[0]
    known = [*groups, *Parameters.model_fields]
    if equals and name not in known:
        raise InputError(
            f"{override}: there is no group or section '{name}'{did_you_mean(name, known)}",
            remedy=f"There are {', '.join(sorted(set(known)))}.",
        )
    # Some groups are called as a section: 'select=paranmt', but 'select.deciles=[]'.
    if override in _RENAMED:
        raise InputError(f"{override}: this choice was removed", remedy=f"Use {_RENAMED[override]}.")
    if equals and key in groups and value not in groups[key]:
        raise InputError(
            f"{override}: there is no such choice{did_you_mean(value, groups[key])}",
            remedy=f"There are {key}: {', '.join(groups[key])}.",
        )


def _quoted(override: str) -> str:
    """An override that Hydra's grammar can read: a value with other characters than it takes is quoted.

    A user types ``nmt.model=modely/cs-en`` and, as readily, a path with an accent, a comma or a parenthesis.
    Raises InputError: it has no ``=``.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    try:
        if not OverridesParser.create().parse_override(override).is_sweep_override():
            return override
    except HydraException:
        pass
    key, equals, value = override.partition("=")
    if not equals and not override.startswith("~"):
        raise InputError(f"'{override}' is neither GROUP=CHOICE nor KEY=VALUE")
    if not equals or value[:1] in "[{'\"":
        return override  # Hydra says what is wrong with it
    return f"{key}={value_text(value)}"


def value_text(value: Any) -> str:
    """Write a value as Hydra's grammar has it."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {value_text(one)}' for key, one in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(value_text, value))}]"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)
