"""Cleans a block of rows column by column, and finds the rows to reject."""

import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from paraforge.base.text.lines import Changes
from paraforge.base.text.normalization import BREAKS, CONTROLS
from paraforge.base.text.ragged import text_bytes
from paraforge.base.text.repair import (
    decode_entities,
    has_doubled_quotes,
    has_lost_letters,
    has_markup,
    is_damaged,
    remove_invisible,
)
from paraforge.intake.bitext.parameters import Cleaning
from paraforge.intake.bitext.source import Block

REFUSED_CHARACTERS = 4_096
# Characters below U+0300 are in form C in any context. All of their UTF-8 bytes are below 0xCC.
_FIRST_COMBINING_BYTE = 0xCC
_COMBINING = "[^\\x00-\u02ff]"
_BLANK = {"source_text": "blank_source", "reference": "blank_reference", "translation": "blank_translation"}

# Scripts in which one character stands for several letters of other scripts (kana, ideographs, Hangul
# syllables): range of the first two UTF-8 bytes, and the number to add to the length for each character.
_DENSE = ((0xE381, 0xE383, 1), (0xE390, 0xE9BF, 2), (0xEAB0, 0xED9F, 1), (0xF0A0, 0xF0B3, 2))
EXAMPLE_CHARACTERS = 120
_NOTICED = {
    "markup": has_markup,
    "question_marks": has_lost_letters,
    "doubled_quotes": has_doubled_quotes,
}
_LONGER = 20  # characters; if no side is longer, the ratio of the lengths says little

Mask = NDArray[np.bool_]


@dataclass
class Findings:
    """Counts of what cleaning repaired, and of what it noticed and did not repair.

    changes: number of repaired texts or lines by kind of repair.
    noticed: number of kept rows by kind of remaining problem. examples: the first text of each kind.
    """

    changes: Changes = field(default_factory=Counter)
    noticed: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def update(self, other: "Findings") -> None:
        """Add the findings of later rows."""
        self.changes.update(other.changes)
        self.noticed.update(other.noticed)
        self.examples = {**other.examples, **self.examples}

    def notice(self, name: str, block: Block, masks: Mapping[str, Mask]) -> None:
        """Count the kept rows with the problem ``name``. masks: for each text column, which rows have it."""
        kept = block.codes == 0
        self.noticed[name] += int((np.logical_or.reduce([*masks.values()]) & kept).sum())
        for column, mask in masks.items():
            if name not in self.examples and (mask & kept).any():
                text = block.texts[column][int(np.flatnonzero(mask & kept)[0])].as_py()
                self.examples[name] = str(text)[:EXAMPLE_CHARACTERS]


def clean(block: Block, settings: Cleaning, paths: Mapping[str, Path], findings: Findings) -> Block:
    """Return a block with cleaned texts and the codes of the rows to reject; no row is removed.

    Reasons are tried in the order of :data:`~paraforge.intake.bitext.source.REASONS`, and the first one found
    stays. Duplicates and contaminated rows are found elsewhere, because finding them needs all blocks. Texts
    of rejected rows are cut to 4,096 characters.

    settings: what to repair and to reject. paths: the file of each text column, for errors.
    findings: counts repairs (``entities``, ``invisible_characters``, ``line_breaks``, ``normalized``,
        ``trimmed``) and rows with ``markup``, ``question_marks`` and ``doubled_quotes``.

    Raises InputError if ``settings.malformed`` is ``error`` and a row has a NUL character.
    """
    changes = findings.changes
    cleaned = Block(block.lines, dict(block.texts), block.codes.copy(), block.scores)
    for name, texts in block.texts.items():
        texts, changed = decode_entities(texts)
        changes["entities"] += int(changed.sum())
        cleaned.refuse(is_damaged(texts), "damaged_characters")
        texts, null, controls = _without_controls(texts, changes)
        problem = f"a NUL character in {name}: binary data, or UTF-16 text?"
        cleaned.reject(null, "null_byte", paths[name], settings.malformed == "error", problem)
        cleaned.refuse(controls, "control_characters")
        texts, changed = remove_invisible(texts)
        changes["invisible_characters"] += int(changed.sum())
        cleaned.texts[name] = _trim(compose(texts, changes), changes)
    _refuse(cleaned, settings)
    for kind, find in _NOTICED.items():
        findings.notice(kind, cleaned, {name: find(texts) for name, texts in cleaned.texts.items()})
    cleaned.texts = {name: shorten(texts, cleaned.codes != 0) for name, texts in cleaned.texts.items()}
    return cleaned


def as_ingested(texts: pa.Array) -> pa.Array:
    """Clean texts (without nulls) like :func:`clean`, and return them."""
    changes: Changes = Counter()
    texts, _, _ = _without_controls(decode_entities(texts)[0], changes)
    return _trim(compose(remove_invisible(texts)[0], changes), changes)


