"""The sentences of a corpus' splits, which are out of whatever is trained on other text, too."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from paraforge.base.shards.schema import TEXT_COLUMNS
from paraforge.base.shards.store import ShardDirectory
from paraforge.base.text.normalisation import normalise
from paraforge.corpus.columns import COLUMNS

HELD_OUT: Final = "held_out"
"""The step that writes these pairs, and the reason for which one is not trained on."""
SCHEMA: Final = pa.schema([COLUMNS[name] for name in TEXT_COLUMNS])


@dataclass(frozen=True)
class HeldOut:
    """Pairs of shards, of which no sentence may be trained on. Memory holds the distinct ones."""

    directory: Path

    @property
    def digest(self) -> str:
        """Hash of the shards."""
        return ShardDirectory(self.directory).digest

    @cached_property
    def _sentences(self) -> Any:
        tables = ShardDirectory(self.directory).tables(TEXT_COLUMNS)
        sides = [chunk for table in tables for name in TEXT_COLUMNS for chunk in table[name].chunks]
        found = pc.unique(normalise(pa.chunked_array(sides, pa.string()).combine_chunks()))
        return found.filter(pc.not_equal(found, ""))

    def holds(self, texts: Any) -> NDArray[np.bool_]:
        """Which of the texts are held out; case, punctuation and spaces do not count."""
        words = normalise(texts.cast(pa.string()))
        held = pc.is_in(words, value_set=self._sentences, skip_nulls=True)
        return np.asarray(held.to_numpy(zero_copy_only=False) if isinstance(held, pa.Array) else held)


def open_held_out(directory: Path) -> HeldOut | None:
    """What the stage publish wrote, ``data/held_out``; None where no pair is held out. Raises InputError: no
    such shards."""
    return HeldOut(directory) if ShardDirectory(directory).total_rows else None
