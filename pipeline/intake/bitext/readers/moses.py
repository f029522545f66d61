"""Reads the Moses format: one file per side, aligned line by line."""

from collections.abc import Iterator, Mapping
from functools import reduce
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from paraforge.base.text.lines import Reading, paired_blocks
from paraforge.base.text.paths import FilePath
from paraforge.intake.bitext.source import Block, FileSource, parse_scores, reason_codes


class MosesSource(FileSource):
    """Parallel files: line n of each file belongs to row n."""

    format: Literal["moses"]
    paths: dict[str, FilePath] = Field(description="a file, or a pattern of files, for each column")

    def column_names(self) -> set[str]:
        """Return the names of the source's columns."""
        return set(self.paths)

    def patterns(self) -> dict[str, list[str]]:
        """Return the pattern of each column's files."""
        return {column: [pattern] for column, pattern in self.paths.items()}

    def read(self, paths: Mapping[str, Path], reading: Reading) -> Iterator[Block]:
        """Read parallel files, one for each text column and perhaps one for ``score``.

        Raises InputError if :func:`paraforge.base.text.lines.paired_blocks` does, or, in a strict reading,
        if a score is not a number.
        """
        for blocks in paired_blocks(paths, reading):
            # A rejected row has the reason of the first side that has one.
            codes = reduce(lambda a, b: np.where(a != 0, a, b), map(reason_codes, blocks.values()))
            block = Block(
                lines=next(iter(blocks.values())).numbers,
                texts={name: block.lines for name, block in blocks.items() if name != "score"},
                codes=codes.astype(np.uint8),
            )
            if "score" in blocks:
                block.scores = parse_scores(blocks["score"].lines, block, paths["score"], reading.strict)
            yield block
