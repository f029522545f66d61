"""Stores training pairs as compact arrays of unit ids on disk, memory-mapped; 5 million pairs take a few
hundred megabytes."""

from __future__ import annotations

import copy
import hashlib
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from paraforge.base.errors import InputError, describing
from paraforge.base.files import hash_json, read_json, sync_tree, write_json
from paraforge.base.progress import progress
from paraforge.base.text.pair_blocks import PairBlock
from paraforge.base.text.ragged import ranges
from paraforge.base.text.units import Units
from paraforge.base.text.vocabulary import Vocabulary, most_frequent
from paraforge.embeddings.learning.batches import Bags
from paraforge.embeddings.learning.id_sequences import IdSequences, IdSequencesWriter, map_array, release
from paraforge.embeddings.trainer.parameters import VocabularyParameters

FORMAT = 2
_INDEX = "pairs.json"
_SOURCES, _TEXTS, _TEXT_ENDS = "sources", "texts", "text_ends"
_BLOCK_ROWS = 50_000


class PairStore:
    """Pairs of sentences as ids, in one directory. The sides of pair k are read by number.

    pairs: number of pairs. skipped: pairs left out because a side has no unit.
    fingerprint: hash of the pairs' ids and of the vocabularies' sizes.
    teacher: another model's vectors of the sides, (2 * pairs, dimension) float32: left, right, ...
    vocabularies: unit name -> vocabulary.
    """

    def __init__(self, directory: Path) -> None:
        """Open a directory of `build_pair_store`; InputError if it is missing, damaged, or has ids beyond the
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
            text_bytes = int(index.get("text_bytes", 0))
        self.directory = directory
        self._chosen: npt.NDArray[np.int64] | None = None
        self._sources = map_array(directory / _SOURCES, "int32", (self.pairs,))
        self._texts: npt.NDArray[Any] | None = None
        self._text_ends: npt.NDArray[Any] | None = None
        if text_bytes:
            self._texts = map_array(directory / _TEXTS, "uint8", (text_bytes,))
            self._text_ends = map_array(directory / _TEXT_ENDS, "int64", (2 * self.pairs,))
        self.teacher: npt.NDArray[Any] | None = None
        self._sequences = {
            name: IdSequences(directory, name, 2 * self.pairs, unit) for name, unit in described.items()
        }
        self.vocabularies = {name: sequences.vocabulary for name, sequences in self._sequences.items()}

    def __len__(self) -> int:
        return self.pairs

    def subset(self, pairs: npt.NDArray[np.int64]) -> PairStore:
        """Return a view of some pairs, in this order, on the same files."""
        view = copy.copy(self)
        view.pairs = len(pairs)
        view._chosen = pairs if self._chosen is None else self._chosen[pairs]
        view.fingerprint = hash_json(
            [self.fingerprint, hashlib.sha256(np.ascontiguousarray(pairs, np.int64).tobytes()).hexdigest()]
        )
        return view

    def of_units(self, names: Collection[str]) -> PairStore:
        """Return a view with only some units, on the same files."""
        view = copy.copy(self)
        view.unit_names = [name for name in self.unit_names if name in names]
        view.vocabularies = {name: self.vocabularies[name] for name in view.unit_names}
        return view

    def select(self, pairs: npt.NDArray[np.int64]) -> dict[str, Bags]:
        """Return both sides of some pairs in every unit: all left sides, then all right sides."""
        places = self._places(pairs)
        return {name: self._sequences[name].select(places) for name in self.unit_names}

    @property
    def sources(self) -> npt.NDArray[np.int32]:
        """Number of each pair's source, int32 (pairs,)."""
        return self._sources if self._chosen is None else self._sources[self._chosen]

    def sentences(self, pairs: npt.NDArray[np.int64]) -> list[str]:
        """Return the texts of some pairs' sides, all left and then all right ones, if the store was built
        with them."""
        assert self._texts is not None and self._text_ends is not None
        places = self._places(pairs)
        ends = self._text_ends[places]
        starts = np.where(places > 0, self._text_ends[places - 1], 0)
        return [
            self._texts[start:end].tobytes().decode("utf-8", "surrogatepass")
            for start, end in zip(starts, ends, strict=True)
        ]

    def teacher_of(self, pairs: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """Return the teacher's vectors of some pairs' sides: all left, then all right ones."""
        assert self.teacher is not None
        return np.asarray(self.teacher[self._places(pairs)])

    def _places(self, pairs: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        if self._chosen is not None:
            pairs = self._chosen[pairs]
        return np.concatenate([2 * pairs, 2 * pairs + 1])

    def release(self) -> None:
        """Release the memory of the files; it is read again when needed."""
        for array in (self._sources, self._texts, self._text_ends, self.teacher):
            release(array)
        for sequences in self._sequences.values():
            sequences.release()

    def counts(self, unit: str) -> npt.NDArray[np.int64]:
        """Return how often each unit occurs in all sides, int64 (vocabulary,)."""
        return self._sequences[unit].counts()


def build_pair_store(
    directory: Path,
    blocks: Iterable[PairBlock],
    units: Sequence[Units],
    limits: VocabularyParameters,
    *,
    with_sentences: bool = False,
    vocabularies: Mapping[str, Vocabulary] | None = None,
) -> PairStore:
    """Split pairs into units, count them, decide the vocabularies, and write the ids to disk.

    Memory holds one block of pairs and the distinct units. A pair with a side without units is left out and
    counted; InputError if no pair is left.

    limits: limits of each unit's vocabulary, unless it is fixed. with_sentences: also store the texts.
    vocabularies: those of a trained model, instead of new ones.
    """
    directory.mkdir(parents=True, exist_ok=True)
    (directory / _INDEX).unlink(missing_ok=True)
    builders = [_UnitBuilder(directory, unit, (vocabularies or {}).get(unit.name)) for unit in units]
    sources: dict[str, int] = {}
    pairs = seen = 0
    with ExitStack() as stack:
        for builder in builders:
            stack.callback(builder.close)
        source_of_pair, texts, text_ends = (
            stack.enter_context((directory / name).open("wb")) for name in (_SOURCES, _TEXTS, _TEXT_ENDS)
        )
        text_bytes = 0
        shown = stack.enter_context(progress(total=None, unit="pairs", description="read"))
        for block in _limited(blocks):
            cut = [builder.cut(block) for builder in builders]
            lengths = np.stack([column.lengths for columns in cut for column in columns])
            keep = np.flatnonzero((lengths > 0).all(axis=0))
            for builder, (left, right) in zip(builders, cut, strict=True):
                builder.append(left, right, keep)
            number = sources.setdefault(block.source, len(sources))
            source_of_pair.write(np.full(len(keep), number, dtype=np.int32).tobytes())
            if with_sentences:
                text_bytes = _write_texts(block, keep, texts, text_ends, text_bytes)
            pairs += len(keep)
            seen += len(block)
            shown.update(len(block))
    if not pairs:
        raise InputError(
            f"no pair to train on: {seen:,} read, none with text on both sides",
            remedy="Look at the pairs' files and columns; where a corpus has no pairs, 'paraforge summary' "
            "says why.",
        )
    described = {builder.units.name: builder.finish(limits) for builder in builders}
    sync_tree(directory)  # before the index, which says that all are complete
    write_json(
        directory / _INDEX,
        {
            "format": FORMAT,
            "pairs": pairs,
            "skipped": seen - pairs,
            "sources": list(sources),
            "units": described,
            **({"text_bytes": text_bytes} if with_sentences else {}),
        },
    )
    return PairStore(directory)


def _write_texts(
    block: PairBlock, keep: npt.NDArray[np.int64], texts: BinaryIO, text_ends: BinaryIO, size: int
) -> int:
    """Append the sides of the kept pairs; bytes of all texts so far."""
    for place in keep.tolist():
        for side in (block.left, block.right):
            data = side[place].as_py().encode("utf-8", "surrogatepass")
            size += len(data)
            texts.write(data)
            text_ends.write(size.to_bytes(8, sys.byteorder))
    return size


def _limited(blocks: Iterable[PairBlock]) -> Iterator[PairBlock]:
    """Yield the same pairs in blocks of bounded size, because a shard can have any number of rows."""
    for block in blocks:
        for first in range(0, len(block), _BLOCK_ROWS):
            yield block.slice(first, _BLOCK_ROWS)


class _UnitBuilder:
    def __init__(self, directory: Path, units: Units, vocabulary: Vocabulary | None) -> None:
        self.units = units
        if vocabulary is None and units.fixed_vocabulary is not None:
            vocabulary = Vocabulary(*units.fixed_vocabulary)
        self._vocabulary = vocabulary
        self._writer = IdSequencesWriter(directory, units.name)

    def cut(self, block: PairBlock) -> tuple[Any, Any]:
        left, right = self.units.cut(block.left, block.right)
        return left, right

    def append(self, left: Any, right: Any, keep: npt.NDArray[np.int64]) -> None:
        """Write the sides of the kept pairs: left, right, left, right, ..."""
        lookup = self._writer.numbers(left.vocabulary)
        # Both columns one after the other, whose rows are then taken alternately.
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
        if self._vocabulary is not None:
            return self._writer.finish(self._vocabulary, self._vocabulary.ids_of(found))
        return self._writer.finish(
            *most_frequent(
                found,
                self._writer.counts,
                minimum_count=limit.minimum_count,
                maximum_size=limit.maximum_size,
            )
        )
