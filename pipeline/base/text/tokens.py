"""The project's only tokenizer: lower-cased Moses tokens (sacremoses' English rules) of a text or a column.

Every length, overlap, score and count is over these tokens. A column is tokenized by its distinct chunks
(runs without white space). Arrow splits the texts and finds the distinct chunks, each chunk is tokenized once
for each context that it occurs in (`moses` explains why that gives sacremoses' tokens), and array operations
reassemble the sentences.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.base.text import moses
from paraforge.base.text.ragged import IntArray, offsets_of, ranges, text_bytes

BoolArray = npt.NDArray[np.bool_]

_WHITE_SPACE: Final = re.compile(r"\s")
_WORD_BYTES: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-"


def _byte_set(members: bytes) -> BoolArray:
    table = np.zeros(256, dtype=bool)
    table[list(members)] = True
    return table


_IS_WORD: Final = _byte_set(_WORD_BYTES)
_IS_SPACE_OR_CONTROL: Final = _byte_set(bytes(range(0x21)))
_IS_HIGH: Final = _byte_set(bytes(range(0x80, 0x100)))
# PAD_NOT_ISALNUM separates each of these from its word, COMMA_SEPARATE_1, _2 or _3 the comma, in any
# context.
_IS_MARK: Final = _byte_set(b',?!;:)"')
_STARTS: Final = np.zeros(256, dtype=np.int64)
_STARTS[list(b"abcdefghijklmnopqrstuvwxyz")] = moses.Following.LOWER
_STARTS[list(b"0123456789")] = moses.Following.DIGIT


class Chunks:
    """The distinct chunks of a column, numbered, one of which may be the empty string.

    strings: pyarrow string array. starts: int64, what each starts with (`moses.Following`).
    starts_open: starts with a comma or an apostrophe, so its tokens depend on whether it is the first chunk.
    ends_open: ends with a comma or an apostrophe, so they depend on whether it is the last chunk.
    ends_with_stop: ends with a full stop, so they depend on what follows.
    starts_quoted, ends_quoted: starts, ends with an apostrophe.
    irregular: has white space or a control character in it.
    word: ASCII letters, digits and hyphens alone: one token in every context.
    word_and_mark: such a word and one mark: two tokens in every context.
    word_and_stop: such a word and a full stop: two tokens unless a lower-case letter follows.
    """

    def __init__(self, strings: Any) -> None:
        self.strings = strings.cast(pa.large_string())
        data, offsets = text_bytes(self.strings)
        length = np.diff(offsets)
        # An empty string has no first or last byte, so a space is used instead.
        padded = np.append(data, np.uint8(0x20))
        first = np.where(length > 0, padded[offsets[:-1]], 0x20)
        last = np.where(length > 0, padded[offsets[1:] - 1], 0x20)

        self.starts = _STARTS[first]
        self.starts_quoted = first == ord("'")
        self.ends_quoted = last == ord("'")
        self.starts_open = self.starts_quoted | (first == ord(","))
        self.ends_open = self.ends_quoted | (last == ord(","))
        self.ends_with_stop = last == ord(".")

        self.irregular = _count(_IS_SPACE_OR_CONTROL, data, offsets) > 0
        for index in np.flatnonzero(_count(_IS_HIGH, data, offsets)).tolist():
            chunk = self.strings[index].as_py()
            self.irregular[index] |= _WHITE_SPACE.search(chunk) is not None
            if moses.is_lower(chunk[0]):
                self.starts[index] = moses.Following.LOWER

        # restore_multidots would mistake these letters for the marker of a run of dots.
        no_marker = ~_to_numpy(pc.match_substring(self.strings, "DOTMULTI"))
        word_bytes = _count(_IS_WORD, data, offsets)
        self.word = no_marker & (word_bytes == length) & (length > 0)
        word_and_one = no_marker & (word_bytes == length - 1) & (length > 1)
        self.word_and_mark = word_and_one & _IS_MARK[last]
        prefixes = pa.array(
            sorted(f"{prefix}." for prefix in moses.nonbreaking_prefixes()), pa.large_string()
        )
        self.word_and_stop = (
            word_and_one & self.ends_with_stop & ~_to_numpy(pc.is_in(self.strings, value_set=prefixes))
        )
        self.last = last

    def __len__(self) -> int:
        return len(self.strings)

    def lowered_words(self) -> Any:
        """Return the lower-cased word of every chunk that is a word, with or without a mark; null for
        others."""
        without_mark = pc.utf8_slice_codeunits(self.strings, 0, -1)
        words = pc.if_else(pa.array(self.word), self.strings, without_mark)
        known = pa.array(self.word | self.word_and_mark | self.word_and_stop)
        return pc.if_else(known, pc.ascii_lower(words), pa.scalar(None, pa.large_string()))


def _count(members: BoolArray, data: npt.NDArray[np.uint8], offsets: IntArray) -> IntArray:
    running = offsets_of(members[data])
    return running[offsets[1:]] - running[offsets[:-1]]


def _to_numpy(mask: Any) -> BoolArray:
    return mask.to_numpy(zero_copy_only=False).astype(bool)


TOKENIZER_NAME: Final = "moses-lc"
"""The tokenizer's name in a corpus' metadata and signature."""
LIBRARIES: Final = ("numba", "numpy", "sacremoses")
"""Libraries whose versions decide tokens and everything computed from them."""


@dataclass(frozen=True)
class TokenColumn:
    """The tokens of a column of texts.

    ids: int32, all tokens of all rows one after the other, as indices into `vocabulary`.
    offsets: int64, rows + 1; row k has the tokens offsets[k] to offsets[k + 1]. A null text has none.
    vocabulary: the distinct tokens, in no particular order; some may be in no row of this column.
    """

    ids: npt.NDArray[np.int32]
    offsets: IntArray
    vocabulary: list[str]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> IntArray:
        """Tokens of each row, int64."""
        return np.diff(self.offsets)

    @property
    def row_numbers(self) -> IntArray:
        """The row of each token, int64, as long as `ids`."""
        return np.repeat(np.arange(len(self), dtype=np.int64), self.lengths)

    def occurrences(self) -> dict[str, int]:
        """Return how often each word occurs; words that do not occur are left out."""
        counts = np.bincount(self.ids, minlength=len(self.vocabulary))
        return {self.vocabulary[word]: int(counts[word]) for word in np.flatnonzero(counts).tolist()}

    def slice(self, first: int, last: int) -> TokenColumn:
        """Return rows `first` to `last` - 1 over the same vocabulary; only offsets are copied."""
        offsets = self.offsets[first : last + 1]
        return TokenColumn(self.ids[offsets[0] : offsets[-1]], offsets - offsets[0], self.vocabulary)

    def filter(self, rows: BoolArray) -> TokenColumn:
        """Return the rows for which `rows` is True, over the same vocabulary."""
        lengths = self.lengths
        ids = self.ids[np.repeat(rows, lengths)]
        return TokenColumn(ids, offsets_of(lengths[rows]), self.vocabulary)

    def sums(self, table: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return for each row the sum of its tokens' rows of `table`, (vocabulary, n): (rows, n) float32."""
        from paraforge.base.text.ngrams import sums_of_rows  # numba takes time to import

        return np.asarray(sums_of_rows(self.ids, self.offsets, table))

    def row(self, index: int) -> list[str]:
        """Return the tokens of one row as strings."""
        return [self.vocabulary[i] for i in self.ids[self.offsets[index] : self.offsets[index + 1]]]

    def rows(self) -> list[list[str]]:
        """Return the tokens of all rows as strings."""
        return [self.row(index) for index in range(len(self))]


