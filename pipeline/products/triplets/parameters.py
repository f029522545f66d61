"""Section ``triplets`` of params.yaml: which encoder mines hard negatives, how many, and how hard."""

from typing import Annotated

from pydantic import Field

from paraforge.base.section import Section
from paraforge.base.text.paths import UserFile
from paraforge.corpus.scoring import general

NO_ENCODER = "none"


class TripletsParameters(Section):
    """Parameters of triplet mining; ``encoder: none`` mines nothing."""

    encoder: Annotated[str, UserFile(words=(NO_ENCODER, general.NAME))] = Field(
        NO_ENCODER,
        min_length=1,
        description="none, general (word vectors of the built-in scorer), a trained model, SIF, a vector "
        "file, or a sentence-transformers directory",
    )
    negatives: int = Field(1, ge=1, le=32, description="negatives for each anchor, from different clusters")
    margin: float = Field(
        0.05,
        ge=0,
        lt=1,
        description="the cosines of a negative and of its pair's reference with anchor and positive must be "
        "below (1 - margin) times the positive's",
    )
    same_lines: list[Annotated[str, Field(min_length=1)]] = Field(
        default_factory=list,
        description="patterns of source names, e.g. captions.*: rows with equal line numbers in matching "
        "sources are about the same image",
    )
