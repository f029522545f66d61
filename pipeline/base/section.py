"""The base class of sections of params.yaml and other checked values."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Checked values: only known names, finite numbers, immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
