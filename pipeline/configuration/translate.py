"""Section ``translate`` of params.yaml: the engine and how it searches."""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from pipeline.translation.translator import DecodingOptions

ComputeType = Literal[
    "auto",
    "float32",
    "float16",
    "bfloat16",
    "int16",
    "int8",
    "int8_float32",
    "int8_float16",
    "int8_bfloat16",
]


def _check_pattern(pattern: str | None) -> str | None:
    if pattern is not None:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from error
    return pattern


class FakeParameters(BaseModel):
    """Settings of the engine ``fake``; see pipeline/translation/engines/fake.py."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    seed: int = Field(1, description="another seed gives other translations")
    fail_pattern: str | None = Field(None, description="sentences in which this is found fail")
    defects: float = Field(
        0.0,
        ge=0,
        le=1,
        description="share of sentences that come out empty, non-finite, truncated or runaway",
    )
    sentences_per_second: float = Field(0.0, ge=0, description="rate of a worker; 0 is as fast as it can")
    slow_pattern: str | None = Field(None, description="sentences in which this is found take slow_seconds")
    slow_seconds: float = Field(0.0, ge=0)

    _patterns = field_validator("fail_pattern", "slow_pattern")(_check_pattern)


class TranslateParameters(BaseModel):
    """Section ``translate``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    engine: Literal["ctranslate2", "fairseq", "fake"] = "ctranslate2"
    beam: int = Field(12, ge=1, le=128, description="width of the beam (PN 3: 12)")
    nbest: int = Field(
        1, ge=1, le=127, description="hypotheses kept of a sentence, at most beam; each is a row"
    )
    length_penalty: float = Field(
        1.0, ge=0, le=5, description="score = log-probability / length ** length_penalty"
    )
    compute_type: ComputeType = Field("float32", description="auto: what is fastest on the device")
    maximum_source_tokens: int = Field(1024, ge=2, description="a longer source is cut and marked")
    maximum_target_tokens: int = Field(256, ge=2, description="a longer hypothesis is cut and marked")
    sentences_per_task: int = Field(
        4000,
        ge=1,
        le=1_000_000,
        description="distinct sentences that are translated and saved together: what a kill may cost",
    )
    fake: FakeParameters = Field(default_factory=FakeParameters)

    @model_validator(mode="after")
    def _nbest_within_beam(self) -> TranslateParameters:
        if self.nbest > self.beam:
            raise ValueError(f"nbest is {self.nbest}, the beam only {self.beam}")
        return self

    def options(self) -> DecodingOptions:
        """What a translation depends on."""
        return DecodingOptions(
            beam=self.beam,
            nbest=self.nbest,
            length_penalty=self.length_penalty,
            maximum_source_tokens=self.maximum_source_tokens,
            maximum_target_tokens=self.maximum_target_tokens,
            compute_type=self.compute_type,
        )

    def settings(self) -> dict[str, Any]:
        """The engine's own settings."""
        return self.fake.model_dump() if self.engine == "fake" else {}
