"""Parameters that are given by options: ``--set KEY=VALUE``, one of many, and what is said of wrong ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pydantic import BaseModel

    Parameters = TypeVar("Parameters", bound=BaseModel)


def checked(parameters: type[Parameters], content: dict[str, Any]) -> Parameters:
    """Parameters of this class. Raises ConfigurationError: values are not allowed; every one is named."""
    from pydantic import ValidationError

    from paraforge.errors import ConfigurationError

    try:
        return parameters.model_validate(content)
    except ValidationError as error:
        problems = [
            f"{'.'.join(str(part) for part in problem['loc']) or 'model'}: {problem['msg']}"
            for problem in error.errors()
        ]
        raise ConfigurationError(problems) from error


def put_setting(content: dict[str, Any], setting: str) -> None:
    """Set `a.b.0.c=value`; of several parts of an encoder, `encoder.dimension` sets that of each."""
    import yaml

    from paraforge.errors import ConfigurationError

    key, equals, text = setting.partition("=")
    if not equals or not key:
        raise ConfigurationError([f"--set {setting}: KEY=VALUE is expected, e.g. training.epochs=3"])
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigurationError([f"--set {setting}: {str(error).splitlines()[0]}"]) from error
    *path, last = key.split(".")
    targets: list[Any] = [content]
    for name in path:
        targets = [_step(target, name, setting) for target in targets]
    for target in targets:
        parts = target.get("parts") if isinstance(target, dict) else None
        if parts and last not in ("kind", "parts"):
            for part in parts:
                part[last] = value
        elif isinstance(target, dict):
            target[last] = value
        else:
            raise ConfigurationError([f"--set {setting}: there is nothing to set"])


def _step(target: Any, name: str, setting: str) -> Any:
    from paraforge.errors import ConfigurationError

    if isinstance(target, list) and name.isdecimal() and int(name) < len(target):
        return target[int(name)]
    if isinstance(target, dict):
        # An encoder that is not named is the default one.
        return target.setdefault(name, {"kind": "average"} if name == "encoder" else {})
    raise ConfigurationError([f"--set {setting}: there is no {name}"])
