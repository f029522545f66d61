"""Section ``paraphraser`` of params.yaml: a paraphrase model, trained here or ready, or none."""

from __future__ import annotations

from typing import Annotated

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
_MODEL = UserFile(words=(TRAIN, NO_MODEL), hub=True, neighbors=BESIDE_CHECKPOINTS)


class TemplateParameters(Section):
    """Syntactic templates: the top two levels of the output's parse (SCPN, Iyyer et al. 2018)."""

    parser: Annotated[str, UserFile(words=PARSERS)] | None = Field(
        None,
        min_length=1,
        description="parser for templates: link-grammar, stanza, or a file with a sentence, a tab and a tree "
        "on each line; null: none",
    )
    pairs: int = Field(200_000, ge=1, description="parse about this many pairs, chosen by hash")
    minimum: int = Field(20, ge=1, description="fewest training outputs in which a template must occur")
    most: int = Field(200, ge=1, description="largest number of templates; the most frequent ones are kept")


class ParaphraserParameters(Section):
    """``model: train`` trains on the published corpus, both directions of a pair."""

    model: Annotated[str, _MODEL] = Field(
        NO_MODEL,
        min_length=1,
        description="train, none, or a pretrained model: another project's models/paraphraser, or anything "
        "that nmt.model accepts, from a language to itself",
    )
    language: str = Field("en", pattern=LANGUAGE, description="language of both sides")
    templates: TemplateParameters = Field(default_factory=TemplateParameters)
    test_files: list[TestFileParameters] = Field(
        default_factory=list,
        description="files of test sentences; pairs with one of them are not used for training",
    )
    vocabulary: NmtVocabularyParameters = Field(default_factory=NmtVocabularyParameters)
    architecture: ArchitectureParameters = Field(default_factory=ArchitectureParameters)
    training: NmtTrainingParameters = Field(default_factory=NmtTrainingParameters)
    validation: NmtValidationParameters = Field(default_factory=NmtValidationParameters)
    maximum_tokens: int = Field(
        128, ge=2, le=1024, description="leave out pairs with more pieces than this on a side, tags included"
    )

    @model_validator(mode="after")
    def _trainable(self) -> ParaphraserParameters:
        self.of_training()
        return self

    @property
    def languages(self) -> tuple[str, str]:
        """The codes of both sides; fairseq needs two."""
        return self.language, f"{self.language}-paraphrase"

    def of_training(self) -> NmtParameters:
        """Return the same parameters in the form of section ``nmt``."""
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
