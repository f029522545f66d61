"""Section ``report`` of params.yaml: what the HTML report shows."""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from paraforge.base.section import Section

_CARD = "the report shows the corpus' card; publish.examples sets its examples"


class ReportParameters(Section):
    """Section ``report``."""

    title: str | None = Field(None, max_length=200, description="heading; null for the corpus' name")
    entries: int = Field(14, ge=0, le=200, description="best and worst lexicon entries shown")

    removed: ClassVar[Mapping[str, str]] = dict.fromkeys(("examples", "sources", "reasons", "seed"), _CARD)
