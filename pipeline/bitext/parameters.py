"""Section ``ingest`` of params.yaml: what is read, from where, and how it is cleaned."""

from __future__ import annotations

import logging
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from paraforge.shards.schema import FORMER_NAMES
from paraforge.text.paths import FilePath

logger = logging.getLogger(__name__)

ColumnPlace = int | str


@cache
def note_former_name(former: str, now: str) -> None:
    """Say once in a process that a column has another name."""
    logger.warning("the column %r of a source is called %r now: please write that", former, now)


def _present_names(columns: Any) -> Any:
    """Columns of a source under their present names."""
    if not isinstance(columns, dict):
        return columns
    for former in FORMER_NAMES.keys() & columns.keys():
        if FORMER_NAMES[former] not in columns:
            note_former_name(former, FORMER_NAMES[former])
            columns = {FORMER_NAMES[former] if n == former else n: place for n, place in columns.items()}
    return columns


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Cleaning(_Section):
    """What is mended and what is refused. Each refusal is counted by its reason."""

    malformed: Literal["error", "reject"] = Field(
        "error",
        description="rows that cannot be read (not UTF-8, NUL, ragged, not JSON): stop, or refuse them",
    )
    control_characters: Literal["reject", "remove"] = Field(
        "reject",
        description="rows with control characters other than tabs and line breaks (which become spaces): "
        "refuse the row, or take the characters out",
    )
    normalise: bool = Field(True, description="Unicode normalisation form C")
    max_characters: int = Field(2000, ge=1, description="longest side, in characters")
    max_words: int = Field(250, ge=1, description="longest side, in words divided by spaces")
    max_line_bytes: int = Field(
        1 << 20, ge=1 << 10, le=1 << 28, description="longest line that is read whole; memory grows with it"
    )
    identical: bool = Field(True, description="refuse pairs whose two sides are the same")
    max_length_ratio: float | None = Field(
        4.0,
        gt=1,
        allow_inf_nan=False,
        description="longer side / shorter side, in characters; null for no limit",
    )
    length_ratio_from: int = Field(
        20, ge=0, description="the ratio counts where the longer side has more characters than this"
    )
    duplicates: bool = Field(True, description="refuse pairs that an earlier row of any source has")


class Where(_Section):
    """A condition on a column: exactly one of ``values`` and ``not_in``."""

    column: ColumnPlace = Field(description="number from 0, or name")
    values: list[str] | None = Field(None, min_length=1, description="rows with one of these are taken")
    not_in: list[str] | None = Field(None, min_length=1, description="rows with none of these are taken")

    @model_validator(mode="after")
    def _one(self) -> Where:
        if (self.values is None) == (self.not_in is None):
            raise ValueError("give exactly one of 'values' and 'not_in'")
        return self


class _Named(_Section):
    name: str = Field(
        pattern=r"^[\w][\w.+-]*$", max_length=100, description="what the column 'source' says; unique"
    )


class _Files(_Named):
    drop_rows: FilePath | None = Field(
        None,
        description="file of row numbers (from 0; first column, perhaps a header) to refuse as contaminated",
    )


class MosesSource(_Files):
    """Parallel files: line n of each is row n."""

    format: Literal["moses"]
    paths: Annotated[dict[str, FilePath], BeforeValidator(_present_names)] = Field(
        description="a file, or pattern of files, for each column"
    )

    def column_names(self) -> set[str]:
        """Columns that the source has."""
        return set(self.paths)


class _Columns(_Files):
    path: FilePath | list[FilePath] = Field(
        min_length=1,
        description="file, pattern of files, or a list of them; $NAME is an environment variable",
    )
    columns: Annotated[dict[str, ColumnPlace], BeforeValidator(_present_names)]
    where: Where | None = None

    @property
    def patterns(self) -> list[str]:
        """``path`` as a list."""
        return [self.path] if isinstance(self.path, str) else self.path

    def column_names(self) -> set[str]:
        """Columns that the source has."""
        return set(self.columns)


