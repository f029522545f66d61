"""Section ``ingest`` of params.yaml: what to read, from where, and how to clean it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Literal, Union

from pydantic import Field, model_validator

from paraforge.base.plugins import found_classes
from paraforge.base.section import Section
from paraforge.intake.bitext.source import FileSource, NamedSource


class Cleaning(Section):
    """What to repair and what to reject. Rejections are counted by reason."""

    malformed: Literal["error", "reject"] = Field(
        "error",
        description="rows that cannot be read (not UTF-8, NUL, ragged, not JSON): error stops, reject rejects"
        " the row",
    )
    max_characters: int = Field(2000, ge=1, description="longest side, in characters")
    max_words: int = Field(250, ge=1, description="longest side, in words separated by spaces")
    max_length_ratio: float | None = Field(
        4.0,
        gt=1,
        allow_inf_nan=False,
        description="largest ratio of the longer side to the shorter side, in characters, if the longer side "
        "has more than 20; a Chinese character counts as 3, a kana or Korean one as 2; null: no limit",
    )
    duplicates: bool = Field(True, description="reject pairs that equal an earlier row of any source")


class SampleSource(NamedSource):
    """The sample bitext in the package; each domain is a source ``NAME-DOMAIN``."""

    format: Literal["sample"]
    pairs: int = Field(20_000, ge=100, le=20_000)
    language: Literal["cs", "art"] = Field(
        "cs", description="cs: Czech; art: an invented language with a fifth of the pairs, as a second pivot"
    )

    def column_names(self) -> set[str]:
        """Return the names of the source's columns."""
        return {"source_text", "reference"}


if TYPE_CHECKING:
    Source = FileSource | SampleSource
else:
    # The choices are the classes in the modules of readers, which are found at run time.
    _READERS = found_classes("paraforge.intake.bitext.readers", FileSource)
    Source = Annotated[Union[(*_READERS, SampleSource)], Field(discriminator="format")]

TEXTS: dict[str, tuple[str, ...]] = {
    "bitext": ("source_text", "reference"),
    "references": ("reference",),
    "paraphrases": ("reference", "translation"),
}
"""The text columns of each kind."""


class IngestParameters(Section):
    """Section ``ingest``."""

    kind: Literal["bitext", "references", "paraphrases"] = Field(
        "bitext",
        description="bitext (source_text, reference); references alone, which nmt.forward first translates "
        "to source_text; or paraphrases: an existing corpus (reference, translation and perhaps score), "
        "which is not translated again",
    )
    sources: list[Source] = Field(min_length=1)
    cleaning: Cleaning = Field(default_factory=lambda: Cleaning())
    check_languages: bool = Field(
        True,
        description="refuse a bitext in which many rows are in other languages than nmt.source_language and "
        "nmt.target_language, or have their sides swapped; needs py3langid",
    )
    rows_per_shard: int = Field(
        50_000,
        ge=100,
        le=10_000_000,
        description="rows in a shard, the unit of work; a kill loses at most the shards in progress",
    )

    @model_validator(mode="after")
    def _consistent(self) -> IngestParameters:
        names = Counter(source.name for source in self.sources)
        problems = [f"source name {name!r} is used twice" for name, count in names.items() if count > 1]
        required = set(TEXTS[self.kind])
        optional = {"score"} if self.kind == "paraphrases" else set()
        for source in self.sources:
            has = source.column_names()
            if self.kind == "references" and isinstance(source, SampleSource):
                continue  # its references are used
            if not required <= has <= required | optional:
                allowed = " and perhaps ".join([", ".join(sorted(required)), *optional])
                problems.append(
                    f"source {source.name!r} has the columns {', '.join(sorted(has))}; "
                    f"kind {self.kind} has {allowed}"
                )
        if problems:
            raise ValueError("; ".join(problems))
        return self
