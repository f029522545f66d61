"""Stores training pairs as compact arrays of unit ids on disk, memory-mapped; 5 million pairs take a few
hundred megabytes."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.base.errors import InputError
from paraforge.base.files import read_json, sync_tree, write_json
from paraforge.base.progress import progress
from paraforge.base.text.pair_blocks import PairBlock
from paraforge.base.text.ragged import text_bytes as text_bytes_of
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
    teacher: another model's vectors of the sides, (2 * pairs, dimension) float32: left, right, ...
    vocabularies: unit name -> vocabulary.
    """

    def __init__(self, directory: Path) -> None:
        """Open a directory of `build_pair_store`. Raises InputError if it is missing or
        incomplete."""
        index = read_json(directory / _INDEX)
        if index["format"] != FORMAT:
            raise InputError(f"format {index['format']}, not {FORMAT}", directory / _INDEX)
        self.pairs, self.skipped = index["pairs"], index["skipped"]
        self.unit_names = list(index["units"])
        text_bytes = index.get("text_bytes", 0)
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
            name: IdSequences(directory, name, 2 * self.pairs, unit) for name, unit in index["units"].items()
        }
        self.vocabularies = {name: sequences.vocabulary for name, sequences in self._sequences.items()}

    def __len__(self) -> int:
        return self.pairs

    def subset(self, pairs: npt.NDArray[np.int64]) -> PairStore:
        """Return a view of some pairs, in this order, on the same files."""
        view = copy.copy(self)
        view.pairs = len(pairs)
        view._chosen = pairs if self._chosen is None else self._chosen[pairs]
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
        return [self._texts[start:end].tobytes().decode() for start, end in zip(starts, ends, strict=True)]

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
    counted. Raises InputError if no pair is left.

    limits: limits of each unit's vocabulary, unless it is fixed. with_sentences: also store the texts.
    vocabularies: those of a trained model, instead of new ones.
    """
    directory.mkdir(parents=True, exist_ok=True)
    (directory / _INDEX).unlink(missing_ok=True)
    fixed = vocabularies or {}
    sources: dict[str, int] = {}
    pairs = seen = text_bytes = 0
    with ExitStack() as stack:
        writers = {
            unit: stack.enter_context(closing(IdSequencesWriter(directory, unit.name))) for unit in units
        }
        source_of_pair, texts, text_ends = (
            stack.enter_context((directory / name).open("wb")) for name in (_SOURCES, _TEXTS, _TEXT_ENDS)
        )
        shown = stack.enter_context(progress(total=None, unit="pairs", description="read"))
        for block in _limit_blocks(blocks):
            # left, right, left, right, ...
            order = np.arange(2 * len(block)).reshape(2, -1).T.ravel()
            columns = [side.cast(pa.large_string()) for side in (block.left, block.right)]
            sides = pa.concat_arrays(columns).take(pa.array(order))
            cut = {unit: unit.cut(sides)[0] for unit in units}
            keep = np.all([column.lengths.reshape(-1, 2) > 0 for column in cut.values()], axis=(0, 2))
            kept = np.repeat(keep, 2)
            for unit, column in cut.items():
                writers[unit].append(column.filter(kept))
            number = sources.setdefault(block.source, len(sources))
            source_of_pair.write(np.full(keep.sum(), number, dtype=np.int32).tobytes())
            if with_sentences:
                data, offsets = text_bytes_of(sides.filter(pa.array(kept)))
                texts.write(data.tobytes())
                text_ends.write((offsets[1:] + text_bytes).tobytes())
                text_bytes += len(data)
            pairs += int(keep.sum())
            seen += len(block)
            shown.update(len(block))
    if not pairs:
        if not seen:
            remedy = (
                "'paraforge summary' shows what rejects the pairs; change section select, or set pair_files."
            )
            raise InputError(
                "no pair to train on: the corpus is empty, or all its pairs leaked", remedy=remedy
            )
        raise InputError(
            f"no pair to train on: {seen:,} read, but none has text on both sides",
            remedy="Check the files and columns.",
        )
    described = {
        unit.name: writer.finish(*_vocabulary(unit, writer, limits, fixed.get(unit.name)))
        for unit, writer in writers.items()
    }
    sync_tree(directory)  # before the index is written, because it means that all files are complete
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


def _limit_blocks(blocks: Iterable[PairBlock]) -> Iterator[PairBlock]:
    """Yield the same pairs in blocks of bounded size, because a shard can have any number of rows."""
    for block in blocks:
        for first in range(0, len(block), _BLOCK_ROWS):
            yield block.slice(first, _BLOCK_ROWS)


def _vocabulary(
    unit: Units, writer: IdSequencesWriter, limits: VocabularyParameters, fixed: Vocabulary | None
) -> tuple[Vocabulary, npt.NDArray[np.int64]]:
    """Return the given, the fixed or the most frequent units, and the ids of the units found."""
    if fixed is None and unit.fixed_vocabulary is not None:
        fixed = Vocabulary(*unit.fixed_vocabulary)
    if fixed is not None:
        return fixed, fixed.ids_of(writer.units)
    return most_frequent(
        writer.units,
        writer.counts,
        minimum_count=limits.minimum_count,
        maximum_size=limits.maximum_size,
    )
