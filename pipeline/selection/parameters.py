"""Section ``select`` of params.yaml: an ordered list of filters, each with its kind and its rule."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from paraforge.shards.schema import COLUMNS
from paraforge.text.paths import FilePath, expand

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_.-]*$", max_length=60)]
SCORES = [
    name
    for name, column in COLUMNS.items()
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
]
FLAGS = [name for name, column in COLUMNS.items() if pa.types.is_boolean(column.type)]


def _check_score(name: str) -> str:
    if name in SCORES:
        return name
    allowed = f"scores are {', '.join(SCORES)}"
    if name in COLUMNS:
        raise ValueError(f"'{name}' is a {COLUMNS[name].type} column, not a number: {allowed}")
    raise ValueError(f"no such column: {allowed}")


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Filter(_Section):
    name: Name | None = Field(None, description="reason of the pairs it refuses; by default after its kind")

    @property
    def reason(self) -> str:
        """The filter's name, given or by default."""
        return self.name or self.default_name()

    def default_name(self) -> str:
        """The name where none is given."""
        raise NotImplementedError


class _Interval(_Filter):
    minimum: float | None = Field(None, description="lower bound; null for none")
    maximum: float | None = Field(None, description="upper bound; null for none")

    @model_validator(mode="after")
    def _ordered(self) -> _Interval:
        if self.minimum is None and self.maximum is None:
            raise ValueError("neither minimum nor maximum is given")
        if self.minimum is not None and self.maximum is not None and self.minimum > self.maximum:
            raise ValueError(f"minimum {self.minimum:g} is above maximum {self.maximum:g}")
        return self


class LengthParameters(_Interval):
    """Tokens of the reference and of the translation, each within the bounds."""

    kind: Literal["length"]

    def default_name(self) -> str:
        """``length``."""
        return "length"


class BoundsParameters(_Interval):
    """A score column within bounds."""

    kind: Literal["bounds"]
    score: Annotated[str, Field(description="any numeric column")]
    closed: Literal["both", "left", "right", "neither"] = Field(
        "both", description="which bounds belong to the interval"
    )
    missing: Literal["refuse", "accept"] = Field(
        "refuse", description="what becomes of pairs without the score; refused ones have the reason no_SCORE"
    )

    _known = field_validator("score")(_check_score)

    def default_name(self) -> str:
        """The score's name."""
        return self.score

    @model_validator(mode="after")
    def _not_empty(self) -> BoundsParameters:
        if self.minimum is not None and self.minimum == self.maximum and self.closed != "both":
            raise ValueError(f"no score is inside: both bounds are {self.minimum:g} and one is open")
        return self


class DecileParameters(_Filter):
    """The tenth of the whole corpus that a pair is in by a score; 10 is the highest."""

    kind: Literal["decile"]
    score: Annotated[str, Field(description="any numeric column")]
    top: int | None = Field(None, ge=1, le=10, description="keep so many of the highest tenths")
    keep: list[Annotated[int, Field(ge=1, le=10)]] | None = Field(
        None, min_length=1, description="or keep just these"
    )

    _known = field_validator("score")(_check_score)

    @model_validator(mode="after")
    def _one_rule(self) -> DecileParameters:
        if (self.top is None) == (self.keep is None):
            raise ValueError("give either top or keep")
        return self

    def default_name(self) -> str:
        """``SCORE_decile``."""
        return f"{self.score}_decile"

    def tenths(self) -> tuple[int, ...]:
        """The tenths that are kept, rising."""
        if self.keep is not None:
            return tuple(sorted(set(self.keep)))
        assert self.top is not None
        return tuple(range(11 - self.top, 11))


class LanguageParameters(_Filter):
    """The identified language of both sides."""

    kind: Literal["language"]
    languages: list[str] = Field(default_factory=lambda: ["en"], min_length=1)
    missing: Literal["refuse", "accept"] = Field("accept", description="what becomes of unidentified text")

    def default_name(self) -> str:
        """``language``."""
        return "language"


class FlagParameters(_Filter):
    """A flag column such as ``digit_mismatch`` or ``runaway``."""

    kind: Literal["flag"]
    column: str
    refuse: bool = Field(True, description="the value that is refused")

    @field_validator("column")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in FLAGS:
            raise ValueError(f"not a flag: flags are {', '.join(FLAGS)}")
        return name

    def default_name(self) -> str:
        """The flag's name."""
        return self.column