def tokenize(text: str) -> list[str]:
    """Return the tokens of one text: `["it", "'s", "fine", "."]`."""
    return moses.sentence_tokens(text)


def tokenize_column(texts: Any) -> TokenColumn:
    """Return the tokens of every text of a string column (pyarrow array or chunked array; null is an empty
    text)."""
    return tokenize_columns(texts)[0]


def tokenize_columns(*columns: Any) -> tuple[TokenColumn, ...]:
    """Return the tokens of several string columns (pyarrow; of any lengths) over one shared vocabulary."""
    texts = pa.chunked_array(
        [part.cast(pa.large_string()) for column in columns for part in _parts(column)],
        type=pa.large_string(),
    ).combine_chunks()
    joined = _tokenize(texts.fill_null(""))
    ends = list(accumulate(map(len, columns)))
    return tuple(joined.slice(end - len(column), end) for column, end in zip(columns, ends, strict=True))


def with_own_vocabulary(*columns: TokenColumn) -> tuple[TokenColumn, ...]:
    """Reduce columns over one vocabulary to the tokens that occur in them."""
    occurs = np.zeros(len(columns[0].vocabulary), dtype=bool)
    for column in columns:
        occurs[column.ids] = True
    vocabulary = [columns[0].vocabulary[number] for number in np.flatnonzero(occurs).tolist()]
    places = (np.cumsum(occurs) - 1).astype(np.int32)
    return tuple(TokenColumn(places[column.ids], column.offsets, vocabulary) for column in columns)


