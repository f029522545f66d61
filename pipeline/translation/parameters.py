"""Section ``translate`` of params.yaml: the engine and how it searches."""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from paraforge.decoding.translator import DecodingOptions

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
    """Settings of the engine ``fake``; see pipeline/decoding/engines/fake.py."""

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


class TorchParameters(BaseModel):
    """Settings of the engine ``torch``; see pipeline/decoding/torch_search/settings.py."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    method: Literal["beam", "sampling"] = Field("beam", description="sampling: beam samples a sentence")
    target_factor: float = Field(
        0.0,
        ge=0,
        description="at most target_factor * source tokens + target_extra target tokens; 0: as many as any",
    )
    target_extra: int = Field(0, ge=0)
    no_repeat_ngram: int = Field(0, ge=0, description="no n-gram of so many tokens twice; 0: it may be")
    forced_prefix: str = Field("", description="text that every hypothesis begins with")
    groups: int = Field(1, ge=1, description="diverse beam search: groups that share the beam")
    diversity: float = Field(
        0.5, ge=0, description="what a token costs that an earlier group took at this step, in nats"
    )
    temperature: float = Field(1.0, gt=0, description="sampling: logits are divided by it")
    top_k: int = Field(0, ge=0, description="sampling: among so many most probable tokens; 0: all")
    top_p: float = Field(
        1.0, gt=0, le=1, description="sampling: among the fewest tokens that have this probability together"
    )
    seed: int = Field(1, description="sampling: another seed draws other translations")

    def changed(self) -> dict[str, Any]:
        """The settings that are not as they are by default."""
        return self.model_dump(exclude_defaults=True)


class QuantisationParameters(BaseModel):
    """Whether weights of 8 or 16 bits are good enough, found out on a sample; see docs/engines.md."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    check: Literal["fallback", "error", "skip"] = Field(
        "fallback",
        description="before anything is translated in int8 or int16, a sample is translated in it and in "
        "float32. Unless it shows that less than maximum_loss is lost: fallback translates in float32, error "
        "stops. skip: no sample",
    )
    maximum_loss: float = Field(
        0.02,
        gt=0,
        description="nats a token by which the float32 model may find its own translations more probable; "
        "the upper bound of a 95 % interval has to be below",
    )
    sentences: int = Field(
        1000, ge=200, le=100_000, description="of the sample, and at most one in 40 of the corpus"
    )


class TranslateParameters(BaseModel):
    """Section ``translate``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    engine: Literal["ctranslate2", "fairseq", "fake", "torch"] = "ctranslate2"
    beam: int = Field(12, ge=1, le=128, description="width of the beam (PN 3: 12)")
    nbest: int = Field(
        1, ge=1, le=127, description="hypotheses kept of a sentence, at most beam; each is a row"
    )
    length_penalty: float = Field(
        1.0, ge=0, le=5, description="score = log-probability / length ** length_penalty"
    )
    compute_type: ComputeType = Field("float32", description="auto: what is fastest on the device")
    quantisation: QuantisationParameters = Field(default_factory=QuantisationParameters)
    maximum_source_tokens: int = Field(1024, ge=2, description="a longer source is cut and marked")
    maximum_target_tokens: int = Field(256, ge=2, description="a longer hypothesis is cut and marked")
    sentences_per_task: int = Field(
        4000,
        ge=1,
        le=1_000_000,
        description="distinct sentences that are translated and saved together: what a kill may cost",
    )
    fake: FakeParameters = Field(default_factory=FakeParameters)
    torch: TorchParameters = Field(default_factory=TorchParameters)

    @model_validator(mode="after")
    def _consistent(self) -> TranslateParameters:
        if self.nbest > self.beam:
            raise ValueError(f"nbest is {self.nbest}, the beam only {self.beam}")
        if self.torch.changed() and self.engine != "torch":
            raise ValueError(f"settings of the engine torch are given, but the engine is {self.engine}")
        if self.beam % self.torch.groups:
            raise ValueError(f"a beam of {self.beam} cannot be shared by {self.torch.groups} groups")
        if self.torch.groups > 1 and self.torch.method == "sampling":
            raise ValueError("torch.groups is for method beam: samples have no groups")
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
        if self.engine == "fake":
            return self.fake.model_dump()
        return self.torch.changed() if self.engine == "torch" else {}
