"""Section ``publish`` of params.yaml: how to cut the corpus into files, and what its card says."""

import re
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field, field_validator

from paraforge.base.section import Section

Language = Annotated[str, Field(pattern=r"^[a-z]{2,3}(-[A-Za-z0-9]+)*$")]

# Shown for a source without a license.
NOT_STATED = "not stated"
# These names are reserved: the rest of the corpus is for training, in files shard-*, and `datasets` reads
# "all" as every split.
_TAKEN = ("train", "shard", "rejected", "all")


class PublishParameters(Section):
    """Section ``publish``."""

    name: str = Field(
        "Paraforge corpus",
        pattern=r"\S",
        max_length=200,
        description="title of the dataset card, summary and report",
    )
    license: str = Field(
        "other",
        pattern=r"^[a-z0-9][a-z0-9.+-]*$",
        description="the Hub's identifier of the license, e.g. cc-by-4.0 or other",
    )
    licenses: dict[str, str] = Field(
        default_factory=dict,
        description="license of each source, instead of its own `license`; SOURCE also covers SOURCE.FILE and"
        " SOURCE-PART",
    )
    languages: list[Language] | None = Field(
        None,
        min_length=1,
        description="language codes for the card: first the references', then the foreign side's; null: those"
        " of the translation model",
    )
    tags: list[Annotated[str, Field(pattern=r"\S")]] = Field(
        default_factory=lambda: ["paraphrase", "back-translation"], description="tags of the dataset card"
    )
    group_score: float | None = Field(
        0.8,
        ge=0,
        le=1,
        description="pairs that share a translation belong to one `group` if their paraphrase score is at "
        "least this; pairs that share a reference always do. null: no groups",
    )
    splits: dict[str, Annotated[int, Field(ge=1)]] = Field(
        default_factory=dict,
        description="pairs held out of training by name, e.g. {validation: 5000, test: 5000}",
    )
    seed: int = Field(1, ge=0, description="random seed of the splits")
    pairs: Literal["reference", "all"] = Field(
        "reference",
        description="all: with several pivots, also pair the translations of one reference from every two "
        "languages",
    )
    rows_per_file: int = Field(50_000, ge=1, description="largest number of pairs in a published file")
    examples: int = Field(2, ge=0, le=100, description="pairs from each score band to show on the card")

    def licenses_of(self, sources: Iterable[str]) -> dict[str, str]:
        """Return the license of each source that has one; ``news.2014`` has that of ``news`` unless it has
        its own."""
        licenses = {source: self._license_of(source) for source in sorted(sources)}
        return {source: license for source, license in licenses.items() if license}

    def _license_of(self, source: str) -> str:
        """Return a source's license, empty if it has none. For ``A/B``, whose sides are from two sources, it
        names both."""
        if "/" in source:
            both = [self._license_of(name) for name in source.split("/")]
            return " and ".join(dict.fromkeys(both)) if all(both) else ""
        named = [name for name in self.licenses if f"{source}.".startswith((f"{name}.", f"{name}-"))]
        return self.licenses[max(named, key=len)] if named else ""

    @field_validator("licenses")
    @classmethod
    def _not_blank(cls, licenses: dict[str, str]) -> dict[str, str]:
        blank = [source for source, text in licenses.items() if not text.strip()]
        if blank:
            raise ValueError(f"no license is given for {', '.join(blank)}")
        return licenses

    @field_validator("splits")
    @classmethod
    def _split_names(cls, splits: dict[str, int]) -> dict[str, int]:
        wrong = [name for name in splits if not re.fullmatch(r"[a-z][a-z0-9_]{0,29}", name) or name in _TAKEN]
        if wrong:
            raise ValueError(
                f"{', '.join(map(repr, wrong))}: a split's name has lowercase letters, digits and "
                f"underscores, and cannot be {', '.join(_TAKEN)}"
            )
        return splits
