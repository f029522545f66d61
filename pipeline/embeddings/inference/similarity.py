"""Similarities of pairs of sentences in files, block by block: cosines, or what a model compares
by instead."""

from collections.abc import Iterator
from itertools import chain, islice, zip_longest
from pathlib import Path

import numpy as np
import numpy.typing as npt

from paraforge.base.errors import InputError
from paraforge.base.interrupts import check_interrupt
from paraforge.base.text.lines import lists_of_lines
from paraforge.base.text.pair_blocks import read_pair_file
from paraforge.embeddings.evaluation.similarity.comparing import Model

Cosines = npt.NDArray[np.float32]
_BLOCK = 4096


def cosines_of_table(model: Model, path: Path, columns: tuple[int, int] = (0, 1)) -> Iterator[Cosines]:
    """Similarities of two columns of a TSV, plain or compressed, in order; InputError as `read_pair_file`."""
    if not path.is_file():
        raise InputError("no such file", path)
    for block in read_pair_file(path, "tsv", columns):
        yield model.similarity(block.left, block.right)
        check_interrupt()


def cosines_of_files(model: Model, first: Path, second: Path) -> Iterator[Cosines]:
    """Similarities of the lines at the same place of two files; InputError where one is missing or has more
    lines."""
    nothing: list[str] = []
    for left, right in zip_longest(_batches(first), _batches(second), fillvalue=nothing):
        if len(left) != len(right):
            shorter = first if len(left) < len(right) else second
            raise InputError("has fewer lines than the other file", shorter)
        yield model.similarity(left, right)
        check_interrupt()


def _batches(path: Path) -> Iterator[list[str]]:
    """The lines in lists of equal length, whatever the blocks they were read in."""
    lines = chain.from_iterable(block for _, block in lists_of_lines(path))
    while batch := list(islice(lines, _BLOCK)):
        yield batch