def _without_controls(texts: pa.Array, changes: Changes) -> tuple[pa.Array, Mask, Mask]:
    """Replace line breaks by spaces, and remove control characters.

    Returns the texts, which of them had a NUL, and which had any control character.
    """
    null, controls = np.zeros((2, len(texts)), bool)
    data, _ = text_bytes(texts)
    # C1 controls are 0xC2 and a byte below 0xA0.
    if not ((data < 0x20) | (data == 0x7F)).any() and not ((data[:-1] == 0xC2) & (data[1:] < 0xA0)).any():
        return texts, null, controls
    mask = pc.match_substring_regex(texts, f"{BREAKS}|{CONTROLS}")
    affected, rows = texts.filter(mask), mask.to_numpy(zero_copy_only=False)
    # Line breaks at the ends are trimmed later and are not counted.
    inner = pc.match_substring_regex(affected, rf"[^\s]{BREAKS}\s*[^\s]")
    changes["line_breaks"] += int(pc.sum(inner).as_py() or 0)
    repaired = pc.replace_substring_regex(affected, BREAKS, " ")
    without = pc.replace_substring_regex(repaired, CONTROLS, "")
    null[rows] = pc.match_substring(affected, "\0").to_numpy(zero_copy_only=False)
    controls[rows] = pc.not_equal(without, repaired).to_numpy(zero_copy_only=False)
    return pc.replace_with_mask(texts, mask, without), null, controls


def compose(texts: pa.Array, changes: Changes) -> pa.Array:
    """Return the texts in Unicode form C; nulls stay null. Changed texts are counted as ``normalized``."""
    if not (text_bytes(texts.fill_null(""))[0] >= _FIRST_COMBINING_BYTE).any():
        return texts
    mask = pc.fill_null(pc.match_substring_regex(texts, _COMBINING), False)
    affected = texts.filter(mask)
    # Before release 26, Arrow's own function gave the decomposed form.
    normal = pa.array([unicodedata.normalize("NFC", text) for text in affected.to_pylist()], affected.type)
    changed = pc.sum(pc.not_equal(affected, normal)).as_py() or 0
    if not changed:
        return texts
    changes["normalized"] += int(changed)
    return pc.replace_with_mask(texts, mask, normal)


def _trim(texts: pa.Array, changes: Changes) -> pa.Array:
    trimmed = pc.utf8_trim_whitespace(texts)
    changes["trimmed"] += int(pc.sum(pc.not_equal(texts, trimmed)).as_py() or 0)
    return trimmed


def _refuse(block: Block, settings: Cleaning) -> None:
    lengths = {name: pc.utf8_length(texts).to_numpy() for name, texts in block.texts.items()}
    for name, length in lengths.items():
        block.refuse(length == 0, _BLANK[name])
    for name, texts in block.texts.items():
        block.refuse(lengths[name] > settings.max_characters, "too_long")
        block.refuse(_has_more_words(texts, settings.max_words), "too_long")
    if len(block.texts) == 1:
        return
    first, second = block.texts.values()
    block.refuse(pc.equal(first, second).to_numpy(zero_copy_only=False), "identical")
    if settings.max_length_ratio is not None:
        a, b = (lengths[name] + _density(texts) for name, texts in block.texts.items())
        longer, shorter = np.maximum(a, b), np.minimum(a, b)
        too_uneven = longer > settings.max_length_ratio * shorter
        block.refuse(too_uneven & (longer > _LONGER), "length_ratio")


def _density(texts: pa.Array) -> NDArray[np.int64]:
    """Return a number to add to the length of each text, so that lengths in different scripts are comparable.

    With it a Chinese character counts as 3, a kana or a Hangul syllable as 2.
    """
    data, offsets = text_bytes(texts)
    if not data.size or data.max() < _DENSE[0][0] >> 8:
        return np.zeros(len(texts), np.int64)
    places = np.flatnonzero(data[:-1] >= _DENSE[0][0] >> 8)
    begins = data[places].astype(np.int64) << 8 | data[places + 1]
    weights = np.zeros(len(data) + 1, np.int64)
    for low, high, weight in _DENSE:
        weights[places[(begins >= low) & (begins <= high)] + 1] = weight
    return np.diff(np.cumsum(weights)[offsets])


def _has_more_words(texts: pa.Array, most: int) -> Mask:
    """Return which texts have more than ``most`` words, separated by spaces."""
    # A word has at least one byte and a space, so the words of shorter texts need not be counted.
    more = pc.binary_length(texts).to_numpy() > 2 * most
    if more.any():
        words = pc.count_substring_regex(texts.filter(pa.array(more)), "[^ ]+")
        more[more] = words.to_numpy() > most
    return more


def shorten(texts: pa.Array, refused: Mask) -> pa.Array:
    """Cut the texts of rejected rows to 4,096 characters, because they are kept only for inspection."""
    if not refused.any():
        return texts
    # A character has at least one byte, so the characters of shorter texts need not be counted.
    mask = pa.array(refused & (pc.binary_length(texts).to_numpy() > REFUSED_CHARACTERS))
    return pc.replace_with_mask(
        texts, mask, pc.utf8_slice_codeunits(texts.filter(mask), 0, REFUSED_CHARACTERS)
    )
