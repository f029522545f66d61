"""The base class of scorers: the columns that a scorer declares, when it is used, and how it scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.base.errors import InputError
from paraforge.base.plugins import found_classes
from paraforge.base.shards.schema import COLUMNS
from paraforge.base.shards.schema import column as schema_column

if TYPE_CHECKING:
    from paraforge.base.word_vectors.vectors import WordVectors
    from paraforge.corpus.scoring.corpus_counts import CorpusCounts
    from paraforge.corpus.scoring.lexical_table import LexicalTable
    from paraforge.corpus.scoring.pairs import Pairs
    from paraforge.corpus.scoring.word_scorer import WordScorer


class SentenceEncoder(Protocol):
    """A trained model that embeds texts, so that pairs can be scored."""

    def encode(self, texts: Any, /) -> npt.NDArray[np.float32]:
        """Return vectors of a pyarrow string array, (texts, dimension); zeros for a text without one."""


@dataclass(frozen=True)
class ScorerChoice:
    """The chosen scorers and what they need.

    Attributes:
        vectors: computes the paraphrase score: a table of word vectors, a word scorer or a trained model;
            None for no such score.
        counts: words and lengths of the corpus; without them, scores that need them are left out.
        lexical: which words of the corpus translate each other; without it there is no source similarity.
        identify_language: add the languages of both sides.
        languages: codes of the languages to tell apart; None for all.
        sentence_transformer_directory: add the cosine under this model.
        cross_encoder_directory: add the score of this cross-encoder. device: where these models run.
    """

    vectors: WordVectors | WordScorer | SentenceEncoder | None
    counts: CorpusCounts | None = None
    lexical: LexicalTable | None = None
    identify_language: bool = False
    languages: Sequence[str] | None = None
    sentence_transformer_directory: Path | None = None
    cross_encoder_directory: Path | None = None
    device: str = "cpu"


@dataclass(frozen=True)
class Scale:
    """Equal bins from ``low`` to ``high``; values outside count in the first or last bin."""

    low: float
    high: float
    bins: int

    def bin_of(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """Return the bin of each value. An edge belongs to the bin above it, the last edge to the last
        bin."""
        places = np.floor((values - self.low) * (self.bins / (self.high - self.low)) + 1e-6)
        return np.clip(places, 0, self.bins - 1).astype(np.int64)

    @property
    def edges(self) -> list[float]:
        """Return the lower edges of the bins, and the upper edge of the last."""
        return [round(float(edge), 6) for edge in np.linspace(self.low, self.high, self.bins + 1)]


SHARES = Scale(0, 1, 20)


def inside(
    values: npt.NDArray[Any], minimum: float | None = None, maximum: float | None = None
) -> npt.NDArray[np.bool_]:
    """Compare scores with bounds, which are inclusive. Filters, groups and verdicts all use this comparison.
    NaN is never inside.

    A bound is rounded to the precision of the scores, so that 0.7 as a 32-bit score reaches a minimum of 0.7
    and is not above a maximum of 0.7, as a reader expects.
    """
    is_inside = ~np.isnan(values) if values.dtype.kind == "f" else np.ones(len(values), bool)
    if minimum is not None:
        is_inside &= values >= _to_precision(values, minimum)
    if maximum is not None:
        is_inside &= values <= _to_precision(values, maximum)
    return is_inside


def _to_precision(values: npt.NDArray[Any], bound: float) -> Any:
    return values.dtype.type(bound) if values.dtype.kind == "f" else bound


@dataclass(frozen=True)
class Column:
    """The declaration of a score column, used wherever it is written, bounded, counted, plotted or named.

    Attributes:
        name: name of the column. kind: pyarrow type; filters can bound a number, and tables show its mean.
        description: meaning of the column, in the shards' schema and the reference.
        label: label for people; by default the name with blanks.
        scale: bins of its histogram; None for no histogram.
        limits: the least and the greatest possible value; by default those of shares.
    """

    name: str
    kind: pa.DataType
    description: str
    label: str | None = None
    scale: Scale | None = None
    limits: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.limits is None and self.scale is SHARES:
            object.__setattr__(self, "limits", (0.0, 1.0))

    @property
    def field(self) -> pa.Field:
        """Return the field for schemas."""
        return schema_column(self.name, self.kind, self.description)

    @property
    def numeric(self) -> bool:
        """Return whether the column has a mean."""
        return bool(pa.types.is_integer(self.kind) or pa.types.is_floating(self.kind))


Worse = Literal["larger", "smaller", "farther"]
"""Which of two scores is worse: the larger, the smaller, or the one farther from zero."""


class Scorer(ABC):
    """Computes one or more columns of scores.

    Attributes:
        columns: the columns that it computes.
        is_sign: whether the columns describe a kind of error, and not whether the sides match. Signs are not
            judged by mismatched pairs.
        worse: for a pair of two translations of one reference, which of their scores against the reference is
            used; None for a score that compares the two translations.
        place: position of its columns among those of the other scorers.
    """

    columns: ClassVar[tuple[Column, ...]]
    is_sign: ClassVar[bool] = False
    worse: ClassVar[Worse | None] = None
    place: ClassVar[int] = 1000

    @classmethod
    def build(cls, choice: ScorerChoice) -> Scorer | None:
        """Return the scorer, or None if it is not chosen."""
        return cls()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @abstractmethod
    def __call__(self, pairs: Pairs) -> dict[str, Any]:
        """Return a pyarrow array as long as ``pairs`` for each column; null for pairs without that score."""

    def with_worse_of(
        self, scores: dict[str, Any], places: npt.NDArray[np.int64], first: Pairs, second: Pairs
    ) -> dict[str, Any]:
        """Replace the scores at ``places`` by the worse ones of two translations, if ``worse`` asks for it.

        first, second: each translation with the reference; as many pairs as places.
        """
        if self.worse is None:
            return scores
        replaced = {}
        of_first, of_second = self(first), self(second)
        for name in scores:
            one, other, values = (
                columns[name].to_numpy(zero_copy_only=False).astype(np.float32)
                for columns in (of_first, of_second, scores)
            )
            values[places] = {
                "larger": np.fmax(one, other),
                "smaller": np.fmin(one, other),
                "farther": np.where(np.isnan(other) | (np.abs(one) >= np.abs(other)), one, other),
            }[self.worse]
            replaced[name] = pa.array(values, from_pandas=True)
        return replaced


def scorer_types() -> list[type[Scorer]]:
    """Return all scorers: those of the modules in ``scorers/``, and those of other packages. Raises
    InputError if a column of one is another's or of the corpus itself."""
    types = sorted(found_classes("paraforge.corpus.scoring.scorers", Scorer), key=lambda scorer: scorer.place)
    taken = set(COLUMNS)
    for scorer in types:
        names = {column.name for column in scorer.columns}
        if again := sorted(names & taken):
            raise InputError(
                f"{scorer.__module__}.{scorer.__name__} computes {', '.join(again)}, which is another column",
                remedy="Give its column another name.",
            )
        taken |= names
    return types
