"""Section ``report`` of params.yaml: what the HTML report shows."""

from pydantic import Field

from paraforge.base.section import Section


class ReportParameters(Section):
    """Section ``report``."""

    title: str | None = Field(None, max_length=200, description="heading; null for the corpus' name")
    entries: int = Field(14, ge=0, le=200, description="number of best and of worst lexicon entries to show")
