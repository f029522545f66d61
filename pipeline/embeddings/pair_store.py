"""Training pairs as compact arrays of unit ids on disk, memory-mapped: 5 million pairs are a few hundred
megabytes of file."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import torch

from paraforge.bitext.pair_blocks import PairBlock
from paraforge.embeddings.parameters import VocabularyParameters
from paraforge.errors import InputError
from paraforge.files import hash_json, read_json, write_json
from paraforge.interrupts import check_interrupt
from paraforge.learning.batches import Bags
from paraforge.text.units import Units
from paraforge.text.vocabulary import Vocabulary, most_frequent

FORMAT = 2
_INDEX = "pairs.json"
_SOURCES = "sources"
_CHUNK_TOKENS = 1 << 22
_BLOCK_ROWS = 50_000


class PairStore:
    """Pairs of sentences as ids, in one directory. Pair k's left and right sides are read by number.

    Attributes:
        pairs: number of pairs.
        skipped: pairs left out because a side has no unit.
        fingerprint: hash of the pairs' ids and of the vocabularies' sizes.
        vocabularies: unit name -> vocabulary.
        source_names: where pairs come from.
    """

    def __init__(self, directory: Path) -> None:
        """Open a directory that `build_pair_store` wrote.

        Raises:
            InputError: missing, damaged, or ids beyond the vocabulary.
        """
        index = read_json(directory / _INDEX)
        try:
            if index["format"] != FORMAT:
                raise InputError(f"format {index['format']}, not {FORMAT}", directory / _INDEX)
            self.pairs = int(index["pairs"])
            self.skipped = int(index["skipped"])
            self.fingerprint = hash_json(index)
            self.unit_names = [str(name) for name in index["units"]]
            described = {name: index["units"][name] for name in self.unit_names}
            self.source_names = [str(name) for name in index["sources"]]
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"damaged: {error!r}", directory / _INDEX) from error
        self.directory = directory
        self._chosen: npt.NDArray[np.int64] | None = None
        self._sources = map_array(directory / _SOURCES, "int32", (self.pairs,))
        self.vocabularies: dict[str, Vocabulary] = {}
        self._ids: dict[str, npt.NDArray[Any]] = {}
        self._starts: dict[str, npt.NDArray[np.int64]] = {}
        for name, unit in described.items():
            vocabulary = Vocabulary.load(directory / f"{name}.vocabulary.json")
            if int(unit["vocabulary"]) != len(vocabulary) or int(unit["largest_id"]) >= len(vocabulary):
                raise InputError(
                    f"ids up to {unit['largest_id']}, its vocabulary has {len(vocabulary)} units",
                    directory / f"{name}.vocabulary.json",
                    remedy="Build the pairs again.",
                )
            self.vocabularies[name] = vocabulary
            self._ids[name] = map_array(directory / f"{name}.ids", unit["dtype"], (int(unit["tokens"]),))
            self._starts[name] = map_array(directory / f"{name}.starts", "int64", (2 * self.pairs + 1,))

    def __len__(self) -> int:
        return self.pairs

    def tokens(self, unit: str) -> int:
        """Tokens of all sides."""
        return len(self._ids[unit])

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
        return {name: self._select(name, sentences) for name in self.unit_names}

    def _select(self, name: str, sentences: npt.NDArray[np.int64]) -> Bags:
        starts = np.asarray(self._starts[name][sentences])
        lengths = self._starts[name][sentences + 1] - starts
        offsets = np.zeros(len(sentences) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        positions = np.arange(int(offsets[-1])) + np.repeat(starts - offsets[:-1], lengths)
        ids = self._ids[name][positions].astype(np.int64)
        return Bags(torch.from_numpy(ids), torch.from_numpy(offsets))

    @property
    def sources(self) -> npt.NDArray[np.int32]:
        """Number of each pair's source in `source_names`, int32 (pairs,)."""
        return self._sources if self._chosen is None else self._sources[self._chosen]

    def counts(self, unit: str) -> npt.NDArray[np.int64]:
        """How often each unit occurs in all sides, int64 (vocabulary,)."""
        total = np.zeros(len(self.vocabularies[unit]), dtype=np.int64)
        ids = self._ids[unit]
        for first in range(0, len(ids), _CHUNK_TOKENS):
            total += np.bincount(ids[first : first + _CHUNK_TOKENS], minlength=len(total))
        return total


def map_array(path: Path, dtype: str, shape: tuple[int]) -> npt.NDArray[Any]:
    """Numbers in a file, memory-mapped.

    Raises:
        InputError: the file is missing, or of another size.
    """
    size = np.dtype(dtype).itemsize * shape[0]
    found = path.stat().st_size if path.is_file() else 0
    if found != size:
        raise InputError(f"{found} bytes, its index says {size}", path, remedy="Build the pairs again.")
    return np.memmap(path, dtype=dtype, mode="r", shape=shape)


