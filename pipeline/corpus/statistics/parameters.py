"""Section ``statistics`` of params.yaml: what is reported of the corpus (ParaNMT Tables 1 and 3)."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from paraforge.base.parsing.parser import PARSERS
from paraforge.base.section import Section
from paraforge.base.text.paths import FilePath, UserFile, expand


class BackgroundParameters(Section):
    """The sentences that inverse document frequencies are computed from."""

    path: FilePath | None = Field(
        None, description="sentences, or words and counts, one per line; null for the corpus' references"
    )
    format: Literal["sentences", "frequencies"] = Field("sentences", description="what a line of the file is")
    references: int | None = Field(
        1_000_000, ge=1, description="references of the corpus that are taken, drawn at random; null for all"
    )
    counted_sentences: int | None = Field(
        None, ge=1, description="sentences that frequencies are of; null if they count running words"
    )


class StatisticsParameters(Section):
    """Section ``statistics``."""

    sample: int = Field(100_000, ge=1, description="references of each source that Table 1 is computed from")
    seed: int = Field(1, description="of the samples")
    background: BackgroundParameters = Field(default_factory=BackgroundParameters)
    parser: Annotated[str, UserFile(words=PARSERS)] | None = Field(
        None,
        min_length=1,
        description="what parses the sample: link-grammar, stanza, or a file of sentences and trees, "
        "separated by tabs; null for none",
    )

    @model_validator(mode="before")
    @classmethod
    def _without_files_of_parses(cls, content: Any) -> Any:
        """Version 0.1.0 wrote an empty list ``parses``."""
        if isinstance(content, dict) and content.get("parses") == []:
            return {key: value for key, value in content.items() if key != "parses"}
        return content


def located(name: str) -> Path:
    """A path with environment variables and ``~`` filled in."""
    return Path(expand(name))
