"""Section ``score`` of params.yaml: optional scores, in addition to those that every pair gets."""

from pydantic import Field, field_validator

from paraforge.base.section import Section
from paraforge.base.text.paths import FilePath


class ScoreParameters(Section):
    """Section ``score``: scores in addition to lengths, paraphrase score, overlaps, copy rate and the
    like."""

    identify_language: bool | None = Field(
        None,
        description="write the columns reference_language and translation_language; null: only if py3langid "
        "is installed",
    )
    languages: list[str] | None = Field(
        None,
        min_length=2,
        description="codes of the languages to tell apart, e.g. [en, cs, de]; null: all languages that the "
        "identifier knows",
    )
    sentence_transformer: FilePath | None = Field(
        None,
        description="directory of a sentence-transformers model for the column cosine; null: no such column",
    )
    cross_encoder: FilePath | None = Field(
        None,
        description="directory of a sentence-transformers cross-encoder (similarity or entailment) for the "
        "column cross_encoder; null: no such column",
    )

    @field_validator("languages")
    @classmethod
    def _are_several(cls, languages: list[str] | None) -> list[str] | None:
        if languages and len({*languages}) < len(languages):
            raise ValueError("a language is listed twice")
        return languages
