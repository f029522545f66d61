"""Section ``triplets`` of params.yaml: which encoder mines hard negatives, how many, how hard."""

from typing import Annotated, Literal

from pydantic import Field

from paraforge.base.section import Section
from paraforge.base.text.paths import UserFile
from paraforge.corpus.scoring import general

NO_ENCODER = "none"


class TripletsParameters(Section):
    """``encoder: none`` mines nothing."""

    encoder: Annotated[str, UserFile(words=(NO_ENCODER, general.NAME))] = Field(
        NO_ENCODER,
        min_length=1,
        description="none, general (word vectors of the built-in scorer), a trained model, SIF, a vector "
        "file or a directory of sentence-transformers",
    )
    negatives: int = Field(1, ge=1, le=64, description="of each anchor, from different clusters")
    margin: float = Field(
        0.05,
        ge=0,
        lt=1,
        description="cosines of a negative and of its pair's reference with anchor and positive are below "
        "(1 - margin) times the positive's",
    )
    strategy: Literal["hardest", "random"] = Field(
        "hardest", description="of the allowed negatives the most similar ones, or any"
    )
    candidates: int = Field(
        8192, ge=1, le=1 << 18, description="texts near an anchor that are looked at; of fewer all are"
    )
    contradictions: bool = Field(
        False,
        description="the last negative is the positive with a changed meaning, made by rule, where a rule "
        "applies (English)",
    )
    same_lines: list[Annotated[str, Field(min_length=1)]] = Field(
        default_factory=list,
        description="patterns of source names, e.g. captions.*: equal line numbers in the sources of a "
        "pattern are about the same image",
    )
    seed: int = Field(1, ge=0, lt=1 << 63, description="of cells and of random negatives")
