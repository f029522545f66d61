"""Section ``translate`` of params.yaml: the engine and how it searches."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, create_model, model_validator

from paraforge.base.section import Section
from paraforge.intake.bitext.parameters import IngestParameters
from paraforge.translation.decoding.batching import WINDOW
from paraforge.translation.decoding.translator import DecodingOptions, EngineSettings
from paraforge.translation.engines import ENGINES, engine_settings
from paraforge.translation.training.parameters import NmtParameters

if TYPE_CHECKING:
    EngineName = str
else:
    # The choices are only known at run time, after the search for engine modules.
    EngineName = Literal[tuple(ENGINES)]


# Wanted duration of a task. If a worker is killed, about one task is lost.
TASK_SECONDS = 60.0
# The files of tasks are bounded, and so are the hypotheses of a task, which are in memory.
_MOST_TASKS, _MOST_HYPOTHESES = 12_500, 200_000


class _Section(DecodingOptions):
    engine: EngineName = "ctranslate2"
    check_quantized: bool = Field(
        True,
        description="compare int8 or int16 with float32 on 1,000 sentences before translating, and use "
        "float32 unless they show that little is lost; see models.md",
    )
    sentences_per_task: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="distinct sentences to translate and save together; a kill loses at most these. null: "
        "about a minute's worth, as measured",
    )
    maximum_sentences: int | None = Field(
        None,
        ge=1,
        description="most distinct sentences to translate; rows of the others fail as not_chosen. A higher "
        "number keeps all that were chosen. null: all",
    )
    forward: dict[str, Any] = Field(
        default_factory=dict,
        description="for ingest.kind references: keys of this section that differ in the forward "
        "translation, from reference to source_text; by default beam: 4 and nbest: 1",
    )

    def forward_parameters(self) -> TranslateParameters:
        """Return the section of the forward translation.

        Raises ValidationError if a value of ``forward`` is not allowed.
        """
        left_out = {"forward"}
        if self.forward.get("engine", self.engine) != self.engine:
            left_out |= set(engine_settings())
        own = {**self.model_dump(exclude=left_out, exclude_unset=True), "beam": 4, "nbest": 1}
        changed = {
            name: own[name] | value if isinstance(own.get(name), dict) and isinstance(value, dict) else value
            for name, value in self.forward.items()
        }
        return TranslateParameters.model_validate({**own, **changed})

    def task_size(self, sentences: int, rate: float = 0.0, workers: int = 1, window: int = WINDOW) -> int:
        """Return the number of sentences per task if ``sentences`` are translated.

        rate: sentences per second and worker; 0 if it is not known yet.
        window: sentences that the engine sorts together. A task has a whole number of windows, so its size
            does not affect the batches.
        """
        if self.sentences_per_task is not None:
            return self.sentences_per_task
        share = sentences if workers == 1 else -(-sentences // (4 * workers))
        size = min(rate * TASK_SECONDS, _MOST_HYPOTHESES / self.nbest, share)
        least = math.ceil(sentences / _MOST_TASKS / window)
        return window * max(1, least, round(size / window))

    @model_validator(mode="after")
    def _consistent(self) -> _Section:
        settings: EngineSettings | None = getattr(self, self.engine, None)
        if settings is not None:
            settings.check(self)
        return self

    def options(self) -> DecodingOptions:
        """Return what a translation depends on."""
        return DecodingOptions(**{name: getattr(self, name) for name in DecodingOptions.model_fields})

    def settings(self) -> dict[str, Any]:
        """Return the engine's own settings."""
        settings: EngineSettings | None = getattr(self, self.engine, None)
        return {} if settings is None else settings.model_dump()


if TYPE_CHECKING:

    class TranslateParameters(_Section):
        """Section ``translate``, with a subsection for each engine that has settings."""

        fake: EngineSettings = EngineSettings()

else:
    TranslateParameters = create_model(
        "TranslateParameters",
        __base__=_Section,
        __module__=__name__,
        __doc__="Section ``translate``.",
        **{name: (kind, Field(default_factory=kind)) for name, kind in engine_settings().items()},
    )


class Pivot(Section):
    """One more bitext with its model: sections ``ingest``, ``nmt`` and ``translate`` of its own."""

    ingest: IngestParameters
    nmt: NmtParameters | None = Field(
        None,
        description="its translation model; null: section nmt with the pivot's language, if that trains a "
        "model or needs none",
    )
    translate: TranslateParameters | None = Field(
        None, description="how it is translated; null: as section translate"
    )
