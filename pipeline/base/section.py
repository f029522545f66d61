"""The base class of sections of params.yaml and other checked values, and their problems in words."""

from pydantic import BaseModel, ConfigDict, ValidationError


class Section(BaseModel):
    """Checked values: only known names, finite numbers, immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def problems_of(error: ValidationError) -> list[str]:
    """Return what is wrong with each value, as its check says it."""
    return [str(one["msg"]).removeprefix("Value error, ") for one in error.errors()]
