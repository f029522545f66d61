"""The sentences of a corpus' held-out splits, which must also be left out of training on other text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paraforge.base.shards.schema import TEXT_COLUMNS
from paraforge.base.shards.store import ShardDirectory
from paraforge.base.text.sentence_set import SentenceSet
from paraforge.corpus.columns import COLUMNS

HELD_OUT: Final = "held_out"
"""The step that writes these pairs, and the reason to leave a pair out of training."""
SCHEMA: Final = pa.schema([COLUMNS[name] for name in TEXT_COLUMNS])


@dataclass(frozen=True)
class HeldOut:
    """Pairs whose sentences must not be trained on. The distinct sentences are in memory."""

    directory: Path

    @property
    def digest(self) -> str:
        """Hash of the shards."""
        return ShardDirectory(self.directory).digest

    @cached_property
    def _sentences(self) -> SentenceSet:
        tables = ShardDirectory(self.directory).tables(TEXT_COLUMNS)
        return SentenceSet(
            {HELD_OUT: (t for table in tables for side in table.columns for t in side.to_pylist())}
        )

    def holds(self, texts: Any) -> NDArray[np.bool_]:
        """Return which texts are held out, ignoring case, punctuation and spaces."""
        return self._sentences.holds(texts)


def open_held_out(directory: Path) -> HeldOut | None:
    """Open ``data/held_out``, which the stage publish wrote; None if no pair is held out. Raises InputError
    if there are no such shards."""
    return HeldOut(directory.absolute()) if ShardDirectory(directory).total_rows else None
