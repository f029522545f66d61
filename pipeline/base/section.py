"""What every section of params.yaml, and every other set of checked values, has in common."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Values that are checked, all known by name, finite, and never changed."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
