"""Section ``statistics`` of params.yaml: what to report about the corpus (ParaNMT Tables 1 and 3)."""

from typing import Annotated

from pydantic import Field

from paraforge.base.parsing.parser import PARSERS
from paraforge.base.section import Section
from paraforge.base.text.paths import FilePath, UserFile


class BackgroundParameters(Section):
    """The sentences for computing inverse document frequencies."""

    path: FilePath | None = Field(
        None, description="file of sentences, one per line; null: references of the corpus"
    )
    references: int = Field(1_000_000, ge=1, description="how many references of the corpus to draw")


class StatisticsParameters(Section):
    """Section ``statistics``."""

    sample: int = Field(100_000, ge=1, description="number of references from each source for Table 1")
    seed: int = Field(1, description="random seed for the samples")
    background: BackgroundParameters = Field(default_factory=BackgroundParameters)
    parser: Annotated[str, UserFile(words=PARSERS)] | None = Field(
        None,
        min_length=1,
        description="parser for the sample: link-grammar, stanza, or a file with a sentence, a tab and a tree"
        " on each line; null: none",
    )
