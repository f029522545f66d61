"""Filter ``near_repeats``: keeps the best-scored pair among sentences with nearly the same vectors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from paraforge.base.errors import InputError
from paraforge.base.text.paths import FilePath, expand
from paraforge.base.text.tokens import tokenize_column
from paraforge.base.word_vectors.subword_vectors import SubwordVectors
from paraforge.base.word_vectors.vectors import WordVectors, table_directory
from paraforge.corpus.scoring import general
from paraforge.corpus.scoring.word_scorer import DESCRIPTION, WordScorer
from paraforge.corpus.selection.filters import Filter, FilterParameters

if TYPE_CHECKING:
    from paraforge.corpus.selection.select import Selection


class NearRepeatsParameters(FilterParameters):
    """Rejects a pair if its reference says nearly the same as a better pair's reference, by the cosine of
    their vectors. The pair with the higher paraphrase score is better; with equal scores, the earlier one."""

    kind: Literal["near_repeats"]
    cosine: float = Field(0.95, ge=0.8, le=1, description="lowest cosine at which a sentence repeats another")
    model: FilePath | None = Field(
        None,
        description="a file or directory of word vectors, such as models/paragram; null: the built-in "
        "scorer's vectors",
    )

    needs_all_pairs: ClassVar[bool] = True
    needs: ClassVar[tuple[str, ...]] = ("reference", "paraphrase_score")
    usual_name: ClassVar[str] = "near_repeat"

    def refusal(self) -> str:
        """Return e.g. ``reference nearly the same as in a better pair (cosine 0.95)``."""
        return f"reference nearly the same as in a better pair (cosine {self.cosine:g})"

    def signature(self, fingerprint: str | None = None) -> tuple[str, str]:
        """Return e.g. ``nrep:0.95:3fa9c1d2``."""
        return "nrep", f"{self.cosine:g}:{(fingerprint or 'none')[:8]}"

    def _table(self) -> tuple[WordVectors | SubwordVectors, str]:
        """Return the word vectors and their fingerprint. Raises InputError if they are missing or damaged."""
        directory = general.DIRECTORY if self.model is None else table_directory(Path(expand(self.model)))
        if (directory / DESCRIPTION).is_file():
            scorer = WordScorer.open(directory)
            return scorer.vectors, scorer.fingerprint
        table = WordVectors.open(directory)
        return table, table.fingerprint

    def prepare(self, pairs: Selection) -> Filter:
        """Compare the sentences of the pairs."""
        # numba takes a second to import
        from paraforge.corpus.selection.near_vectors import MOST_NUMBERS, NearVectors, rounded

        table, fingerprint = self._table()
        if table.dimension > MOST_NUMBERS:
            raise InputError(
                f"vectors have {table.dimension:,} dimensions, but near_repeats supports at most "
                f"{MOST_NUMBERS:,}",
                self.model,
            )

        def read(rows: pa.Table) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
            tokens = tokenize_column(pc.fill_null(rows["reference"], ""))
            vectors = rounded(tokens.sums(table.of_words(tokens.vocabulary)))
            return vectors, rows["paraphrase_score"].cast(pa.float32()).to_numpy()  # null becomes NaN

        near, starts = NearVectors(pairs.directory / self.reason, self.cosine), pairs.starts
        for vectors, scores in pairs.each(read, self.needs):
            near.add(vectors, scores)
        found = near.find(pairs.pieces)

        def judge(rows: pa.Table, shard: int) -> npt.NDArray[np.bool_]:
            return found[starts[shard] : starts[shard + 1]] >= 0

        # No columns are needed, because the references were read while comparing.
        return Filter(self.reason, ("rejected",), judge, fingerprint)
