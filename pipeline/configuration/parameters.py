"""All of params.yaml as one typed object."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from pipeline.configuration.embeddings import EmbeddingsParameters
from pipeline.configuration.ingest import IngestParameters
from pipeline.configuration.lexicon import LexiconParameters
from pipeline.configuration.nmt import NmtParameters
from pipeline.configuration.paragram import ParagramParameters
from pipeline.configuration.publish import PublishParameters
from pipeline.configuration.report import ReportParameters
from pipeline.configuration.resources import Resources
from pipeline.configuration.score import ScoreParameters
from pipeline.configuration.select import SelectParameters
from pipeline.configuration.statistics import StatisticsParameters
from pipeline.configuration.translate import TranslateParameters


class Parameters(BaseModel):
    """One section a stage, named as the stage, and ``resources``, which no result depends on."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ingest: IngestParameters
    nmt: NmtParameters
    translate: TranslateParameters
    paragram: ParagramParameters
    score: ScoreParameters
    select: SelectParameters
    publish: PublishParameters
    lexicon: LexiconParameters = Field(default_factory=LexiconParameters)
    embeddings: EmbeddingsParameters = Field(default_factory=EmbeddingsParameters)
    statistics: StatisticsParameters = Field(default_factory=StatisticsParameters)
    report: ReportParameters = Field(default_factory=ReportParameters)
    resources: Resources = Field(default_factory=Resources)
