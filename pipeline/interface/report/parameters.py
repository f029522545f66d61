"""Section ``report`` of params.yaml: what the HTML report shows, and how much of it."""

from pydantic import Field

from paraforge.base.section import Section


class ReportParameters(Section):
    """Section ``report``."""

    title: str | None = Field(None, max_length=200, description="heading; null for the corpus' name")
    examples: int = Field(
        4, ge=0, le=100, description="pairs shown a score band, on average: more of the larger bands"
    )
    entries: int = Field(14, ge=0, le=200, description="best and worst lexicon entries shown")
    sources: int = Field(8, ge=1, le=50, description="sources shown separately; smaller ones are combined")
    reasons: int = Field(
        10, ge=1, le=50, description="reasons of rejection shown separately in the flow picture"
    )
    seed: int = Field(1, ge=0, description="random seed for the examples")
