"""A table of which words of a bitext translate each other, and how well the sides of a row agree with it.

The model is IBM model 1 (Brown et al. 1993) with the diagonal prior of fast_align (Dyer et al. 2013): with
probability `CHANCE` a word translates nothing; otherwise it translates one of the other side's words,
preferably near its own relative position. Words are represented by their first letters, because few corpora
are large enough to contain every form.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paraforge.base.compiled import compiled
from paraforge.base.text.ragged import IntArray, offsets_of, ranges
from paraforge.base.text.tokens import TokenColumn

STEM: Final = 4
"""The number of first letters that represent a word. A token with a digit is used whole."""
CHANCE: Final = 0.1
"""The probability that a word translates nothing on the other side."""
WINDOW: Final = 100
"""How many words before and after its own relative position a word's translation is searched in."""
_DIGITS: Final = 4
# Weights of distances from the diagonal, in 32nds of the side. They are constants because the last digit of
# an exponential differs between processors.
_BINS: Final = 32
NEARNESS: Final = np.cumprod(np.full(_BINS + 1, 0.9))
_WITHOUT_SPACES: Final = r"([\p{Han}\p{Hiragana}\p{Katakana}])"
_NUMBER: Final = r"\p{N}"

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Side:
    """The units of one side, a pyarrow string array by descending count; how often each occurs, int64; and
    the occurrences of all units, including rare ones."""

    units: Any
    counts: IntArray
    total: int

    def chances(self, units: Any) -> tuple[npt.NDArray[np.int32], Floats]:
        """Return the number of each unit, -1 if unknown, and the probability that it occurs anywhere."""
        numbers = pc.index_in(units, value_set=self.units).fill_null(-1).to_numpy().astype(np.int32)
        counts = np.append(self.counts, 1)  # as often as an unknown unit
        return numbers, counts[numbers] / max(2, self.total)


@dataclass(frozen=True)
class LexicalTable:
    """Pairs of units that translate each other.

    foreign, reference: the sides. links: pairs of their units' numbers, ascending, int32 (links, 2).
    shares: for each link, the probability of the reference's unit given the foreign one, and the reverse,
        float32 (links, 2).
    """

    foreign: Side
    reference: Side
    links: npt.NDArray[np.int32]
    shares: npt.NDArray[np.float32]

    def table(self) -> pa.Table:
        """Return the table as a pyarrow table with a row for each unit: its side, its count and, on the
        foreign side, its links. The totals come last, as null units."""
        sides = (self.foreign, self.reference)
        sizes = [len(side.units) for side in sides]
        links = np.bincount(self.links[:, 0], minlength=sum(sizes) + 2)
        offsets = pa.array(offsets_of(links).astype(np.int32))
        lists = (self.links[:, 1], *self.shares.T)
        return pa.table(
            {
                "foreign": [True] * sizes[0] + [False] * sizes[1] + [True, False],
                "unit": pa.chunked_array([*(side.units for side in sides), pa.nulls(2, pa.string())]),
                "count": np.concatenate(
                    [self.foreign.counts, self.reference.counts, [s.total for s in sides]]
                ),
                **{
                    name: pa.ListArray.from_arrays(offsets, pa.array(values))
                    for name, values in zip(("links", "forward", "backward"), lists, strict=True)
                },
            }
        )

    @classmethod
    def of_table(cls, table: pa.Table) -> LexicalTable:
        """Build it from the result of :meth:`table`."""
        sides = []
        for chosen in (table["foreign"], pc.invert(table["foreign"])):
            units, counts = (table[name].filter(chosen).combine_chunks() for name in ("unit", "count"))
            numbers = counts.to_numpy()
            sides.append(Side(units.slice(0, len(units) - 1), numbers[:-1], int(numbers[-1])))
        partners, *shares = (
            pc.list_flatten(table[name]).to_numpy() for name in ("links", "forward", "backward")
        )
        units = np.repeat(np.arange(table.num_rows), pc.list_value_length(table["links"]).to_numpy())
        links = np.stack([units, partners], axis=1).astype(np.int32)
        foreign, reference = sides
        return cls(foreign, reference, links, np.stack(shares, axis=1))

    @classmethod
    def open(cls, path: Path) -> LexicalTable:
        """Read a Parquet file of :meth:`table`."""
        return cls.of_table(pq.read_table(path, partitioning=None))

    @cached_property
    def _hash_table(self) -> npt.NDArray[np.int32]:
        return np.asarray(hash_links(self.links))

    def similarities(self, foreign: TokenColumn, reference: TokenColumn) -> npt.NDArray[np.float32]:
        """Return how much of the information in both sides' words the other side explains: (pairs,) float32,
        NaN if a side has no word, or if all text of the corpus is the one word that both have.

        This is the sum over words of ln(p / q) / the sum of -ln(q), where q is the probability of the word
        anywhere and p its probability given the other side: 1 if all words are almost certain, 0 if they are
        no likelier than in any other text, and slightly below 0 if nothing is translated.

        foreign, reference: see :func:`units_of`. The same unit on both sides, if it is a number or has
        `STEM` letters, translates itself.
        """
        units = pa.array(dict.fromkeys([*foreign.vocabulary, *reference.vocabulary]), pa.string())
        ids = [
            pc.index_in(pa.array(side.vocabulary, pa.string()), value_set=units).to_numpy()[side.ids]
            for side in (foreign, reference)
        ]
        long = pc.greater_equal(pc.utf8_length(units), STEM)
        same = pc.or_(long, pc.match_substring_regex(units, _NUMBER)).to_numpy(zero_copy_only=False)
        similarities = _similarities(
            ids[0], foreign.offsets, ids[1], reference.offsets, same,
            *self.foreign.chances(units), *self.reference.chances(units),
            self._hash_table, self.links, self.shares, NEARNESS,
        )  # fmt: skip
        return np.round(similarities, _DIGITS).astype(np.float32)


