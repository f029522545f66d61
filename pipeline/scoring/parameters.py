"""Section ``score`` of params.yaml: which scores a pair gets beside those that it always gets."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from paraforge.text.paths import FilePath, expand


class ScoreParameters(BaseModel):
    """Section ``score``: what comes beside lengths, paraphrase score, overlaps, copy rate and the like."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    identify_language: bool | None = Field(
        None,
        description="columns reference_language and translation_language; null: if py3langid is installed",
    )
    languages: list[str] | None = Field(
        None,
        min_length=2,
        description="codes of the languages to tell apart, e.g. [en, cs, de]; null: all that the model knows",
    )
    sentence_transformer: FilePath | None = Field(
        None,
        min_length=1,
        description="directory of a sentence-transformers model for the column cosine; null: no such column",
    )

    def sentence_transformer_directory(self) -> Path | None:
        """The model's directory with environment variables and ``~`` filled in."""
        if self.sentence_transformer is None:
            return None
        return Path(expand(self.sentence_transformer))
