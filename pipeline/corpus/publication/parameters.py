"""Section ``publish`` of params.yaml: how the corpus is cut into files, and what its card says."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

from paraforge.base.section import Section

Language = Annotated[str, Field(pattern=r"^[a-z]{2,3}(-[A-Za-z0-9]+)*$")]


class PublishParameters(Section):
    """Section ``publish``."""

    name: str = Field(
        "Paraforge corpus", min_length=1, max_length=200, description="title of the dataset card"
    )
    licence: str = Field(
        "other",
        pattern=r"^[a-z0-9][a-z0-9.+-]*$",
        description="the Hub's identifier, e.g. cc-by-4.0; or other",
    )
    licences: dict[str, str] = Field(
        default_factory=dict,
        description="licence of each source; SOURCE also covers SOURCE.FILE and SOURCE-PART",
    )
    languages: list[Language] = Field(
        default_factory=lambda: ["en", "cs"], min_length=1, description="of the text, English first"
    )
    tags: list[str] = Field(default_factory=lambda: ["paraphrase", "back-translation"])
    rows_per_file: int = Field(50_000, ge=1, description="approximate maximum of pairs in a published file")
    examples: int = Field(2, ge=0, le=100, description="pairs that the card shows of each score band")

    @field_validator("licences")
    @classmethod
    def _not_blank(cls, licences: dict[str, str]) -> dict[str, str]:
        blank = [source for source, text in licences.items() if not text.strip()]
        if blank:
            raise ValueError(f"no licence is given for {', '.join(blank)}")
        return licences