class NearDuplicatesParameters(_Filter):
    """At most so many pairs whose references are the same but for case, punctuation and spaces."""

    kind: Literal["near_duplicates"]
    per_reference: int = Field(1, ge=1, description="pairs kept of one normalised reference, the first ones")

    def default_name(self) -> str:
        """``near_duplicate``."""
        return "near_duplicate"


class TestFileParameters(_Section):
    """A file of sentences that must not be in the corpus."""

    __test__ = False  # not a test class, whatever its name begins with

    path: FilePath = Field(min_length=1, description="plain or gz; environment variables are filled in")
    format: Literal["plain", "tsv", "sts"] = "plain"
    columns: list[int | str] = Field(
        default_factory=list, description="of a TSV, numbers from 0, or names of the header; sts has 1 and 2"
    )
    header: bool = False

    @model_validator(mode="after")
    def _columns_fit(self) -> TestFileParameters:
        if self.format == "plain" and self.columns:
            raise ValueError("a plain file has no columns: set format: tsv")
        if self.format == "tsv" and not self.columns:
            raise ValueError("a TSV needs columns: which hold sentences?")
        if any(isinstance(column, int) and column < 0 for column in self.columns):
            raise ValueError("columns are counted from 0")
        return self

    def location(self) -> Path:
        """The path with environment variables and ``~`` filled in."""
        return Path(expand(self.path))


class DecontaminationParameters(_Filter):
    """No pair with a side that is a test sentence, or shares an n-gram with one."""

    kind: Literal["decontamination"]
    files: list[TestFileParameters] = Field(min_length=1)
    exact: bool = Field(True, description="whole sentences, after normalisation")
    ngram: int | None = Field(None, ge=1, le=100, description="words in a row that must not be shared")

    @model_validator(mode="after")
    def _some_rule(self) -> DecontaminationParameters:
        if not self.exact and self.ngram is None:
            raise ValueError("neither exact nor ngram: nothing would be looked for")
        return self

    def default_name(self) -> str:
        """``decontamination``."""
        return "decontamination"


class SampleParameters(_Filter):
    """So many of the pairs that the filters before it accept, drawn without replacement."""

    kind: Literal["sample"]
    size: int = Field(ge=1)
    seed: int = Field(1, description="another seed draws an independent sample")

    def default_name(self) -> str:
        """``sample``."""
        return "sample"


FilterParameters = Annotated[
    LengthParameters
    | BoundsParameters
    | DecileParameters
    | LanguageParameters
    | FlagParameters
    | NearDuplicatesParameters
    | DecontaminationParameters
    | SampleParameters,
    Field(discriminator="kind"),
]


class SelectParameters(_Section):
    """Section ``select``: the first filter that refuses a pair is its ``rejected``."""

    required: list[Annotated[str, Field(description="any numeric column")]] = Field(
        default_factory=lambda: ["paraphrase_score"],
        description="scores that a pair must have; one without is refused for no_SCORE before any filter",
    )
    deciles: list[str] = Field(
        default_factory=lambda: ["paraphrase_score"],
        description="scores of which a column SCORE_decile is written, whether or not a filter reads it",
    )
    filters: list[FilterParameters] = Field(default_factory=list, description="in the order of judging")

    @field_validator("required", "deciles")
    @classmethod
    def _known(cls, names: list[str]) -> list[str]:
        for name in names:
            _check_score(name)
        if len(set(names)) < len(names):
            raise ValueError("a score is named twice")
        return names

    @model_validator(mode="after")
    def _distinct_names(self) -> SelectParameters:
        reasons = [one.reason for one in self.filters]
        twice = sorted({reason for reason in reasons if reasons.count(reason) > 1})
        if twice:
            raise ValueError(f"two filters are called {', '.join(twice)}: give them names")
        return self

    def decile_scores(self) -> list[str]:
        """Scores that are cut into tenths: those asked for, and those that filters read."""
        read = [one.score for one in self.filters if isinstance(one, DecileParameters)]
        return list(dict.fromkeys([*self.deciles, *read]))
