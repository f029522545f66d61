"""Hypotheses as columns: what a row of the corpus gets, and what is remembered of a sentence."""

import math
from typing import Any

import numpy as np
import pyarrow as pa

from paraforge.base.shards.keys import text_keys
from paraforge.base.shards.schema import COLUMNS
from paraforge.translation.decoding.translator import Hypotheses

# What a hypothesis adds to a row.
HYPOTHESIS_COLUMNS = (
    "translation",
    "translation_score",
    "rank",
    "source_truncated",
    "output_truncated",
    "empty_output",
    "non_finite",
    "runaway",
    "failed",
)
HYPOTHESES = pa.schema([COLUMNS[name].remove_metadata() for name in HYPOTHESIS_COLUMNS])
# One row a hypothesis; key and text of a sentence are in its first row alone.
REMEMBERED = pa.schema(
    [pa.field("key", pa.binary(16)), COLUMNS["source_text"].remove_metadata(), *HYPOTHESES]
)


class HypothesisRows:
    """Collects results as columns.

    heads: the first row of each sentence.
    """

    def __init__(self) -> None:
        self.heads: list[int] = []
        self._columns: dict[str, list[Any]] = {name: [] for name in HYPOTHESES.names}

    @property
    def sentences(self) -> int:
        """Sentences that were added."""
        return len(self.heads)

    def add(self, result: Hypotheses) -> None:
        """Add a sentence: one row a hypothesis, one row without text if there is none."""
        self.heads.append(len(self._columns["rank"]))
        failed = result.failed
        if not result.hypotheses and failed is None:
            failed = "the engine found no hypothesis"
        for rank, hypothesis in enumerate(result.hypotheses):
            self._row(
                hypothesis.text,
                None if math.isnan(hypothesis.score) else hypothesis.score,
                rank,
                result.source_truncated,
                hypothesis.output_truncated,
                hypothesis.empty,
                hypothesis.non_finite,
                hypothesis.runaway,
                None,
            )
        if failed is not None:
            self._row(None, None, 0, result.source_truncated, False, False, False, False, failed)

    def _row(self, *values: Any) -> None:
        for column, value in zip(self._columns.values(), values, strict=True):
            column.append(value)

    def hypotheses(self) -> pa.Table:
        """The rows, in the order of sentences and ranks."""
        columns = [pa.array(self._columns[field.name], field.type) for field in HYPOTHESES]
        return pa.table(columns, schema=HYPOTHESES)

    def table(self, texts: pa.Array) -> pa.Table:
        """The rows with the key and text of their sentence: the columns of :data:`REMEMBERED`.

        texts: the sentences that were added, in their order.
        """
        places = np.full(len(self._columns["rank"]), -1)
        places[self.heads] = np.arange(len(self.heads))
        taken = pa.array(places, mask=places < 0)
        hypotheses = self.hypotheses().columns
        return pa.table([stored_keys(texts).take(taken), texts.take(taken), *hypotheses], schema=REMEMBERED)


def stored_keys(texts: pa.Array) -> pa.Array:
    """The key of each text as 16 bytes (see :mod:`paraforge.base.shards.keys`)."""
    digests = text_keys(texts).astype(">u8").tobytes()
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(texts), [None, pa.py_buffer(digests)])
