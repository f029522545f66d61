"""Training pairs as compact arrays of unit ids on disk, memory-mapped: 5 million pairs are a few hundred
megabytes of file."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from paraforge.base.errors import InputError, describing
from paraforge.base.files import hash_json, read_json, write_json
from paraforge.base.interrupts import check_interrupt
from paraforge.base.text.pair_blocks import PairBlock
from paraforge.base.text.ragged import ranges
from paraforge.base.text.units import Units
from paraforge.base.text.vocabulary import Vocabulary, most_frequent
from paraforge.embeddings.learning.batches import Bags
from paraforge.embeddings.learning.id_sequences import IdSequences, IdSequencesWriter, map_array
from paraforge.embeddings.trainer.parameters import VocabularyParameters

FORMAT = 2
_INDEX = "pairs.json"
_SOURCES = "sources"
_BLOCK_ROWS = 50_000


class PairStore:
    """Pairs of sentences as ids, in one directory. Pair k's left and right sides are read by number.

    pairs: number of pairs. skipped: pairs left out because a side has no unit.
    fingerprint: hash of the pairs' ids and of the vocabularies' sizes.
    vocabularies: unit name -> vocabulary. source_names: where pairs come from.
    """

    def __init__(self, directory: Path) -> None:
        """Open what `build_pair_store` wrote; InputError where it is missing, damaged, or has ids beyond the
        vocabulary."""
        index = read_json(directory / _INDEX)
        with describing(directory / _INDEX):
            if index["format"] != FORMAT:
                raise InputError(f"format {index['format']}, not {FORMAT}", directory / _INDEX)
            self.pairs = int(index["pairs"])
            self.skipped = int(index["skipped"])
            self.fingerprint = hash_json(index)
            self.unit_names = [str(name) for name in index["units"]]
            described = {name: index["units"][name] for name in self.unit_names}
            self.source_names = [str(name) for name in index["sources"]]
        self.directory = directory
        self._chosen: npt.NDArray[np.int64] | None = None
        self._sources = map_array(directory / _SOURCES, "int32", (self.pairs,))
        self._sequences = {
            name: IdSequences(directory, name, 2 * self.pairs, unit) for name, unit in described.items()
        }
        self.vocabularies = {name: sequences.vocabulary for name, sequences in self._sequences.items()}

    def __len__(self) -> int:
        return self.pairs

    def tokens(self, unit: str) -> int:
        """Tokens of all sides."""
        return self._sequences[unit].tokens

    def subset(self, pairs: npt.NDArray[np.int64]) -> PairStore:
        """A view of some of the pairs, in this order; it reads the same files."""
        view = copy.copy(self)
        view.pairs = len(pairs)
        view._chosen = pairs if self._chosen is None else self._chosen[pairs]
        view.fingerprint = hash_json(
            [self.fingerprint, hashlib.sha256(np.ascontiguousarray(pairs, np.int64).tobytes()).hexdigest()]
        )
        return view

    def of_units(self, names: Collection[str]) -> PairStore:
        """A view with some of the units alone; it reads the same files."""
        view = copy.copy(self)
        view.unit_names = [name for name in self.unit_names if name in names]
        view.vocabularies = {name: self.vocabularies[name] for name in view.unit_names}
        return view

    def select(self, pairs: npt.NDArray[np.int64]) -> dict[str, Bags]:
        """Both sides of some pairs in every unit: first all left sides, then all right sides."""
        if self._chosen is not None:
            pairs = self._chosen[pairs]
        sentences = np.concatenate([2 * pairs, 2 * pairs + 1])
        return {name: self._sequences[name].select(sentences) for name in self.unit_names}

    @property
    def sources(self) -> npt.NDArray[np.int32]:
        """Number of each pair's source in `source_names`, int32 (pairs,)."""
        return self._sources if self._chosen is None else self._sources[self._chosen]

    def counts(self, unit: str) -> npt.NDArray[np.int64]:
        """How often each unit occurs in all sides, int64 (vocabulary,)."""
        return self._sequences[unit].counts()