def foreign_units(texts: Any) -> TokenColumn:
    """Return the units of a string column of the foreign side without Moses' rules, because its language is
    unknown."""
    lists = pc.split_pattern(pa.chunked_array(texts).combine_chunks().fill_null(""), " ")
    chunks = lists.flatten().dictionary_encode()
    offsets = lists.offsets.to_numpy().astype(np.int64)
    ids = chunks.indices.to_numpy().astype(np.int32)
    return units_of(TokenColumn(ids, offsets, chunks.dictionary.to_pylist()))


def units_of(tokens: TokenColumn) -> TokenColumn:
    """Return the units of tokens: the first letters of each run of letters, each number, each Chinese or
    Japanese character."""
    texts = pc.utf8_lower(pa.array(tokens.vocabulary, pa.string()))
    spaced = pc.replace_substring_regex(texts, _WITHOUT_SPACES, r" \1 ")
    words = pc.split_pattern_regex(spaced, r"[^\p{L}\p{M}\p{N}]+")
    ends, words = words.offsets.to_numpy(), words.flatten()
    stems = pc.if_else(
        pc.match_substring_regex(words, _NUMBER), words, pc.utf8_slice_codeunits(words, 0, STEM)
    )
    encoded = stems.dictionary_encode()
    known = pc.not_equal(stems, "").to_numpy(zero_copy_only=False)
    ids = encoded.indices.to_numpy().astype(np.int32)[known]
    ends = offsets_of(known)[ends]
    # Each token is replaced by its units.
    lengths = np.diff(ends)[tokens.ids]
    unit_ids = ids[ranges(ends[tokens.ids], lengths)]
    return TokenColumn(unit_ids, offsets_of(lengths)[tokens.offsets], encoded.dictionary.to_pylist())


@compiled
def place_of(places: Any, links: Any, foreign: int, reference: int) -> Any:
    """Return the index of a link, -1 for none; places: see :func:`hash_links`."""
    return places[_slot(places, links, foreign, reference)]


@compiled
def hash_links(links: Any) -> Any:
    """Return a hash table of distinct links: the index of the link in each slot, -1 for none, int32."""
    size = 64
    while size < 3 * len(links):
        size *= 2
    places = np.full(size, -1, np.int32)
    for place in range(len(links)):
        places[_slot(places, links, links[place, 0], links[place, 1])] = place
    return places


@compiled
def _slot(places: Any, links: Any, foreign: int, reference: int) -> Any:
    """Return the slot where a link is or would be."""
    key = np.int64(foreign) << 32 | np.int64(reference)
    slot = ((key * 0x9E3779B97F4A7C1) >> 29) & (len(places) - 1)
    place = places[slot]
    while place >= 0 and (links[place, 0] != foreign or links[place, 1] != reference):
        slot = (slot + 1) & (len(places) - 1)
        place = places[slot]
    return slot


@compiled
def distance(first: int, of_first: float, second: int, of_second: float) -> int:
    """Return the distance of two relative positions, in bins; of_first, of_second: 1 / lengths."""
    return int(abs((first + 0.5) * of_first - (second + 0.5) * of_second) * _BINS)


@compiled
def _similarities(
    foreign: Any, foreign_offsets: Any, reference: Any, reference_offsets: Any, same: Any,
    foreign_numbers: Any, foreign_chances: Any, reference_numbers: Any, reference_chances: Any,
    places: Any, links: Any, shares: Any, nearness: Any,
) -> Any:  # fmt: skip
    similarities = np.full(len(foreign_offsets) - 1, np.nan)
    for row in range(len(similarities)):
        first = foreign[foreign_offsets[row] : foreign_offsets[row + 1]]
        second = reference[reference_offsets[row] : reference_offsets[row + 1]]
        rows, columns = len(first), len(second)
        if rows == 0 or columns == 0:
            continue
        of_rows, of_columns = 1 / rows, 1 / columns
        # For each word, its probability and the total weight of the words that might explain it.
        explained, weights = np.zeros(rows), np.zeros(rows)
        column_explained, column_weights = np.zeros(columns), np.zeros(columns)
        for j in range(columns):
            unit = second[j]
            number = reference_numbers[unit]
            middle = j * rows // columns
            for i in range(max(0, middle - WINDOW), min(rows, middle + WINDOW + 1)):
                weight = nearness[distance(i, of_rows, j, of_columns)]
                weights[i] += weight
                column_weights[j] += weight
                if first[i] == unit and same[unit]:
                    explained[i] += weight
                    column_explained[j] += weight
                elif number >= 0 and foreign_numbers[first[i]] >= 0:
                    place = place_of(places, links, foreign_numbers[first[i]], number)
                    if place >= 0:
                        explained[i] += weight * shares[place, 1]
                        column_explained[j] += weight * shares[place, 0]
        gained = information = 0.0
        for i in range(rows):
            chance = foreign_chances[first[i]]
            share = explained[i] / weights[i] if weights[i] > 0 else 0.0
            gained += math.log(CHANCE + (1 - CHANCE) * share / chance)
            information -= math.log(chance)
        for j in range(columns):
            chance = reference_chances[second[j]]
            gained += math.log(CHANCE + (1 - CHANCE) * column_explained[j] / column_weights[j] / chance)
            information -= math.log(chance)
        if information > 0:
            similarities[row] = gained / information
    return similarities
