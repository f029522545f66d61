"""The references of a bitext as running text: its lines in order, from the shards of `data/ingested`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.base.errors import InputError
from paraforge.base.shards.store import ShardDirectory
from paraforge.embeddings.unrolling.sentences import SentenceBlock

STILL_TEXT: Final = ("blank_source", "too_long", "identical", "length_ratio", "duplicate")
"""Reasons for which a pair is refused whose reference is still a line of its text."""


@dataclass(frozen=True)
class References:
    """References of sources that are running text, such as novels, news or subtitles.

    directory: shards of `data/ingested`, which has every line of a source. sources: names, or patterns of
        names such as `books.*`.

    A document ends with its source, at a line without a reference, and at one that was refused for a reason
    which is not in `STILL_TEXT`: sentences on either side of a gap are no neighbours.
    """

    directory: Path
    sources: tuple[str, ...]

    def identity(self) -> Any:
        """What the text depends on, fit for JSON."""
        return [ShardDirectory(self.directory).digest, list(self.sources)]

    def blocks(self) -> Iterator[SentenceBlock]:
        """The sentences, a block a shard. Raises InputError: no such shards, or no source of such a name."""
        names: dict[str, bool] = {}
        last, document = "", 0
        for table in ShardDirectory(self.directory).tables(["source", "reference", "rejected"]):
            if not len(table):
                continue
            source = table["source"].combine_chunks().cast(pa.string())
            for name in pc.unique(source).to_pylist():
                names[name] = any(fnmatchcase(name, pattern) for pattern in self.sources)
            texts = pc.fill_null(table["reference"].combine_chunks().cast(pa.string()), "")
            kept = pc.is_in(source, pa.array([name for name, wanted in names.items() if wanted], pa.string()))
            kept = pc.and_(kept, pc.not_equal(pc.utf8_trim_whitespace(texts), ""))
            refused = table["rejected"].combine_chunks().cast(pa.string())
            fine = pc.or_(pc.is_null(refused), pc.is_in(refused, pa.array(STILL_TEXT)))
            keep = pc.and_(kept, fine).to_numpy(zero_copy_only=False)
            ends = ~keep
            ends[1:] |= pc.not_equal(source[1:], source[:-1]).to_numpy(zero_copy_only=False)
            ends[0] |= source[0].as_py() != last
            documents = document + np.cumsum(ends, dtype=np.int64)
            last, document = source[-1].as_py(), int(documents[-1])
            yield SentenceBlock(texts.filter(pa.array(keep)), documents[keep])
        if unknown := [one for one in self.sources if not any(fnmatchcase(name, one) for name in names)]:
            raise InputError(
                f"no source {', '.join(unknown)}; there are {', '.join(sorted(names)) or 'none'}",
                self.directory,
                remedy="Correct decoders.sources in params.yaml.",
            )
