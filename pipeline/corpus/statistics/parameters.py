"""Section ``statistics`` of params.yaml: what is reported of the corpus (ParaNMT Tables 1 and 3)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

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


class ParseFile(Section):
    """Bracketed parses of references."""

    path: FilePath = Field(min_length=1, description="one tree a line; environment variables are filled in")
    source: str | None = Field(
        None,
        description="source whose lines the file is parallel to; null if lines are source, line number, tree",
    )


class StatisticsParameters(Section):
    """Section ``statistics``."""

    sample: int = Field(100_000, ge=1, description="references of each source that Table 1 is computed from")
    seed: int = Field(1, description="of the samples")
    background: BackgroundParameters = Field(default_factory=BackgroundParameters)
    parses: list[ParseFile] = Field(default_factory=list, description="files of parses")
    parser: Annotated[str, UserFile(words=PARSERS)] | None = Field(
        None,
        min_length=1,
        description="what parses the sample where no file does: link-grammar, stanza, or a file of sentences "
        "and trees, separated by tabs; null for none",
    )


def located(name: str) -> Path:
    """A path with environment variables and ``~`` filled in."""
    return Path(expand(name))
