"""The base class of sections of params.yaml and other checked values."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, model_validator


class Section(BaseModel):
    """Checked values: only known names, finite numbers, immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    removed: ClassVar[Mapping[str, str]] = {}
    """Parameters of version 0.1 that no longer exist, and what to do instead."""

    @model_validator(mode="before")
    @classmethod
    def _name_removed(cls, values: Any) -> Any:
        found = [name for name in cls.removed if isinstance(values, dict) and name in values]
        if found:
            raise ValueError("; ".join(f"'{name}' was removed: {cls.removed[name]}" for name in found))
        return values