class TsvSource(_Columns):
    """Tab-separated columns without quoting."""

    format: Literal["tsv"]
    header: bool = Field(False, description="whether the first line names the columns")

    @model_validator(mode="after")
    def _places(self) -> TsvSource:
        places = [*self.columns.values(), *([self.where.column] if self.where else [])]
        named = [place for place in places if isinstance(place, str)]
        if named and not self.header:
            raise ValueError(f"column {named[0]!r} is a name: that needs 'header: true', or give its number")
        if any(isinstance(place, int) and place < 0 for place in places):
            raise ValueError("columns are counted from 0")
        return self


class _NamedColumns(_Columns):
    @model_validator(mode="after")
    def _names(self) -> _NamedColumns:
        places = [*self.columns.values(), *([self.where.column] if self.where else [])]
        if any(isinstance(place, int) for place in places):
            raise ValueError("columns go by name in this format")
        return self


class JsonlSource(_NamedColumns):
    """An object a line; nested fields as ``translation.cs``."""

    format: Literal["jsonl"]


class ParquetSource(_NamedColumns):
    """Parquet files; nested columns as ``translation.cs``."""

    format: Literal["parquet"]


class TmxSource(_NamedColumns):
    """TMX files; ``columns`` gives the language of each side: ``cs``, or ``cs|ces`` where either is used."""

    format: Literal["tmx"]
    where: None = None


class SampleSource(_Named):
    """The sample bitext that comes with the package; each domain is a source ``NAME-DOMAIN``."""

    format: Literal["sample"]
    pairs: int = Field(20_000, ge=100, le=10_000_000)
    seed: int = Field(1, ge=0)

    def column_names(self) -> set[str]:
        """Columns that the source has."""
        return {"source_text", "reference"}


class CatalogueSource(_Named):
    """A public corpus by its identifier in the mtdata catalogue (``mtdata list``)."""

    format: Literal["mtdata"]
    dataset: str = Field(description="e.g. Helsinki-opus_tatoeba-v20230412-ces-eng")
    languages: Annotated[dict[str, str], BeforeValidator(_present_names)] = Field(
        default_factory=lambda: {"source_text": "ces", "reference": "eng"},
        description="language of each side, as the identifier has it",
    )
    cache: str = Field("", description="where downloads are kept; by default in the work directory")

    def column_names(self) -> set[str]:
        """Columns that the source has."""
        return set(self.languages)


Source = Annotated[
    MosesSource | TsvSource | JsonlSource | ParquetSource | TmxSource | SampleSource | CatalogueSource,
    Field(discriminator="format"),
]
FileSource = MosesSource | TsvSource | JsonlSource | ParquetSource | TmxSource

_REQUIRED = {"bitext": {"source_text", "reference"}, "paraphrases": {"reference", "translation"}}
_OPTIONAL: dict[str, set[str]] = {"bitext": set(), "paraphrases": {"score"}}


class IngestParameters(_Section):
    """Section ``ingest``."""

    kind: Literal["bitext", "paraphrases"] = Field(
        "bitext",
        description="bitext (source_text, reference), or paraphrases: an existing corpus (reference, "
        "translation, perhaps score), which is not translated again",
    )
    sources: list[Source] = Field(min_length=1)
    cleaning: Cleaning = Field(default_factory=lambda: Cleaning())
    rows_per_shard: int = Field(
        50_000, ge=100, le=10_000_000, description="a shard is the unit of work and of loss"
    )

    @model_validator(mode="after")
    def _consistent(self) -> IngestParameters:
        problems = []
        names = [source.name for source in self.sources]
        problems += [
            f"source name {name!r} is used twice" for name in sorted(set(names)) if names.count(name) > 1
        ]
        required, optional = _REQUIRED[self.kind], _OPTIONAL[self.kind]
        for source in self.sources:
            has = source.column_names()
            if not required <= has or has - required - optional:
                allowed = ", ".join(sorted(required)) + "".join(
                    f" and perhaps {name}" for name in sorted(optional)
                )
                problems.append(
                    f"source {source.name!r} has the columns {', '.join(sorted(has))}; "
                    f"kind {self.kind} has {allowed}"
                )
        if problems:
            raise ValueError("; ".join(problems))
        return self