def _parts(column: Any) -> Sequence[Any]:
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def _tokenize(texts: Any) -> TokenColumn:
    codes, offsets, chunks = _split(texts)
    keys = codes * moses.CONTEXTS + _contexts(codes, offsets, chunks)
    pieces = _Pieces(len(chunks) * moses.CONTEXTS)
    pieces.add_chunks(chunks, keys)
    whole_rows = _irregular_rows(codes, offsets, chunks)
    if len(whole_rows):
        # One entry, with sacremoses' own tokens, replaces all chunks of an irregular row.
        entries = np.diff(offsets)
        keep = np.ones(len(codes), dtype=bool)
        keep[ranges(offsets[whole_rows], entries[whole_rows])] = False
        keep[offsets[whole_rows]] = True
        keys[offsets[whole_rows]] = pieces.add_texts(texts.take(pa.array(whole_rows)).to_pylist())
        keys = keys[keep]
        entries[whole_rows] = 1
        offsets = offsets_of(entries)
    counts = pieces.counts[keys]
    ids = pieces.ids[ranges(pieces.starts[keys], counts)]
    return TokenColumn(ids, offsets_of(counts)[offsets], list(pieces.vocabulary))


def _split(texts: Any) -> tuple[IntArray, IntArray, Chunks]:
    """Return the chunk numbers of all rows one after the other, each row's start among them, and the distinct
    chunks."""
    lists = pc.split_pattern(texts, pattern=" ")
    encoded = lists.flatten().dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    offsets = lists.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    offsets -= offsets[0]
    empty = pc.index(encoded.dictionary, "").as_py()
    if empty >= 0:  # the chunk is between two spaces, at the edge of a text, or an empty text
        full = codes != empty
        offsets = offsets_of(full)[offsets]
        codes = codes[full]
    return codes, offsets, Chunks(encoded.dictionary)


def _contexts(codes: IntArray, offsets: IntArray, chunks: Chunks) -> IntArray:
    """Return the context of every chunk, reduced to OTHER without FIRST if the chunk does not depend on
    it."""
    occupied = np.flatnonzero(np.diff(offsets))
    firsts = offsets[occupied]
    lasts = offsets[occupied + 1] - 1
    context = np.full(len(codes), moses.Following.OTHER, dtype=np.int64)
    before_stop = np.flatnonzero(chunks.ends_with_stop[codes[:-1]])
    context[before_stop] = chunks.starts[codes[before_stop + 1]]
    open_end = chunks.ends_with_stop[codes[lasts]] | chunks.ends_open[codes[lasts]]
    context[lasts] = np.where(open_end, moses.Following.NOTHING, moses.Following.OTHER)
    context[firsts] += moses.FIRST * chunks.starts_open[codes[firsts]]
    return context


