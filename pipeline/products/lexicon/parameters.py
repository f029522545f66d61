"""Parameters of the paraphrase lexicon."""

from typing import Literal

from pydantic import Field

from paraforge.base.section import Section
from paraforge.base.text.paths import FilePath

ClassKind = Literal["words", "lemmas"]


class LexiconFilters(Section):
    """Which pairs to count."""

    minimum_score: float | None = Field(
        0.35, ge=-1, le=1, description="lowest paraphrase score of the pairs to count; null: count all"
    )
    maximum_tokens: int = Field(30, ge=1, le=4096, description="most tokens on either side")


class LexiconParameters(Section):
    """Section ``lexicon`` of params.yaml (ParaNMT appendix A.1)."""

    filters: LexiconFilters = Field(default_factory=LexiconFilters)
    minimum_pairs: int = Field(10, ge=1, description="fewest pairs behind an entry")
    pseudo_count: float = Field(
        1.0, gt=0, description="strength of the shrinkage of the ordinary PMI, in sentences"
    )
    smooth_all: bool = Field(False, description="also smooth the ordinary PMI of words that share a sentence")
    classes: ClassKind = Field("words", description="what to count: words as they are, or classes of words")
    language: str = Field("en", pattern=r"^[a-z]{2,3}$", description="language of the lemmas (ISO 639-1)")
    word_lists: list[FilePath] = Field(
        default_factory=list, description="word similarity lists to evaluate on, e.g. SimLex-999.txt"
    )
    reference_lexicons: list[FilePath] = Field(
        default_factory=list, description="PPDB files or lists of word pairs to evaluate next to the lexicon"
    )
