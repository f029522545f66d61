"""What the tokeniser has to know about the distinct chunks of a column, found out from their bytes."""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.base.text import moses
from paraforge.base.text.ragged import IntArray, offsets_of, text_bytes

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
    starts_open: starts with a comma or an apostrophe, so its tokens depend on whether it is first.
    ends_open: ends with a comma or an apostrophe, so they depend on whether it is last.
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
        # The empty string has neither first nor last byte; a space stands for them and means nothing.
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

        # restore_multidots would take these letters for the marker of a run of dots.
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
        """The lower-cased word of every chunk that is a word, with or without a mark; null for others."""
        without_mark = pc.utf8_slice_codeunits(self.strings, 0, -1)
        words = pc.if_else(pa.array(self.word), self.strings, without_mark)
        known = pa.array(self.word | self.word_and_mark | self.word_and_stop)
        return pc.if_else(known, pc.ascii_lower(words), pa.scalar(None, pa.large_string()))


def _count(members: BoolArray, data: npt.NDArray[np.uint8], offsets: IntArray) -> IntArray:
    running = offsets_of(members[data])
    return running[offsets[1:]] - running[offsets[:-1]]


def _to_numpy(mask: Any) -> BoolArray:
    return mask.to_numpy(zero_copy_only=False).astype(bool)