def _irregular_rows(codes: IntArray, offsets: IntArray, chunks: Chunks) -> IntArray:
    irregular = chunks.irregular[codes]
    # Two apostrophes that meet across a row's border count too, because tokenizing a whole row is never
    # wrong.
    irregular[1:] |= chunks.ends_quoted[codes[:-1]] & chunks.starts_quoted[codes[1:]]
    return np.unique(np.searchsorted(offsets, np.flatnonzero(irregular), side="right") - 1)


class _Pieces:
    """Token ids of every key, where a key is chunk number x CONTEXTS + context, or stands for a whole text.
    Key k has `counts[k]` tokens, from `starts[k]` in `ids` on."""

    def __init__(self, keys: int) -> None:
        self.vocabulary: dict[str, int] = {}
        self.counts: IntArray = np.zeros(keys, dtype=np.int64)
        self.starts: IntArray = np.zeros(keys, dtype=np.int64)
        self.ids: npt.NDArray[np.int32] = np.zeros(0, dtype=np.int32)

    def add_chunks(self, chunks: Chunks, keys: IntArray) -> None:
        occurs = np.zeros(len(self.counts), dtype=bool)
        occurs[keys] = True
        used_keys = np.flatnonzero(occurs)
        chunk, context = np.divmod(used_keys, moses.CONTEXTS)

        words = chunks.lowered_words().dictionary_encode()
        self.vocabulary = {word: index for index, word in enumerate(words.dictionary.to_pylist())}
        word_ids = words.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        is_word = chunks.word[chunk]
        stopped = chunks.word_and_stop[chunk] & (context != moses.Following.LOWER)
        is_word_and_mark = chunks.word_and_mark[chunk] | stopped
        mark_ids = np.zeros(256, dtype=np.int32)
        for mark in np.unique(chunks.last[chunk[is_word_and_mark]]).tolist():
            mark_ids[mark] = self._id(chr(mark))
        self._add(used_keys[is_word], np.ones(int(is_word.sum()), dtype=np.int64), word_ids[chunk[is_word]])
        pairs = np.stack(
            [word_ids[chunk[is_word_and_mark]], mark_ids[chunks.last[chunk[is_word_and_mark]]]], axis=1
        ).ravel()
        self._add(used_keys[is_word_and_mark], np.full(int(is_word_and_mark.sum()), 2, dtype=np.int64), pairs)

        other = ~(is_word | is_word_and_mark)
        strings = chunks.strings.take(pa.array(chunk[other])).to_pylist()
        self._add_tokens(
            used_keys[other],
            # The rows of irregular chunks are tokenized whole.
            [
                () if irregular else moses.chunk_tokens(string, context)
                for string, context, irregular in zip(
                    strings, context[other].tolist(), chunks.irregular[chunk[other]].tolist(), strict=True
                )
            ],
        )

    def add_texts(self, texts: list[str]) -> IntArray:
        """Tokenize whole texts. Returns their keys."""
        first = len(self.counts)
        keys = np.arange(first, first + len(texts), dtype=np.int64)
        self.counts = np.append(self.counts, np.zeros(len(texts), dtype=np.int64))
        self.starts = np.append(self.starts, np.zeros(len(texts), dtype=np.int64))
        self._add_tokens(keys, [tokenize(text) for text in texts])
        return keys

    def _id(self, token: str) -> int:
        return self.vocabulary.setdefault(token, len(self.vocabulary))

    def _add_tokens(self, keys: IntArray, token_lists: Sequence[Sequence[str]]) -> None:
        counts = np.array([len(tokens) for tokens in token_lists], dtype=np.int64)
        ids = [self._id(token) for tokens in token_lists for token in tokens]
        self._add(keys, counts, np.array(ids, dtype=np.int32))

    def _add(self, keys: IntArray, counts: IntArray, ids: npt.NDArray[Any]) -> None:
        self.counts[keys] = counts
        self.starts[keys] = len(self.ids) + offsets_of(counts)[:-1]
        self.ids = np.concatenate([self.ids, ids.astype(np.int32, copy=False)])
