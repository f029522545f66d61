"""A file of trees made by another parser: each line has a sentence, a tab and its bracketed tree."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from paraforge.base.errors import InputError
from paraforge.base.files import sha256_file
from paraforge.base.parsing.brackets import skeleton
from paraforge.base.shards.lineage import text_keys
from paraforge.base.text.lines import numbered_lines


class ParseTable:
    """A :class:`~paraforge.base.parsing.parser.Parser` that looks trees up; their words are not kept in
    memory."""

    version = "a file of sentences and bracketed trees"

    def __init__(self, path: Path) -> None:
        """Read the file. Raises InputError if a line has no tab, or no well-formed tree behind it."""
        self.fingerprint = sha256_file(path)
        self._trees: dict[bytes, str] = {}
        for number, line in numbered_lines(path):
            sentence, tab, tree = line.partition("\t")
            if not tab:
                raise InputError("expected a sentence, a tab and its tree", path, number)
            if tree.strip():
                try:
                    self._trees[_keys([sentence])[0]] = skeleton(tree)
                except ValueError as error:
                    raise InputError(f"not a bracketed tree: {error}", path, number) from error

    def parse(self, sentences: Sequence[str]) -> list[str | None]:
        """Return the trees of the sentences; None for those that the file does not have."""
        return [self._trees.get(key) for key in _keys(sentences)]


def _keys(sentences: Sequence[str]) -> list[bytes]:
    """Return a key for each sentence that ignores differences in white space."""
    keys = text_keys(pa.array([" ".join(sentence.split()) for sentence in sentences], pa.string()))
    return [row.tobytes() for row in np.ascontiguousarray(keys)]
