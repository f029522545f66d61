"""Normal forms for comparing texts, sets of texts in such a form, and one-line texts for line-oriented
tools.

Every comparison of texts (duplicates, decontamination, splits, groups, near duplicates, triplets) uses one of
two forms. :func:`fold` removes differences that a reader does not see: case, invisible characters, and how
a character is encoded. :func:`normalize` also removes punctuation.

U+0085, U+2028 and U+2029 are text: nothing here splits lines at them.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from paraforge.base.files import hash_json

# Patterns for both RE2 and Python contain the characters themselves, because the two escape those above
# U+007F differently.
BREAKS = "[\t\n\x0b\x0c\r]+"
CONTROLS = "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]"
# Unicode's Default_Ignorable_Code_Point: soft hyphens, joiners, direction marks, selectors, fillers.
IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_ROWS_AT_ONCE = 1 << 16
_OTHER, _WORD, _MARK, _LINE = range(4)
_SPACE, _LINE_FEED = 32, 10
_Codes = NDArray[np.uint32]


def without_controls(text: str) -> str:
    """Return the text on one line: line breaks and tabs become a space, control characters are removed."""
    return re.sub(CONTROLS, "", re.sub(BREAKS, " ", text))


def fold(texts: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Normalize texts for comparisons in which punctuation counts: equal results look the same to a reader.

    Invisible characters (Unicode's default-ignorable code points) are removed, compatibility characters are
    composed (NFKC), case is folded in full (ß is ss, final ς is σ), and a combining mark is kept only after a
    letter or digit. A line feed becomes a space. Nulls stay null.
    """
    return _apply(texts, _fold, pc.ascii_lower)