def build_pair_store(
    directory: Path,
    blocks: Iterable[PairBlock],
    units: Sequence[Units],
    limits: VocabularyParameters | Mapping[str, VocabularyParameters],
    vocabularies: Mapping[str, Vocabulary] | None = None,
) -> PairStore:
    """Cut pairs into units once, count, settle the vocabularies, and write the ids to disk.

    Memory holds one block of pairs and the distinct units. A pair with a side that has no unit is left out
    and counted.

    units: how to cut; several for an encoder that reads several.
    limits: of the vocabularies; for all units, or by name.
    vocabularies: given vocabularies by unit name; others are made of the most frequent units.

    Raises:
        InputError: there is no pair at all.
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
    described = {}
    for builder in builders:
        name = builder.units.name
        limit = limits[name] if isinstance(limits, Mapping) else limits
        described[name] = builder.finish(limit, (vocabularies or {}).get(name))
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
    """One unit's files: provisional ids in order of first appearance, renumbered when all counts are
    known."""

    def __init__(self, directory: Path, units: Units) -> None:
        self.units = units
        self._stem = directory / units.name
        self._numbers: dict[str, int] = {}
        self._counts = np.zeros(0, dtype=np.int64)
        self._tokens = 0
        self._provisional = self._file("provisional").open("wb")
        self._starts: BinaryIO = self._file("starts").open("wb")
        self._starts.write(np.zeros(1, dtype=np.int64).tobytes())

    def _file(self, suffix: str) -> Path:
        return self._stem.with_name(f"{self._stem.name}.{suffix}")

    def cut(self, block: PairBlock) -> tuple[Any, Any]:
        left, right = self.units.cut(block.left, block.right)
        return left, right

    def append(self, left: Any, right: Any, keep: npt.NDArray[np.int64]) -> None:
        """Write the sides of the kept pairs: left, right, left, right, ..."""
        vocabulary = left.vocabulary
        numbers = self._numbers
        lookup = np.fromiter(
            (numbers.setdefault(unit, len(numbers)) for unit in vocabulary), np.int32, len(vocabulary)
        )
        # Both columns one after the other, then their rows picked alternately.
        ids = np.concatenate([left.ids, right.ids])
        starts = np.concatenate([left.offsets[:-1], right.offsets[:-1] + left.offsets[-1]])
        lengths = np.concatenate([left.lengths, right.lengths])
        rows = np.stack([keep, keep + len(left)], axis=1).reshape(-1)
        starts, lengths = starts[rows], lengths[rows]
        ends = np.cumsum(lengths)
        positions = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(
            starts - (ends - lengths), lengths
        )
        written = lookup[ids[positions]]
        self._counts = np.pad(self._counts, (0, len(numbers) - len(self._counts)))
        self._counts += np.bincount(written, minlength=len(numbers))
        self._provisional.write(written.tobytes())
        self._starts.write((ends + self._tokens).astype(np.int64).tobytes())
        self._tokens += len(written)

    def close(self) -> None:
        self._provisional.close()
        self._starts.close()

    def finish(self, limit: VocabularyParameters, given: Vocabulary | None) -> dict[str, Any]:
        """Settle the vocabulary, write the final ids, and describe them."""
        found = list(self._numbers)
        if given is None and self.units.fixed_vocabulary is not None:
            pieces, unknown = self.units.fixed_vocabulary
            given = Vocabulary(pieces, unknown)
        if given is not None:
            vocabulary, ids = given, given.ids_of(found)
        else:
            vocabulary, ids = most_frequent(
                found, self._counts, minimum_count=limit.minimum_count, maximum_size=limit.maximum_size
            )
        dtype = np.uint16 if len(vocabulary) <= 1 << 16 else np.int32
        ids = ids.astype(dtype)
        largest = 0
        digest = hashlib.sha256()
        with self._file("provisional").open("rb") as source, self._file("ids").open("wb") as target:
            while data := source.read(4 * _CHUNK_TOKENS):
                part = ids[np.frombuffer(data, dtype=np.int32)]
                largest = max(largest, int(part.max()))
                target.write(part.tobytes())
                digest.update(part.tobytes())
        self._file("provisional").unlink()
        vocabulary.save(self._file("vocabulary.json"))
        return {
            "vocabulary": len(vocabulary),
            "tokens": self._tokens,
            "largest_id": largest,
            "dtype": np.dtype(dtype).name,
            "sha256": digest.hexdigest(),
        }
