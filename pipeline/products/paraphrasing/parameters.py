"""Section ``paraphraser`` of params.yaml: a model that paraphrases, trained here, or a ready one, or none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from paraforge.base.parsing.parser import PARSERS
from paraforge.base.section import Section
from paraforge.base.text.paths import UserFile
from paraforge.corpus.selection.filters.decontamination import TestFileParameters
from paraforge.translation.training.parameters import (
    BESIDE_CHECKPOINTS,
    LANGUAGE,
    ArchitectureParameters,
    NmtParameters,
    NmtTrainingParameters,
    NmtValidationParameters,
    NmtVocabularyParameters,
)

NO_MODEL, TRAIN = "none", "train"
_MODEL = UserFile(words=(TRAIN, NO_MODEL), hub=True, neighbours=BESIDE_CHECKPOINTS)


class TemplateParameters(Section):
    """Syntactic templates: the top two levels of the output's parse (SCPN, Iyyer et al. 2018)."""

    parser: Annotated[str, UserFile(words=PARSERS)] | None = Field(
        None,
        min_length=1,
        description="link-grammar, stanza, or a file of sentences and trees, separated by tabs; null: none",
    )
    pairs: int = Field(200_000, ge=1, description="about how many pairs are parsed, chosen by hash")
    minimum: int = Field(20, ge=1, description="outputs that a template must have to be learnt")
    most: int = Field(200, ge=1, description="templates, the most frequent ones")
    parses: Literal["template", "full"] = Field(
        "template",
        description="what is in front of a source; full: the whole parse, which a second model, the parse "
        "generator, makes of a template (SCPN)",
    )

    @model_validator(mode="after")
    def _parsed(self) -> TemplateParameters:
        if self.parses == "full" and self.parser is None:
            raise ValueError("parses: full needs a parser")
        return self


class ParaphraserParameters(Section):
    """``model: train`` trains on the published corpus, both directions of a pair."""

    removed: ClassVar[Mapping[str, str]] = {
        "controls": "every control has three buckets, and 40% of the sources lack a tag"
    }

    model: Annotated[str, _MODEL] = Field(
        NO_MODEL,
        min_length=1,
        description="train, none, or a ready model: models/paraphraser of another project, or whatever "
        "nmt.model can be, from a language to itself",
    )
    language: str = Field("en", pattern=LANGUAGE, description="of both sides")
    templates: TemplateParameters = Field(default_factory=TemplateParameters)
    test_files: list[TestFileParameters] = Field(
        default_factory=list, description="no pair with one of their sentences is trained on"
    )
    vocabulary: NmtVocabularyParameters = Field(default_factory=NmtVocabularyParameters)
    architecture: ArchitectureParameters = Field(default_factory=ArchitectureParameters)
    training: NmtTrainingParameters = Field(default_factory=NmtTrainingParameters)
    validation: NmtValidationParameters = Field(default_factory=NmtValidationParameters)
    maximum_tokens: int = Field(
        128, ge=2, le=1024, description="pairs with more pieces on a side, tags included, are not trained on"
    )

    @model_validator(mode="after")
    def _trainable(self) -> ParaphraserParameters:
        self.of_training()
        return self

    @property
    def languages(self) -> tuple[str, str]:
        """Codes of both sides: fairseq wants two."""
        return self.language, f"{self.language}-paraphrase"

    def of_training(self) -> NmtParameters:
        """The same as section ``nmt`` would have it."""
        source, target = self.languages
        return NmtParameters(
            model=TRAIN,
            source_language=source,
            target_language=target,
            vocabulary=self.vocabulary,
            architecture=self.architecture,
            training=self.training,
            validation=self.validation,
            maximum_tokens=self.maximum_tokens,
        )
