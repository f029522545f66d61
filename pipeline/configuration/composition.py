"""Composing params.yaml from Hydra's groups, as ``dvc exp run -S`` does, and checking what comes out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from paraforge.configuration import check_parameters
from paraforge.errors import InputError

# Not "config": fairseq registers a schema of that name with Hydra, process-wide, when it is imported.
ROOT = "paraforge"
# Of the behaviours that Hydra offers the oldest: fairseq refuses to be imported after a newer one was chosen.
_HYDRA_BEHAVIOUR = "1.1"


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
        InputError: a group, choice or key does not exist.
        ConfigurationError: a value is not allowed; all of them are named.
    """
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import InterpolationKeyError, OmegaConfBaseException

    if not (configs / f"{ROOT}.yaml").is_file():
        raise InputError(
            "no such file", configs / f"{ROOT}.yaml", remedy="Name the directory with --configs."
        )
    groups = choices(configs)
    try:
        with initialize_config_dir(str(configs.resolve()), version_base=_HYDRA_BEHAVIOUR):
            composed = hydra_compose(ROOT, overrides=[_forced(_quoted(one), groups) for one in overrides])
        container = OmegaConf.to_container(composed, resolve=True)
    except InterpolationKeyError as error:
        raise InputError(
            str(error).splitlines()[0],
            remedy="${...} stands for another key; an environment variable is written $NAME, without braces.",
        ) from error
    except (HydraException, OmegaConfBaseException) as error:
        available = "; ".join(f"{group}: {', '.join(names)}" for group, names in groups.items())
        raise InputError(f"{str(error).splitlines()[0]}", remedy=f"There are {available}.") from error
    assert isinstance(container, dict)
    check_parameters({str(key): value for key, value in container.items()}, where=str(configs))
    return OmegaConf.to_yaml(composed, resolve=True)


def _quoted(override: str) -> str:
    """An override that Hydra's grammar can read: a value with other characters than it takes is quoted.

    A user types ``nmt.model=modely/cs-en`` and, as readily, a path with an accent, a comma or a parenthesis.

    Raises:
        InputError: it has no ``=``.
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
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"{key}='{escaped}'"


def _forced(override: str, groups: dict[str, list[str]]) -> str:
    """An override of a value, also of one that no group file mentions; the types catch misspelt keys."""
    key = override.partition("=")[0]
    return override if key in groups or override.startswith(("+", "~")) else f"++{override}"
