"""What every scorer of pairs is: the columns that it declares, when it is wanted, and how it scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.base.plugins import found_classes

if TYPE_CHECKING:
    from paraforge.base.word_vectors.vectors import WordVectors
    from paraforge.corpus.scoring.corpus_counts import CorpusCounts
    from paraforge.corpus.scoring.pairs import Pairs
    from paraforge.corpus.scoring.word_scorer import WordScorer


class SentenceEncoder(Protocol):
    """A trained model that can score pairs."""

    def encode(self, texts: Any, /) -> npt.NDArray[np.float32]:
        """Vectors of a pyarrow string array, (texts, dimension); zeros for a text that has none."""


@dataclass(frozen=True)
class ScorerChoice:
    """What is chosen of scorers.

    Attributes:
        vectors: what gives the paraphrase score: a table of word vectors, a scorer of words, a trained model.
        counts: words and lengths of the corpus; without them there are no scores that compare with these.
        identify_language: add the languages of both sides.
        languages: codes of the languages to tell apart; None for all.
        sentence_transformer_directory: add the cosine under this model.
        cross_encoder_directory: add what this cross-encoder says.
        device: where these models run.
    """

    vectors: WordVectors | WordScorer | SentenceEncoder
    counts: CorpusCounts | None = None
    identify_language: bool = False
    languages: Sequence[str] | None = None
    sentence_transformer_directory: Path | None = None
    cross_encoder_directory: Path | None = None
    device: str = "cpu"


class Scorer(ABC):
    """Gives one or more columns of scores.

    Attributes:
        fields: the columns, declared by :func:`paraforge.base.shards.column.column`.
        is_sign: the columns show how a translation fails, not whether it is another sentence's: no verdict on
            wrong pairs judges them.
        labels: what people call a column, where that is not its name with blanks.
        place: columns come in the order of their scorers' places.
    """

    fields: ClassVar[tuple[pa.Field, ...]]
    is_sign: ClassVar[bool] = False
    labels: ClassVar[Mapping[str, str]] = {}
    place: ClassVar[int] = 1000

    @classmethod
    def build(cls, choice: ScorerChoice) -> Scorer | None:
        """The scorer, or None where it is not wanted."""
        return cls()

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(field.name for field in self.fields)

    @abstractmethod
    def __call__(self, pairs: Pairs) -> dict[str, Any]:
        """A pyarrow array as long as ``pairs`` for each column; null where a pair has no such score."""


def scorer_types() -> list[type[Scorer]]:
    """Every scorer there is: of the modules in ``scorers/``, and those that other packages add."""
    return sorted(found_classes("paraforge.corpus.scoring.scorers", Scorer), key=lambda scorer: scorer.place)
