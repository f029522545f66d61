"""Moses format: a file for each side, line n of one belongs to line n of the other."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from pathlib import Path

import numpy as np

from paraforge.bitext.block import Block, Changes, parse_scores
from paraforge.text.lines import MAX_LINE_BYTES, paired_blocks


def read_moses(
    paths: dict[str, Path], changes: Changes, *, strict: bool, max_line_bytes: int = MAX_LINE_BYTES
) -> Iterator[Block]:
    """Read parallel files.

    Args:
        paths: a file for each text column, and one for ``score`` where there is one.
        changes, strict, max_line_bytes: see :func:`paraforge.text.lines.line_blocks`.

    Raises:
        InputError: see :func:`paraforge.text.lines.paired_blocks`; ``strict`` and a score that is no number.
    """
    for blocks in paired_blocks(paths, changes, strict=strict, max_line_bytes=max_line_bytes):
        # A row refused for one side's sake has the reason of the first side that has one.
        codes = reduce(lambda a, b: np.where(a != 0, a, b), [block.codes for block in blocks.values()])
        block = Block(
            lines=next(iter(blocks.values())).numbers,
            texts={name: block.lines for name, block in blocks.items() if name != "score"},
            codes=codes.astype(np.uint8),
        )
        if "score" in blocks:
            block.scores = parse_scores(blocks["score"].lines, block, paths["score"], strict)
        yield block
