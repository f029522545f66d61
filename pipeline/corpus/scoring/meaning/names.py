"""Names that one text has and the other has not, of the texts' own bytes: tokens are lower-cased."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from paraforge.base.compiled import compiled
from paraforge.base.text.ragged import text_bytes

MOST_WORDS: Final = 512
"""Words of a text that are looked at."""


def missing_names(first: Any, second: Any) -> npt.NDArray[np.int16]:
    """How many names of each side the other side lacks, (texts, 2) int16.

    A name is a word with a capital that does not begin a sentence. A word of the other side is its
    counterpart where both begin alike, have the same consonants, or one is an abbreviation with the other's
    first letter, so inflexions and transliterations are no difference. A text that is all in
    capitals has no names.

    first, second: string arrays (pyarrow) without nulls, of one length.
    """
    found = np.zeros((len(first), 2), np.int16)
    _missing_names(*text_bytes(first), *text_bytes(second), found)
    return found


# What a byte is: between words; also before the start of a sentence (a full stop, a colon, a bracket, a
# quotation mark); a letter, beyond ASCII too, where punctuation begins with C2 or E2; a capital; the first of
# what may be one beyond ASCII.
_BETWEEN, _START, _LETTER, _CAPITAL, _WIDE = range(5)
_KINDS: Final = np.array(
    [_START if one in b"!\"(.:?[`\xe2" else _CAPITAL if 65 <= one <= 90 else _WIDE if 0xC3 <= one <= 0xC5
     else _BETWEEN if one == 0xC2 or (one < 128 and not bytes([one]).isalpha()) else _LETTER
     for one in range(256)], np.uint8
)  # fmt: skip
_LOWER: Final = np.frombuffer(bytes(range(256)).lower(), np.uint8)
# Consonants as other alphabets' names may be spelt: c and q as k, z as s; 0 for other bytes.
_SOUNDS: Final = np.array(
    [ord(bytes([one]).translate(bytes.maketrans(b"cqz", b"kks"))) if one in b"bcdfgklmnpqrstvxz" else 0
     for one in _LOWER.tolist()], np.uint8
)  # fmt: skip


@compiled
def _words(text: Any, begins: Any, ends: Any, kinds: Any) -> int:
    """Where words are, and of each 0, 1 for a capital, 2 for all capitals; -1 where a sentence begins."""
    count = place = long = capitals = lower = 0
    starts = True
    while place < len(text) and count < MOST_WORDS:
        byte = text[place]
        if _KINDS[byte] < _LETTER:
            starts = starts or _KINDS[byte] == _START
            place += 3 if byte == 0xE2 else 2 if byte == 0xC2 else 1
            continue
        begin = place
        upper = 0
        while place < len(text) and _KINDS[text[place]] >= _LETTER:
            upper += _KINDS[text[place]] == _CAPITAL
            place += 1
        size = place - begin
        capital = _KINDS[byte] == _CAPITAL or (byte == 0xC3 and size > 1 and text[begin + 1] < 0x9F)
        capital = capital or ((byte == 0xC4 or byte == 0xC5) and size > 1 and text[begin + 1] % 2 == 0)
        begins[count], ends[count] = begin, place
        kinds[count] = 0 if not capital or size < 2 else 2 if upper == size else 1
        lower += upper < size
        if not starts and size > 3:
            long += 1
            capitals += capital
        if starts:
            kinds[count] = -1
        starts = False
        count += 1
    if not lower or (capitals > 2 and 2 * capitals > long):
        kinds[:count] = 0
    return count


@compiled
def _begin_alike(one: Any, i: int, one_end: int, other: Any, j: int, other_end: int) -> bool:
    """Whether the words from i and from j on may be one name, as they begin."""
    least = min(one_end - i, other_end - j)
    same = 0
    while same < least and _LOWER[one[i + same]] == _LOWER[other[j + same]]:
        same += 1
    return same == least or (same > 2 and 2 * same > least)


@compiled
def _sound_alike(one: Any, i: int, one_end: int, other: Any, j: int, other_end: int) -> bool:
    """Whether the words from i and from j on have the same consonants."""
    consonants = 0
    while True:
        while i < one_end and not _SOUNDS[one[i]]:
            i += 1
        while j < other_end and not _SOUNDS[other[j]]:
            j += 1
        if i == one_end or j == other_end:
            return consonants > 1 and i == one_end and j == other_end
        if _SOUNDS[one[i]] != _SOUNDS[other[j]]:
            return False
        consonants += 1
        i += 1
        j += 1


@compiled
def _has_letter(text: Any, begin: int, end: int, letter: int) -> bool:
    """Whether a word has a letter, which may be that of one of the words that it abbreviates."""
    place = begin
    while place < end and text[place] != letter:
        place += 1
    return place < end


@compiled
def _lacking(
    text: Any, begins: Any, ends: Any, kinds: Any, count: int,
    other: Any, other_begins: Any, other_ends: Any, other_kinds: Any, others: int,
) -> int:  # fmt: skip
    lacking = 0
    for i in range(count):
        if kinds[i] <= 0:
            continue
        begin, end, first = begins[i], ends[i], _LOWER[text[begins[i]]]
        # Mostly the counterpart is the same word, which is found soon.
        j = 0
        while j < others and not (
            _LOWER[other[other_begins[j]]] == first
            and _begin_alike(text, begin, end, other, other_begins[j], other_ends[j])
        ):
            j += 1
        found = j < others
        j = 0
        while j < others and not found:
            there, behind = other_begins[j], other_ends[j]
            found = (
                (other_kinds[j] == 2 and _has_letter(other, there, behind, text[begin]))
                or (kinds[i] == 2 and other_kinds[j] > 0 and _has_letter(text, begin, end, other[there]))
                or _sound_alike(text, begin, end, other, there, behind)
            )
            j += 1
        lacking += not found
    return lacking


@compiled
def _may_name(text: Any) -> bool:
    """Whether a word may be a name: without looking further, as most texts have only the capital of `I` and
    those that begin sentences."""
    for place in range(1, len(text)):
        kind = _KINDS[text[place]]
        if kind < _CAPITAL:
            continue
        before = place - 1
        if kind == _WIDE or text[before] >= 128:
            return True
        if _KINDS[text[before]] >= _LETTER or place + 1 == len(text) or _KINDS[text[place + 1]] < _LETTER:
            continue
        while before >= 0 and _KINDS[text[before]] == _BETWEEN:
            before -= 1
        if before >= 0 and _KINDS[text[before]] != _START:
            return True
    return False


@compiled
def _missing_names(first: Any, first_offsets: Any, second: Any, second_offsets: Any, found: Any) -> None:
    room = np.empty((6, MOST_WORDS), np.int64)
    begins_a, ends_a, kinds_a, begins_b, ends_b, kinds_b = (
        room[0],
        room[1],
        room[2],
        room[3],
        room[4],
        room[5],
    )
    for row in range(len(found)):
        a = first[first_offsets[row] : first_offsets[row + 1]]
        b = second[second_offsets[row] : second_offsets[row + 1]]
        if not (_may_name(a) or _may_name(b)):
            continue
        count_a = _words(a, begins_a, ends_a, kinds_a)
        count_b = _words(b, begins_b, ends_b, kinds_b)
        found[row, 0] = _lacking(a, begins_a, ends_a, kinds_a, count_a, b, begins_b, ends_b, kinds_b, count_b)
        found[row, 1] = _lacking(b, begins_b, ends_b, kinds_b, count_b, a, begins_a, ends_a, kinds_a, count_a)
