"""Writes binarized parts: tokens of sentence pairs in fairseq's memory-mapped format."""

import shutil
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.base.text.ragged import offsets_of
from paraforge.translation.models.fairseq_compat import import_fairseq
from paraforge.translation.models.sentencepiece import SPECIAL_TYPES

# fairseq has the sizes and batches of one part in memory (about 100 bytes per pair).
PAIRS_PER_PART = 4_000_000


def encode_sentences(processor: Any, sentences: list[str], threads: int = 1) -> pa.ListArray:
    """Return fairseq's tokens of each sentence, including end-of-sentence; see :func:`write_dictionary`."""
    encoded = processor.encode(sentences, num_threads=threads)
    lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
    offsets = offsets_of(lengths + 1)
    tokens = np.full(offsets[-1], SPECIAL_TYPES.index("</s>"), np.int32)
    is_end = np.zeros(len(tokens), np.bool_)
    is_end[offsets[1:] - 1] = True
    tokens[~is_end] = np.fromiter(chain.from_iterable(encoded), np.int32, int(lengths.sum()))
    tokens[~is_end] += len(SPECIAL_TYPES) - 1
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(tokens))


def _add(builder: Any, sentences: pa.ChunkedArray) -> int:
    """Add lists of tokens to one side of a split. Returns the number of tokens."""
    import torch

    tokens = torch.from_numpy(pc.list_flatten(sentences).to_numpy().copy())
    for sentence in tokens.split(pc.list_value_length(sentences).to_pylist()):
        builder.add_item(sentence)
    return len(tokens)


class PartWriter:
    """Writes pairs of ``source`` and ``target`` tokens to ``parts/part-0000`` ..., with bounded sizes.

    parts: their names. pairs: number of written pairs. tokens: number of tokens on both sides.
    """

    def __init__(self, directory: Path, languages: Sequence[str]) -> None:
        """directory: directory with fairseq's dictionaries of both languages."""
        self._directory, self._languages = directory, languages
        self._dictionaries = [directory / f"dict.{language}.txt" for language in languages]
        lines = max(path.read_bytes().count(b"\n") for path in self._dictionaries)
        self._types = lines + len(SPECIAL_TYPES)
        self._sides: dict[str, Any] = {}
        self.parts: list[str] = []
        self.pairs = 0
        self.tokens = [0, 0]

    def _open(self, part: str, split: str) -> None:
        """Open fairseq's builders of both sides: ``.bin`` has the tokens, ``.idx`` where sentences begin."""
        import_fairseq()
        from fairseq.data.indexed_dataset import make_builder

        stem = self._directory / part / f"{split}.{'-'.join(self._languages)}"
        for language in self._languages:
            self._sides[f"{stem}.{language}"] = make_builder(f"{stem}.{language}.bin", "mmap", self._types)

    def write(self, pairs: pa.Table) -> None:
        """Add pairs."""
        while pairs.num_rows:
            room = len(self.parts) * PAIRS_PER_PART - self.pairs
            if not room:
                self.close()
                self.parts.append(f"parts/part-{len(self.parts):04d}")
                (self._directory / self.parts[-1]).mkdir(parents=True)
                for path in self._dictionaries:
                    shutil.copyfile(path, self._directory / self.parts[-1] / path.name)
                self._open(self.parts[-1], "train")
                continue
            here, pairs = pairs.slice(0, room), pairs.slice(room)
            self.pairs += here.num_rows
            for number, builder in enumerate(self._sides.values()):
                self.tokens[number] += _add(builder, here.column(number))

    def close(self) -> None:
        """Finish the last part."""
        for stem, builder in self._sides.items():
            builder.finalize(f"{stem}.idx")
        self._sides = {}

    def write_held_out(self, pairs: pa.Table) -> None:
        """Write the validation split to the first part, where fairseq expects it."""
        self._open(self.parts[0], "valid")
        for builder, column in zip(self._sides.values(), pairs.columns, strict=True):
            _add(builder, column)
        self.close()
