"""Filters ``near_duplicates``, ``near_repeats`` and ``sample``, which must see all pairs to judge one."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from paraforge.base.shards.lineage import LINEAGE, sampling_keys
from paraforge.corpus.selection.filters import Filter, FilterParameters
from paraforge.corpus.selection.ordering import rank

if TYPE_CHECKING:
    from paraforge.corpus.selection.select import Selection


from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.base.errors import InputError
from paraforge.base.text.paths import FilePath, expand
from paraforge.base.text.tokens import tokenize_column
from paraforge.base.word_vectors.subword_vectors import SubwordVectors
from paraforge.base.word_vectors.vectors import WordVectors, table_directory
from paraforge.corpus.scoring import general
from paraforge.corpus.scoring.word_scorer import DESCRIPTION, WordScorer

if TYPE_CHECKING:
    from paraforge.corpus.selection.select import Selection


from collections.abc import Sequence
from itertools import pairwise, starmap
from typing import TYPE_CHECKING

from paraforge.base.shards.groups import GroupRanks, rank_groups
from paraforge.base.shards.lineage import text_keys
from paraforge.base.text.normalization import fold, normalize

if TYPE_CHECKING:
    from paraforge.corpus.selection.select import Selection


def near_duplicate_keys(texts: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.uint64]:
    """Return 128-bit keys (n x 2) of n texts (without nulls) that are equal if only case, punctuation, spaces
    and invisible characters differ. For a text without letters and digits, punctuation counts."""
    if not len(texts):
        return np.empty((0, 2), np.uint64)
    normalized = normalize(texts)
    return text_keys(pc.if_else(pc.equal(normalized, ""), fold(texts), normalized))


def sentence_keys(columns: Sequence[pa.ChunkedArray]) -> npt.NDArray[np.uint64]:
    """Return :func:`near_duplicate_keys` of each row's texts, (rows, columns, 2); 0, 0 for no text."""
    keys = np.zeros((len(columns[0]), len(columns), 2), np.uint64)
    for place, column in enumerate(columns):
        texts = pc.fill_null(column, "")
        keys[:, place] = near_duplicate_keys(texts)
        keys[blank(texts), place] = 0
    return keys


def blank(texts: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Return which texts are empty or white space."""
    is_blank: npt.NDArray[np.bool_] = pc.equal(pc.utf8_length(pc.utf8_trim_whitespace(texts)), 0).to_numpy()
    return is_blank


def reference_keys(rows: pa.Table) -> npt.NDArray[np.uint64]:
    """Return :func:`near_duplicate_keys` of the references of n rows; null counts as empty."""
    return near_duplicate_keys(pc.fill_null(rows.column("reference"), ""))


class NearDuplicatesParameters(FilterParameters):
    """At most N pairs whose references are the same except for case, punctuation and spaces."""

    kind: Literal["near_duplicates"]
    per_reference: int = Field(
        1,
        ge=1,
        description="how many pairs with the same normalized reference to keep; the first ones are kept",
    )

    needs_all_pairs: ClassVar[bool] = True
    needs: ClassVar[tuple[str, ...]] = ("reference",)
    usual_name: ClassVar[str] = "near_duplicate"

    def refusal(self) -> str:
        """Return e.g. ``same reference as an earlier pair``."""
        number = self.per_reference
        return "same reference as " + ("an earlier pair" if number == 1 else f"{number:,} earlier pairs")

    def signature(self, fingerprint: str | None = None) -> tuple[str, str]:
        """Return e.g. ``ndup:1``."""
        return "ndup", str(self.per_reference)

    def prepare(self, pairs: Selection) -> Filter:
        """Rank the references of the pairs; memory does not grow with them."""
        rows_of = list(pairwise(pairs.starts))
        keys = zip(pairs.each(reference_keys, ["reference"]), starmap(np.arange, rows_of), strict=True)
        rank_groups(keys, pairs.directory / self.reason)
        ranks = GroupRanks(pairs.directory / self.reason)

        def judge(rows: pa.Table, shard: int) -> npt.NDArray[np.bool_]:
            return ranks.of(*rows_of[shard])[0] >= self.per_reference

        # No columns are needed, because the references were read while ranking.
        return Filter(self.reason, ("rejected",), judge)


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
        from paraforge.corpus.selection.near_vectors import MOST_NUMBERS, NearVectors, to_8_bits

        table, fingerprint = self._table()
        if table.dimension > MOST_NUMBERS:
            raise InputError(
                f"vectors have {table.dimension:,} dimensions, but near_repeats supports at most "
                f"{MOST_NUMBERS:,}",
                self.model,
            )

        def read(rows: pa.Table) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
            tokens = tokenize_column(pc.fill_null(rows["reference"], ""))
            vectors = to_8_bits(tokens.sums(table.of_words(tokens.vocabulary)))
            return vectors, rows["paraphrase_score"].cast(pa.float32()).to_numpy()  # null becomes NaN

        near, starts = NearVectors(pairs.directory / self.reason, self.cosine), pairs.starts
        for vectors, scores in pairs.each(read, self.needs):
            near.add(vectors, scores)
        repeats = near.find(pairs.pieces)

        def judge(rows: pa.Table, shard: int) -> npt.NDArray[np.bool_]:
            return repeats[starts[shard] : starts[shard + 1]] >= 0

        # No columns are needed, because the references were read while comparing.
        return Filter(self.reason, ("rejected",), judge, fingerprint)


class SampleParameters(FilterParameters):
    """Keeps a random sample of the pairs that earlier filters accept, drawn without replacement.

    Every pair gets a pseudo-random 64-bit key from (seed, source, line, rank), and the sample is the pairs
    with the smallest keys. So it does not depend on shard sizes, their order or the number of workers.
    """

    kind: Literal["sample"]
    size: int = Field(ge=1)
    seed: int = Field(1, description="another seed draws an independent sample")

    needs_all_pairs: ClassVar[bool] = True
    needs: ClassVar[tuple[str, ...]] = ("source", "line")

    def refusal(self) -> str:
        """Return e.g. ``not among the 5,000 drawn at random``."""
        return f"not among the {self.size:,} drawn at random"

    def signature(self, fingerprint: str | None = None) -> tuple[str, str]:
        """Return e.g. ``sample:5000:seed1``."""
        return "sample", f"{self.size}:seed{self.seed}"

    def prepare(self, pairs: Selection) -> Filter:
        """Draw from the pairs, or keep all if there are no more."""
        columns = tuple(name for name in LINEAGE if name in pairs.column_names)
        keys = pairs.each(lambda rows: sampling_keys(rows, self.seed), columns)
        # Rows with equal keys are drawn in row order.
        drawn = rank(keys, lambda count: [self.size], pairs.directory / self.reason)
        return Filter(
            self.reason, columns, lambda rows, shard: drawn.parts(sampling_keys(rows, self.seed), shard) > 1
        )
