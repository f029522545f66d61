"""All of params.yaml as one typed object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, ValidationError, model_validator

from paraforge.base.section import Section, problems_of
from paraforge.base.shards.resources import Resources
from paraforge.corpus.publication.parameters import NOT_STATED, PublishParameters
from paraforge.corpus.scoring.general import is_english
from paraforge.corpus.scoring.parameters import ScoreParameters
from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.corpus.statistics.parameters import StatisticsParameters
from paraforge.embeddings.trainer.parameters import EmbeddingsParameters, ParagramParameters
from paraforge.intake.bitext.parameters import IngestParameters
from paraforge.products.lexicon.parameters import LexiconParameters
from paraforge.products.paraphrasing.parameters import ParaphraserParameters
from paraforge.products.triplets.parameters import TripletsParameters
from paraforge.translation.engines import is_model_free
from paraforge.translation.stage.parameters import Pivot, TranslateParameters
from paraforge.translation.training.parameters import LANGUAGE, NmtParameters

STAGE_OUTPUTS: Final = (
    *(
        f"data/{name}"
        for name in ("ingested", "translated", "scored", "selected", "corpus", "rejected", "held_out",
                     "lexicon", "triplets", "statistics")
    ),
    *(f"models/{name}" for name in ("nmt", "paragram", "embeddings", "paraphraser")),
)  # fmt: skip
"""The directories that DVC removes before the stage that makes them runs."""


class ReportParameters(Section):
    """Section ``report``."""

    title: str | None = Field(None, max_length=200, description="heading; null for the corpus' name")
    entries: int = Field(14, ge=0, le=200, description="number of best and of worst lexicon entries to show")


class Parameters(Section):
    """One section per stage, with its name; ``pivots``; and ``resources``, on which no result depends."""

    ingest: IngestParameters
    nmt: NmtParameters
    translate: TranslateParameters
    pivots: dict[Annotated[str, Field(pattern=LANGUAGE)], Pivot] = Field(
        default_factory=dict,
        description="further bitexts by language; each reference gets a translation from every language in "
        "which it has a sentence",
    )
    paragram: ParagramParameters
    score: ScoreParameters
    select: SelectParameters
    publish: PublishParameters
    lexicon: LexiconParameters = Field(default_factory=LexiconParameters)
    embeddings: EmbeddingsParameters = Field(default_factory=EmbeddingsParameters)
    paraphraser: ParaphraserParameters = Field(default_factory=ParaphraserParameters)
    triplets: TripletsParameters = Field(default_factory=TripletsParameters)
    statistics: StatisticsParameters = Field(default_factory=StatisticsParameters)
    report: ReportParameters = Field(default_factory=ReportParameters)
    resources: Resources = Field(default_factory=Resources)

    @property
    def licenses(self) -> dict[str, str]:
        """Return ``publish.licenses`` and the sources' own licenses, which entries there override. A source
        without either has none."""
        own = {source.name: source.license for bitext in self._bitexts() for source in bitext.sources}
        if not any(own.values()):
            return self.publish.licenses
        named = self.publish.licenses_of(own)
        stated = {name: text or named.get(name, NOT_STATED) for name, text in own.items()}
        return {**stated, **self.publish.licenses}

    @model_validator(mode="after")
    def _kept_directories(self) -> Parameters:
        kept = {"work": self.resources.work, "translation_memory": self.resources.memory_directory()}
        for key, path in kept.items():
            for output in STAGE_OUTPUTS:
                if path.resolve().is_relative_to(Path(output).resolve()):
                    raise ValueError(
                        f"resources.{key}: 'dvc repro' removes {output} before that stage runs; use another "
                        "directory"
                    )
        return self

    @model_validator(mode="after")
    def _scorer_of_the_language(self) -> Parameters:
        languages = {"nmt.target_language": getattr(self.nmt, "target_language", None)}
        for source in [source for bitext in self._bitexts() for source in getattr(bitext, "sources", [])]:
            if source.format == "tmx":
                name = f"the language of the references of source {source.name!r}"
                languages[name] = source.columns.get("reference")
        for name, language in languages.items():
            if self.paragram.uses_built_in and language and not is_english(language):
                raise ValueError(
                    f"paragram.built_in: the built-in scorer is English, but {name} is {language!r}: "
                    "choose paragram=corpus, or set paragram.vectors or paragram.model"
                )
        return self

    @model_validator(mode="after")
    def _pivots(self) -> Parameters:
        if not self.pivots:
            return self
        language = self.nmt.source_language
        if language in self.pivots:
            raise ValueError(
                f"pivots.{language}: nmt.source_language is also {language!r}; use another language"
            )
        names = Counter(source.name for bitext in self._bitexts() for source in bitext.sources)
        twice = [name for name, count in names.items() if count > 1]
        if twice:
            raise ValueError(
                f"source name {twice[0]!r} is used twice; names must be unique across ingest and pivots"
            )
        sections = [self.translate, *(pivot.translate for pivot in self.pivots.values())]
        if any(section is not None and section.maximum_sentences is not None for section in sections):
            raise ValueError(
                "translate.maximum_sentences: not possible with pivots, because each would translate "
                "different references"
            )
        kind, nmt = self.ingest.kind, self.nmt
        if kind == "paraphrases":
            raise ValueError("ingest.kind: must be bitext or references if there are pivots")
        is_of_one_language = nmt.model not in ("train", "none") or (nmt.bitext or nmt.forward) is not None
        for name, pivot in self.pivots.items():
            key = f"pivots.{name}."
            if pivot.ingest.kind != kind:
                raise ValueError(f"{key}ingest.kind: must be {kind}")
            if pivot.nmt is None and is_of_one_language:
                raise ValueError(
                    f"{key}nmt: missing: section nmt has a model or bitext only for {language!r}"
                )
            if pivot.nmt is not None and pivot.nmt.target_language != self.nmt.target_language:
                raise ValueError(f"{key}nmt.target_language: must be {self.nmt.target_language!r}")
        return self

    @model_validator(mode="after")
    def _round_trips(self) -> Parameters:
        for _, place, parameters in self.by_pivot():
            prefix = "".join(f"{part}." for part in place.parts)
            nmt, translate = parameters.nmt, parameters.translate
            if parameters.ingest.kind != "references":
                for name, setting in (("nmt", nmt.forward), ("translate", translate.forward)):
                    if setting:
                        raise ValueError(f"{prefix}{name}.forward: only for ingest.kind references")
                continue
            try:
                forward = translate.forward_parameters()
            except ValidationError as error:
                first, message = error.errors()[0], problems_of(error)[0]
                key = ".".join(map(str, ["translate.forward", *first["loc"]]))
                if first["type"] == "extra_forbidden":
                    message = "there is no such parameter"
                raise ValueError(f"{prefix}{key}: {message}") from error
            if forward.nbest != 1 or forward.forward:
                raise ValueError(f"{prefix}translate.forward: nbest must be 1, and forward cannot be in it")
            if "maximum_sentences" in translate.forward:
                raise ValueError(
                    f"{prefix}translate.forward.maximum_sentences: set translate.maximum_sentences instead"
                )
            if nmt.forward is None and not is_model_free(forward.engine):
                raise ValueError(
                    f"{prefix}nmt.forward: missing: the engine {forward.engine} needs a model from "
                    f"{nmt.target_language!r} to {nmt.source_language!r}. Set it to such a model, or to train"
                )
            if nmt.bitext is None and "train" in (nmt.model, nmt.forward):
                raise ValueError(
                    f"{prefix}nmt.bitext: missing: a model cannot be trained on references alone. Set "
                    "a bitext there, or pretrained models in nmt.model and nmt.forward"
                )
        return self

    def _bitexts(self) -> list[IngestParameters]:
        return [self.ingest, *(pivot.ingest for pivot in self.pivots.values())]

    def by_pivot(self) -> Iterator[tuple[str, Path, Parameters]]:
        """Yield name, place and parameters of each pivot; the first is section ``ingest``.

        The place is the subdirectory of its data in a stage's output. Other pivots have their own sections
        and work directories, and share the translation memory.
        """
        yield self.nmt.source_language, Path(), self
        memory = self.resources.memory_directory()
        for name, pivot in self.pivots.items():
            work = self.resources.work / f"pivot-{name}"
            nmt = pivot.nmt or self.nmt
            if pivot.nmt is None or "source_language" not in nmt.model_fields_set:
                nmt = nmt.model_copy(update={"source_language": name})
            changed = {
                "ingest": pivot.ingest,
                "nmt": nmt,
                "translate": pivot.translate or self.translate,
                "resources": self.resources.model_copy(update={"work": work, "translation_memory": memory}),
            }
            yield name, Path("pivots") / name, self.model_copy(update=changed)
