"""Splits sentences into units: words (the project's tokens), character trigrams, or SentencePiece pieces.

Bare words and trigrams leave out tokens without a letter or digit.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np
import numpy.typing as npt

from paraforge.base.errors import InputError
from paraforge.base.text.ragged import offsets_of, ranges
from paraforge.base.text.tokens import TokenColumn, tokenize_columns
from paraforge.base.text.vocabulary import WORD, Unit

LETTER_OR_DIGIT = re.compile(r"[^\W_]")
_CODE_BITS = 21
"""Bits of a Unicode code point: three of them fit in 63 bits."""


class Units:
    """The units of one name, by which encoders and files refer to them.

    word: Moses tokens, lower-cased.
    trigram: character trigrams of the tokens joined by spaces, with one space before and one after
        (definition of Trigram); they cross word borders: `a dog` has ` a `, `a d`, ` do`, `dog`, `og `.
    bare_word, bare_trigram: the same without tokens that have no letter or digit.
    word_trigram: the trigrams of each token alone, followed by the token twice, so that a common word weighs
        about as much as its trigrams. A tab before a word distinguishes it from a trigram.
    fixed_vocabulary: all units and the unknown one if the splitter has its own vocabulary, otherwise None.
    """

    fixed_vocabulary: tuple[list[str], str] | None = None

    def __init__(self, name: Unit = WORD) -> None:
        self.name: Unit = name

    def cut(self, *columns: Any) -> tuple[TokenColumn, ...]:
        """Split string columns (pyarrow) into units over one shared vocabulary."""
        words = tokenize_columns(*columns)
        if self.name.startswith("bare_"):
            words = tuple(map(without_punctuation, words))
        if self.name == "word_trigram":
            parts = parts_of_words(words[0].vocabulary)
            return tuple(_parts_of_column(column, parts) for column in words)
        return _trigrams_of(words) if self.name.endswith("trigram") else words


def _parts_of_column(words: TokenColumn, parts: TokenColumn) -> TokenColumn:
    """Replace each token by its parts; parts: of each word of the vocabulary."""
    lengths = parts.lengths[words.ids]
    ids = parts.ids[ranges(parts.offsets[words.ids], lengths)]
    return TokenColumn(ids, offsets_of(lengths)[words.offsets], parts.vocabulary)


class Pieces(Units):
    """SentencePiece pieces of the lower-cased text; the model's own vocabulary is the vocabulary."""

    def __init__(self, model: Path) -> None:
        super().__init__("sentencepiece")
        self._processor = load_processor(model)
        self._pieces = [self._processor.id_to_piece(number) for number in range(len(self._processor))]
        self.fixed_vocabulary = (self._pieces, self._pieces[self._processor.unk_id()])

    def cut(self, *columns: Any) -> tuple[TokenColumn, ...]:
        """Return the pieces of each text; a null or blank text has none."""
        result = []
        for column in columns:
            texts = [(text or "").lower() for text in column.to_pylist()]
            rows = self._processor.encode(texts, num_threads=1)
            offsets = offsets_of([len(row) for row in rows])
            ids = np.fromiter((number for row in rows for number in row), np.int32, int(offsets[-1]))
            result.append(TokenColumn(ids, offsets, self._pieces))
        return tuple(result)


def load_processor(path: Path) -> Any:
    """Load a SentencePiece model. Returns ``sentencepiece.SentencePieceProcessor``. Raises InputError if the
    file is missing or is no SentencePiece model."""
    import sentencepiece

    if not path.is_file():
        raise InputError(
            "no such SentencePiece model",
            path,
            remedy="A model needs the SentencePiece file it was trained with.",
        )
    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(path.read_bytes())  # the constructor takes an empty file for none
    except (RuntimeError, OSError) as error:
        raise InputError("not a SentencePiece model, or damaged", path) from error
    return processor


def make_units(name: str, sentencepiece_model: Path | None = None) -> Units:
    """Return the splitter with this name: word, trigram, bare_word, bare_trigram, word_trigram or
    sentencepiece. Raises InputError if the name is unknown, or sentencepiece has no model."""
    if name == "sentencepiece":
        if sentencepiece_model is None:
            raise InputError("SentencePiece units need a SentencePiece model")
        return Pieces(sentencepiece_model)
    if name not in get_args(Unit):
        raise InputError(f"unknown units '{name}'; use {', '.join(get_args(Unit))}")
    return Units(cast("Unit", name))


def without_punctuation(column: TokenColumn) -> TokenColumn:
    """Return the tokens that have a letter or digit, over the same vocabulary."""
    bare = np.array([LETTER_OR_DIGIT.search(token) is not None for token in column.vocabulary], dtype=bool)
    kept = bare[column.ids]
    return TokenColumn(column.ids[kept], offsets_of(kept)[column.offsets], column.vocabulary)


def _trigrams_of(columns: Sequence[TokenColumn]) -> tuple[TokenColumn, ...]:
    keys, offsets = zip(*map(trigram_keys, columns), strict=True)
    distinct, ids = np.unique(np.concatenate(keys), return_inverse=True)
    vocabulary = [_trigram(int(key)) for key in distinct]
    result = []
    first = 0
    for column_offsets in offsets:
        last = first + int(column_offsets[-1])
        result.append(TokenColumn(ids[first:last].astype(np.int32), column_offsets, vocabulary))
        first = last
    return tuple(result)


def parts_of_words(words: Sequence[str]) -> TokenColumn:
    """Return a row for each word: its trigrams between two spaces, then the word twice, after a tab."""
    count = len(words)
    rows = TokenColumn(np.arange(count, dtype=np.int32), np.arange(count + 1, dtype=np.int64), list(words))
    (trigrams,) = _trigrams_of([rows])
    first = len(trigrams.vocabulary)
    twice = np.repeat(np.arange(first, first + count, dtype=np.int32), 2)
    ids = np.insert(trigrams.ids, np.repeat(trigrams.offsets[1:], 2), twice)
    vocabulary = [*trigrams.vocabulary, *(f"\t{word}" for word in words)]
    return TokenColumn(ids, trigrams.offsets + 2 * rows.offsets, vocabulary)


def trigram_keys(column: TokenColumn) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Return the trigrams of every row as numbers (three code points of 21 bits), and the rows' offsets among
    them."""
    # Every token is written with a space after it; the space at the start of a row counts as one more token.
    text = "".join(f"{token} " for token in column.vocabulary) + " "
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint64)
    token_lengths = np.array([len(token) + 1 for token in column.vocabulary] + [1], dtype=np.int64)
    token_starts = np.cumsum(token_lengths) - token_lengths

    rows = len(column)
    with_border = np.insert(column.ids.astype(np.int64), column.offsets[:-1], len(column.vocabulary))
    lengths = token_lengths[with_border]
    ends = np.cumsum(lengths)
    characters = codes[ranges(token_starts[with_border], lengths)]

    row_ends = ends[column.offsets[1:] + np.arange(rows)] if rows else np.empty(0, dtype=np.int64)
    row_lengths = np.diff(row_ends, prepend=0)
    counts = np.maximum(row_lengths - 2, 0)
    starts = ranges(row_ends - row_lengths, counts)
    bits = np.uint64(_CODE_BITS)
    keys = (characters[starts] << (bits + bits)) | (characters[starts + 1] << bits) | characters[starts + 2]
    return keys, offsets_of(counts)


def _trigram(key: int) -> str:
    mask = (1 << _CODE_BITS) - 1
    return chr(key >> (2 * _CODE_BITS)) + chr((key >> _CODE_BITS) & mask) + chr(key & mask)
