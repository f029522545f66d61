"""What every scorer of pairs is: the columns that it declares, when it is wanted, and how it scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.base.plugins import found_classes
from paraforge.base.shards.schema import column as schema_column

if TYPE_CHECKING:
    from paraforge.base.word_vectors.vectors import WordVectors
    from paraforge.corpus.scoring.corpus_counts import CorpusCounts
    from paraforge.corpus.scoring.lexical_table import LexicalTable
    from paraforge.corpus.scoring.pairs import Pairs
    from paraforge.corpus.scoring.word_scorer import WordScorer


class SentenceEncoder(Protocol):
    """A trained model that can score pairs."""

    def encode(self, texts: Any, /) -> npt.NDArray[np.float32]:
        """Return vectors of a pyarrow string array, (texts, dimension); zeros for a text that has none."""


@dataclass(frozen=True)
class ScorerChoice:
    """What is chosen of scorers.

    Attributes:
        vectors: what gives the paraphrase score: a table of word vectors, a scorer of words, a trained model;
            None for no such score.
        counts: words and lengths of the corpus; without them there are no scores that compare with these.
        lexical: which words of the corpus translate each other; without it no pair is judged by its source.
        identify_language: add the languages of both sides.
        languages: codes of the languages to tell apart; None for all.
        sentence_transformer_directory: add the cosine under this model.
        cross_encoder_directory: add what this cross-encoder says.
        device: where these models run.
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
    """Equal bins from ``low`` to ``high``; what is outside is counted in the first or last bin."""

    low: float
    high: float
    bins: int

    def bin_of(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """Bin of each value. An edge belongs to the bin above it, the last edge to the last bin."""
        places = np.floor((values - self.low) * (self.bins / (self.high - self.low)) + 1e-6)
        return np.clip(places, 0, self.bins - 1).astype(np.int64)

    @property
    def edges(self) -> list[float]:
        """Lower edges of the bins, and the upper one of the last."""
        return [round(float(edge), 6) for edge in np.linspace(self.low, self.high, self.bins + 1)]


SHARES = Scale(0, 1, 20)

Closed = Literal["both", "left", "right", "neither"]


def inside(
    values: npt.NDArray[Any],
    minimum: float | None = None,
    maximum: float | None = None,
    closed: Closed = "both",
) -> npt.NDArray[np.bool_]:
    """Compare scores with bounds: the one comparison of filters, groups and verdicts. NaN is never inside.

    A bound is rounded to the precision of the scores, so that 0.7 as a 32-bit score reaches a minimum of 0.7
    and is not below a maximum of 0.7, as a reader expects. closed: which bounds belong to the interval.
    """
    found = ~np.isnan(values) if values.dtype.kind == "f" else np.ones(len(values), bool)
    if minimum is not None:
        low = _at_precision(values, minimum)
        found &= values >= low if closed in ("both", "left") else values > low
    if maximum is not None:
        high = _at_precision(values, maximum)
        found &= values <= high if closed in ("both", "right") else values < high
    return found


def _at_precision(values: npt.NDArray[Any], bound: float) -> Any:
    return values.dtype.type(bound) if values.dtype.kind == "f" else bound


@dataclass(frozen=True)
class Column:
    """The one declaration of a column of scores, for whatever writes, bounds, counts, draws or names it.

    Attributes:
        name: of the column. kind: pyarrow type; filters may bound a number, and tables show its mean.
        description: what the column has, in the shards' schema and the reference.
        label: what people call it; its name with blanks where nothing is said.
        scale: bins of its histogram; None: it has no histogram.
        limits: the least and the greatest value that it can have; by default those of shares, otherwise none.
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
        """As schemas have it."""
        return schema_column(self.name, self.kind, self.description)

    @property
    def numeric(self) -> bool:
        """Whether it has a mean."""
        return bool(pa.types.is_integer(self.kind) or pa.types.is_floating(self.kind))


Worse = Literal["larger", "smaller", "farther"]
"""Which of two scores is the worse one: the larger, the smaller, or the one farther from zero."""


class Scorer(ABC):
    """Gives one or more columns of scores.

    Attributes:
        columns: what it gives.
        is_sign: the columns show how a translation fails, not whether it is another sentence's: no verdict on
            mismatched pairs judges them.
        worse: a pair of two translations gets the worse one of the scores that each of them has with the
            reference that both were made from; None for a score that compares the two sides.
        place: columns come in the order of their scorers' places.
    """

    columns: ClassVar[tuple[Column, ...]]
    is_sign: ClassVar[bool] = False
    worse: ClassVar[Worse | None] = None
    place: ClassVar[int] = 1000

    @classmethod
    def build(cls, choice: ScorerChoice) -> Scorer | None:
        """Return the scorer, or None where it is not wanted."""
        return cls()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    @abstractmethod
    def __call__(self, pairs: Pairs) -> dict[str, Any]:
        """Return a pyarrow array as long as ``pairs`` for each column; null where a pair has no such
        score."""


def scorer_types() -> list[type[Scorer]]:
    """Return every scorer there is: of the modules in ``scorers/``, and those that other packages add."""
    return sorted(found_classes("paraforge.corpus.scoring.scorers", Scorer), key=lambda scorer: scorer.place)