def normalize(texts: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Reduce texts to their words: :func:`fold`, and every run of other characters becomes one space.

    ``"It’s  5 o'clock!"`` gives ``"it s 5 o clock"``. Nulls stay null; a text without a letter or digit
    gives ``""``.
    """
    from paraforge.base.text.ascii_words import ascii_words  # takes half a second

    return _apply(texts, lambda text: _words(_fold(text)), ascii_words)


def _apply(
    texts: pa.Array | pa.ChunkedArray, change: Callable[[str], str], of_ascii: Callable[[pa.Array], pa.Array]
) -> pa.Array | pa.ChunkedArray:
    """Apply ``of_ascii`` to ASCII texts, and ``change`` to many other texts at once, joined by line feeds."""
    if isinstance(texts, pa.ChunkedArray):
        return pa.chunked_array([_apply(chunk, change, of_ascii) for chunk in texts.chunks], texts.type)
    lines = pc.replace_substring(pc.fill_null(texts, ""), "\n", " ")
    plain = pc.string_is_ascii(lines).to_numpy(zero_copy_only=False)
    results = of_ascii(lines.filter(pa.array(plain)))
    if not plain.all():
        others = lines.filter(pa.array(~plain))
        pieces = [results]
        for first in range(0, len(others), _ROWS_AT_ONCE):
            rows = others[first : first + _ROWS_AT_ONCE].cast(pa.string())
            if pc.any(pc.match_substring_regex(rows, f"[{IGNORABLE}]")).as_py():
                rows = pc.replace_substring_regex(rows, f"[{IGNORABLE}]+", "")
            joined = pc.binary_join(pa.ListArray.from_arrays([0, len(rows)], rows), "\n")[0].as_py()
            pieces.append(pc.split_pattern(pa.array([change(joined)], texts.type), "\n").values)
        place = np.where(plain, np.cumsum(plain), plain.sum() + np.cumsum(~plain)) - 1
        results = pa.concat_arrays(pieces).take(pa.array(place))
    return pc.if_else(texts.is_valid(), results, pa.scalar(None, texts.type)) if texts.null_count else results


def _fold(text: str) -> str:
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    codes = _codes(text)
    classes = _classes()[codes]
    marks = classes == _MARK
    if not marks.any():
        return text
    kept = ~marks | _after_words(classes)
    return text if kept.all() else _text(codes[kept])


def _words(text: str) -> str:
    codes = _codes(text)
    classes = _classes()[codes]
    kept = classes == _WORD
    if (marks := classes == _MARK).any():
        kept |= marks & _after_words(classes)
    spaces = ~kept & (classes != _LINE)
    codes = np.where(spaces, np.uint32(_SPACE), codes)
    # Each run of spaces becomes one space; there are none at the ends of lines.
    begins = np.ones(len(codes), bool)
    begins[1:] = ~spaces[:-1] & (classes[:-1] != _LINE)
    begins[:1] = False
    codes, spaces = (array[~spaces | begins] for array in (codes, spaces))
    last = np.ones(len(codes), bool)
    last[:-1] = codes[1:] == _LINE_FEED
    return _text(codes[~(spaces & last)])


def _codes(text: str) -> _Codes:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")


def _text(codes: _Codes) -> str:
    return codes.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")


def _after_words(classes: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return which combining marks follow a letter or digit, directly or after other marks."""
    places = np.where(classes == _MARK, 0, np.arange(len(classes)))
    bases: NDArray[np.bool_] = classes[np.maximum.accumulate(places)] == _WORD
    return bases


@cache
def _classes() -> NDArray[np.uint8]:
    """Return the class of each code point: part of a word, combining mark, line feed or something else."""
    classes = np.full(0x110000, _OTHER, np.uint8)
    names = {"L": _WORD, "N": _WORD, "M": _MARK}
    # Planes 2 and 3 have only ideographs; planes from 4 on have only selectors and private use.
    classes[:0x20000] = [names.get(unicodedata.category(chr(code))[0], _OTHER) for code in range(0x20000)]
    classes[0x20000:0x40000] = _WORD
    classes[_LINE_FEED] = _LINE
    return classes


class SentenceSet:
    """Distinct sentences of named sets, in memory, compared in the form of `normalize`.

    names: of the sets. sentences: the distinct sentences, normalized (pyarrow); none is empty.
    """

    def __init__(self, sets: Mapping[str, Iterable[str | None]]) -> None:
        """Build the set from the unchanged sentences of named sets; blank ones are left out."""
        self.names = list(sets)
        columns = [normalize(pa.array(list(texts), pa.string())) for texts in sets.values()]
        numbers = np.repeat(np.arange(len(columns)), [len(column) for column in columns])
        texts = pa.concat_arrays([pa.array([], pa.string()), *columns])
        full = pc.fill_null(pc.not_equal(texts, ""), False).to_numpy(zero_copy_only=False)
        encoded = texts.filter(pa.array(full)).dictionary_encode()
        self.sentences = encoded.dictionary
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        # Sorted numbers of (sentence, set), so that the sets of a sentence are adjacent.
        count = max(len(columns), 1)
        owners = np.unique(codes * count + numbers[full])
        self._owners = owners % count
        self._starts = np.searchsorted(owners // count, np.arange(len(self.sentences) + 1))

    @property
    def digest(self) -> str:
        """Hash of the sentences."""
        return hash_json(sorted(self.sentences.to_pylist()))

    def find(self, texts: Any) -> NDArray[np.int64]:
        """Return the index in `sentences` of each text of a string column, -1 if it is in no set."""
        column = normalize(texts.cast(pa.string()))
        places = pc.fill_null(pc.index_in(column, value_set=self.sentences), -1)
        return places.to_numpy(zero_copy_only=False).astype(np.int64)

    def holds(self, texts: Any) -> NDArray[np.bool_]:
        """Return which texts of a string column are in a set."""
        return self.find(texts) >= 0

    def sets_of(self, sentence: int) -> list[str]:
        """Return the names of the sets that contain a sentence, given its index."""
        owners = self._owners[self._starts[sentence] : self._starts[sentence + 1]]
        return [self.names[owner] for owner in owners.tolist()]
