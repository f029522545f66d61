"""The project's one tokeniser: Moses tokens (sacremoses' English rules), each lower-cased, of a text or a column of texts.

Every length, overlap, score and count is over these tokens. A column is tokenised by its distinct chunks (runs without
white space): Arrow splits the texts and finds the distinct chunks, Python tokenises each once in every context that it
occurs in (`moses` says why that gives sacremoses' tokens), and array operations put the sentences together again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.scoring import moses

TOKENIZER_NAME: Final = "moses-lc"
"""How a corpus' metadata and signature name the tokeniser."""

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TokenColumn:
    """The tokens of a column of texts.

    ids: int32, all tokens of all rows one after the other, as indices into `vocabulary`.
    offsets: int64, rows + 1; row k has the tokens offsets[k] to offsets[k + 1]. A null text has none.
    vocabulary: the distinct tokens, in no particular order; it may hold tokens that no row of this column has.
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

    def row(self, index: int) -> list[str]:
        """The tokens of one row as strings."""
        return [self.vocabulary[i] for i in self.ids[self.offsets[index] : self.offsets[index + 1]]]

    def rows(self) -> list[list[str]]:
        """The tokens of all rows as strings."""
        return [self.row(index) for index in range(len(self))]


def tokenize(text: str) -> list[str]:
    """The tokens of one text: `["it", "'s", "fine", "."]`."""
    return moses.sentence_tokens(text)


def tokenize_column(texts: Any) -> TokenColumn:
    """The tokens of every text of a string column (pyarrow Array or ChunkedArray; a null counts as an empty text)."""
    return tokenize_columns(texts)[0]


def tokenize_columns(*columns: Any) -> tuple[TokenColumn, ...]:
    """The tokens of several string columns (pyarrow; of any lengths) over one shared vocabulary."""
    lengths = [len(column) for column in columns]
    texts = pa.chunked_array(
        [chunk.cast(pa.large_string()) for column in columns for chunk in _chunks_of(column)],
        type=pa.large_string(),
    ).combine_chunks()
    joined = _tokenize(texts.fill_null(""))
    result = []
    first = 0
    for length in lengths:
        offsets = joined.offsets[first : first + length + 1]
        ids = joined.ids[offsets[0] : offsets[-1]]
        result.append(TokenColumn(ids, offsets - offsets[0], joined.vocabulary))
        first += length
    return tuple(result)


def _chunks_of(column: Any) -> Sequence[Any]:
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


@lru_cache(maxsize=1)
def _chunk_tokenizer() -> moses.ChunkTokenizer:
    return moses.ChunkTokenizer()


def _tokenize(texts: Any) -> TokenColumn:
    codes, offsets, chunks = _split(texts)
    keys = codes * moses.CONTEXTS + _contexts(codes, offsets, chunks)
    whole_rows = _irregular_rows(codes, offsets, chunks)
    number_of_keys = len(chunks) * moses.CONTEXTS

    # An irregular row is one entry of its own, tokenised whole, that stands in the place of the row's chunks.
    if len(whole_rows):
        entries = np.diff(offsets)
        keep = np.ones(len(codes), dtype=bool)
        keep[_ragged_positions(offsets[whole_rows], entries[whole_rows])] = False
        keep[offsets[whole_rows]] = True
        keys[offsets[whole_rows]] = number_of_keys + np.arange(len(whole_rows))
        keys = keys[keep]
        entries[whole_rows] = 1
        offsets = _offsets(entries)

    vocabulary: dict[str, int] = {}
    pieces: list[int] = []
    piece_counts = np.zeros(number_of_keys + len(whole_rows), dtype=np.int64)
    occurring = np.zeros(number_of_keys, dtype=bool)
    occurring[keys[keys < number_of_keys]] = True
    tokens_of = _chunk_tokenizer().tokens
    for key in np.flatnonzero(occurring).tolist():
        tokens = tokens_of(chunks[key // moses.CONTEXTS], key % moses.CONTEXTS)
        piece_counts[key] = len(tokens)
        for token in tokens:
            pieces.append(vocabulary.setdefault(token, len(vocabulary)))
    for number, text in enumerate(texts.take(pa.array(whole_rows)).to_pylist(), start=number_of_keys):
        whole = tokenize(text)
        piece_counts[number] = len(whole)
        pieces.extend([vocabulary.setdefault(token, len(vocabulary)) for token in whole])

    piece_starts = _offsets(piece_counts)[:-1]
    counts = piece_counts[keys]
    ids = np.array(pieces, dtype=np.int32)[_ragged_positions(piece_starts[keys], counts)]
    return TokenColumn(ids, _offsets(counts)[offsets], list(vocabulary))


def _split(texts: Any) -> tuple[IntArray, IntArray, list[str]]:
    """Chunk numbers of all rows one after the other, where each row starts among them, and the distinct chunks."""
    lists = pc.split_pattern(texts, pattern=" ")
    encoded = lists.flatten().dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    offsets = lists.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    offsets -= offsets[0]
    chunks: list[str] = encoded.dictionary.to_pylist()
    if "" in chunks:  # between two spaces, or at the edge of the text
        full = codes != chunks.index("")
        offsets = _offsets(full)[offsets]
        codes = codes[full]
    return codes, offsets, chunks


def _contexts(codes: IntArray, offsets: IntArray, chunks: list[str]) -> IntArray:
    """The context of every chunk, made OTHER and not FIRST where the chunk does not depend on it."""
    following = np.empty(len(codes), dtype=np.int64)
    starts = np.array([moses.starts_with(chunk) if chunk else 0 for chunk in chunks], dtype=np.int64)
    following[:-1] = starts[codes[1:]]
    occupied = np.flatnonzero(np.diff(offsets))
    following[offsets[occupied + 1] - 1] = moses.Following.NOTHING
    # A full stop depends on what follows, a comma or an apostrophe only on whether something does.
    ends_with_stop = np.array([chunk[-1:] == "." for chunk in chunks], dtype=bool)[codes]
    ends_open = np.array([chunk[-1:] in (",", "'") for chunk in chunks], dtype=bool)[codes]
    ends_open &= following == moses.Following.NOTHING
    following[~(ends_with_stop | ends_open)] = moses.Following.OTHER
    first = offsets[occupied]
    starts_open = np.array([chunk[:1] in (",", "'") for chunk in chunks], dtype=bool)
    following[first] += moses.FIRST * starts_open[codes[first]]
    return following


def _irregular_rows(codes: IntArray, offsets: IntArray, chunks: list[str]) -> IntArray:
    """The rows that have to be tokenised whole, ascending."""
    irregular = np.array([moses.is_irregular(chunk) for chunk in chunks], dtype=bool)[codes]
    opens = np.array([chunk[:1] == "'" for chunk in chunks], dtype=bool)
    closes = np.array([chunk[-1:] == "'" for chunk in chunks], dtype=bool)
    # Two apostrophes over a row's border count too: tokenising a row whole is never wrong.
    irregular[1:] |= closes[codes[:-1]] & opens[codes[1:]]
    return np.unique(np.searchsorted(offsets, np.flatnonzero(irregular), side="right") - 1)


def _offsets(counts: npt.NDArray[Any]) -> IntArray:
    """0 and the running totals of counts, int64, one longer than counts."""
    offsets = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def _ragged_positions(starts: IntArray, counts: IntArray) -> IntArray:
    """starts[0], starts[0] + 1, ... (counts[0] of them), starts[1], ...: int64, as long as the sum of counts."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total, dtype=np.int64) + np.repeat(starts - (ends - counts), counts)
