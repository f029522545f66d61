"""The base class of sections of params.yaml and other checked values, and their problems in words."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator


class Section(BaseModel):
    """Checked values: only known names, finite numbers, immutable. ``true`` is not the number 1, and an empty
    text is not a path."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _as_meant(cls, content: Any) -> Any:
        if not isinstance(content, dict):
            return content
        content = dict(content)
        for name in content.keys() & cls.model_fields.keys():
            kinds = list(_kinds(cls.model_fields[name].annotation))
            if content[name] == "" and Path in kinds:
                raise ValueError(f"{name}: the path is empty")
            if (int in kinds or float in kinds) and bool not in kinds and Any not in kinds:
                content[name] = _without_flags(content[name])
        return content


def problems_of(error: ValidationError) -> list[str]:
    """Return what is wrong with each value, as its check says it."""
    return [str(problem["msg"]).removeprefix("Value error, ") for problem in error.errors()]


def _kinds(annotation: Any) -> Iterator[Any]:
    """Yield a type and those that it is made of."""
    yield annotation
    for part in get_args(annotation):
        yield from _kinds(part)


def _without_flags(value: Any) -> Any:
    """Return a value with words for ``true`` and ``false``, which pydantic would take for 1 and 0."""
    if isinstance(value, dict):
        return {key: _without_flags(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_flags(item) for item in value]
    return str(value).lower() if isinstance(value, bool) else value
