"""Parameters of the paraphrase lexicon."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from paraforge.base.section import Section
from paraforge.base.text.paths import FilePath, expand

Smoothing = Literal["shrinkage", "pseudo_count", "independence", "none"]
ClassKind = Literal["words", "lemmas", "words_and_tags", "lemmas_and_tags"]


class LexiconFilters(Section):
    """Which pairs are counted."""

    minimum_score: float | None = Field(
        0.35, ge=-1, le=1, description="least paraphrase score of a pair that is counted; null counts all"
    )
    maximum_tokens: int = Field(30, ge=1, le=4096, description="most tokens of either side")
    ranks: int = Field(1, ge=1, description="hypotheses of an n-best list that are counted, the best first")


class LexiconParameters(Section):
    """Section ``lexicon`` of params.yaml (ParaNMT appendix A.1)."""

    filters: LexiconFilters = Field(default_factory=LexiconFilters)
    minimum_pairs: int = Field(10, ge=1, description="least number of pairs of an entry")
    smoothing: Smoothing = Field(
        "shrinkage", description="ordinary PMI of words that never share a sentence (docs/lexicon.md)"
    )
    pseudo_count: float = Field(1.0, gt=0, description="strength of the smoothing, in sentences")
    smooth_all: bool = Field(
        False, description="smooth the ordinary PMI of words that do share a sentence as well"
    )
    maximum_paraphrases: int | None = Field(None, ge=1, description="entries kept for a word; null keeps all")
    classes: ClassKind = Field("words", description="what is counted: words as they are, or classes of them")
    language: str = Field("en", pattern=r"^[a-z]{2,3}$", description="language of the lemmas (ISO 639-1)")
    spacy_model: str = Field("en_core_web_sm", description="spaCy pipeline that tags parts of speech")
    word_lists: list[FilePath] = Field(
        default_factory=list, description="word similarity lists to evaluate on, e.g. SimLex-999.txt"
    )
    reference_lexicons: list[FilePath] = Field(
        default_factory=list, description="PPDB files or pair lists evaluated beside the lexicon"
    )

    def word_list_paths(self) -> list[Path]:
        """``word_lists`` with environment variables and ``~`` filled in."""
        return [Path(expand(name)) for name in self.word_lists]

    def reference_lexicon_paths(self) -> list[Path]:
        """``reference_lexicons`` with environment variables and ``~`` filled in."""
        return [Path(expand(name)) for name in self.reference_lexicons]