def build_pair_store(
    directory: Path,
    blocks: Iterable[PairBlock],
    units: Sequence[Units],
    limits: VocabularyParameters,
) -> PairStore:
    """Cut pairs into units once, count, settle the vocabularies, and write the ids to disk.

    Memory holds one block of pairs and the distinct units. A pair with a side that has no unit is left out
    and counted; InputError where no pair is left.

    limits: of each unit's vocabulary, unless the unit has a fixed one.
    """
    directory.mkdir(parents=True, exist_ok=True)
    (directory / _INDEX).unlink(missing_ok=True)
    builders = [_UnitBuilder(directory, unit) for unit in units]
    sources: dict[str, int] = {}
    pairs = seen = 0
    with ExitStack() as stack:
        for builder in builders:
            stack.callback(builder.close)
        source_of_pair = stack.enter_context((directory / _SOURCES).open("wb"))
        for block in _limited(blocks):
            check_interrupt()
            cut = [builder.cut(block) for builder in builders]
            lengths = np.stack([column.lengths for columns in cut for column in columns])
            keep = np.flatnonzero((lengths > 0).all(axis=0))
            for builder, (left, right) in zip(builders, cut, strict=True):
                builder.append(left, right, keep)
            number = sources.setdefault(block.source, len(sources))
            source_of_pair.write(np.full(len(keep), number, dtype=np.int32).tobytes())
            pairs += len(keep)
            seen += len(block)
    if not pairs:
        raise InputError(
            f"no pair to train on: {seen:,} read, none with text on both sides",
            remedy="Look at the pairs' files and columns.",
        )
    described = {builder.units.name: builder.finish(limits) for builder in builders}
    write_json(
        directory / _INDEX,
        {
            "format": FORMAT,
            "pairs": pairs,
            "skipped": seen - pairs,
            "sources": list(sources),
            "units": described,
        },
    )
    return PairStore(directory)


def _limited(blocks: Iterable[PairBlock]) -> Iterator[PairBlock]:
    """The same pairs in blocks of bounded size: a shard may have any number of rows."""
    for block in blocks:
        for first in range(0, len(block), _BLOCK_ROWS):
            yield block.slice(first, _BLOCK_ROWS)


class _UnitBuilder:
    def __init__(self, directory: Path, units: Units) -> None:
        self.units = units
        self._writer = IdSequencesWriter(directory, units.name)

    def cut(self, block: PairBlock) -> tuple[Any, Any]:
        left, right = self.units.cut(block.left, block.right)
        return left, right

    def append(self, left: Any, right: Any, keep: npt.NDArray[np.int64]) -> None:
        """Write the sides of the kept pairs: left, right, left, right, ..."""
        lookup = self._writer.numbers(left.vocabulary)
        # Both columns one after the other, then their rows picked alternately.
        ids = np.concatenate([left.ids, right.ids])
        starts = np.concatenate([left.offsets[:-1], right.offsets[:-1] + left.offsets[-1]])
        lengths = np.concatenate([left.lengths, right.lengths])
        rows = np.stack([keep, keep + len(left)], axis=1).reshape(-1)
        starts, lengths = starts[rows], lengths[rows]
        self._writer.append(lookup[ids[ranges(starts, lengths)]], np.cumsum(lengths))

    def close(self) -> None:
        self._writer.close()

    def finish(self, limit: VocabularyParameters) -> dict[str, Any]:
        found = self._writer.units
        if self.units.fixed_vocabulary is not None:
            fixed = Vocabulary(*self.units.fixed_vocabulary)
            return self._writer.finish(fixed, fixed.ids_of(found))
        return self._writer.finish(
            *most_frequent(
                found,
                self._writer.counts,
                minimum_count=limit.minimum_count,
                maximum_size=limit.maximum_size,
            )
        )
