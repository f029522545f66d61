"""All of params.yaml as one typed object."""

from __future__ import annotations

from pydantic import Field, model_validator

from paraforge.base.section import Section
from paraforge.base.shards.resources import Resources
from paraforge.corpus.publication.parameters import NOT_STATED, PublishParameters
from paraforge.corpus.scoring.general import is_english
from paraforge.corpus.scoring.parameters import ScoreParameters
from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.corpus.statistics.parameters import StatisticsParameters
from paraforge.embeddings.trainer.parameters import EmbeddingsParameters, ParagramParameters
from paraforge.embeddings.unrolling.parameters import DecodersStageParameters
from paraforge.intake.bitext.parameters import IngestParameters
from paraforge.interface.report.parameters import ReportParameters
from paraforge.products.lexicon.parameters import LexiconParameters
from paraforge.products.paraphrasing.parameters import ParaphraserParameters
from paraforge.products.triplets.parameters import TripletsParameters
from paraforge.translation.stage.parameters import TranslateParameters
from paraforge.translation.training.parameters import NmtParameters


class Parameters(Section):
    """One section a stage, named as the stage, and ``resources``, which no result depends on."""

    ingest: IngestParameters
    nmt: NmtParameters
    translate: TranslateParameters
    paragram: ParagramParameters
    score: ScoreParameters
    select: SelectParameters
    publish: PublishParameters
    lexicon: LexiconParameters = Field(default_factory=LexiconParameters)
    embeddings: EmbeddingsParameters = Field(default_factory=EmbeddingsParameters)
    paraphraser: ParaphraserParameters = Field(default_factory=ParaphraserParameters)
    triplets: TripletsParameters = Field(default_factory=TripletsParameters)
    decoders: DecodersStageParameters = Field(default_factory=DecodersStageParameters)
    statistics: StatisticsParameters = Field(default_factory=StatisticsParameters)
    report: ReportParameters = Field(default_factory=ReportParameters)
    resources: Resources = Field(default_factory=Resources)

    @property
    def licences(self) -> dict[str, str]:
        """``publish.licences`` and each source's own, which its name there replaces. A source without either
        has none, whatever the source is called that does."""
        own = {source.name: source.licence for source in self.ingest.sources}
        if not any(own.values()):
            return self.publish.licences
        named = self.publish.licences_of(own)
        stated = {name: text or named.get(name, NOT_STATED) for name, text in own.items()}
        return {**stated, **self.publish.licences}

    @model_validator(mode="after")
    def _scorer_of_the_language(self) -> Parameters:
        languages = {"nmt.target_language": getattr(self.nmt, "target_language", None)}
        for source in getattr(self.ingest, "sources", []):
            if source.format == "tmx":
                name = f"the language of the references of source {source.name!r}"
                languages[name] = source.columns.get("reference")
        for name, language in languages.items():
            if self.paragram.uses_built_in and language and not is_english(language):
                raise ValueError(
                    f"paragram.built_in: the built-in scorer is English, {name} is {language!r}: choose "
                    "paragram=corpus, or give paragram.vectors or paragram.model"
                )
        return self
