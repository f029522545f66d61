"""Repairs texts damaged by other programs (entities, invisible characters), and finds what cannot be
repaired: lost characters, wrong encodings, and markup."""

import codecs
import html
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from paraforge.base.text.normalization import IGNORABLE

Mask = NDArray[np.bool_]

_ENTITY = re.compile(r"&(#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
# Entities of earlier releases of Moses that HTML does not have.
_OF_MOSES = {"bar": "|", "bra": "[", "ket": "]"}
# Fillers that are part of old Hangul and Khmer spelling are not removed.
_FILLERS = "\u115f\u1160\u17b4\u17b5"
_INVISIBLE = re.compile(f"[{IGNORABLE.replace(_FILLERS, '')}]+")
_JOINERS = "\u200c\u200d"
_SELECTORS = re.compile("[\u180b-\u180f\ufe00-\ufe0e\U000e0100-\U000e01ef]")
_FLAG = "\U0001f3f4"
# Scripts in which joiners are spelling: Arabic and its neighbors, Mongolian, and those of India and beyond.
_JOINED = re.compile("[\u0600-\u0dff\u1000-\u109f\u1780-\u18af\ua840-\ua877\ufb50-\ufdff\ufe70-\ufefc"
                     "\U00010a00-\U00010aff\U00011000-\U00011fff\U0001e900-\U0001e95f]")  # fmt: skip
_EMOJI = re.compile(
    "[#*0-9\u00a9\u00ae\u203c\u2049\u2100-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)


def decode_entities(texts: pa.Array) -> tuple[pa.Array, Mask]:
    """Replace the entities of HTML and Moses once: ``&amp;lt;`` becomes ``&lt;``. Unknown names stay.

    texts: strings without nulls. Returns the texts, and which of them changed.
    """
    return _replace(texts, _ENTITY.pattern, lambda text: _ENTITY.sub(_decode, text))


def _decode(match: re.Match[str]) -> str:
    return _OF_MOSES.get(match[1]) or html.unescape(match[0])


def remove_invisible(texts: pa.Array) -> tuple[pa.Array, Mask]:
    """Remove invisible characters: soft hyphens, zero-width spaces, direction marks, selectors.

    Joiners stay inside emoji and words of scripts that need them, and so do variation selectors of ideographs
    and Mongolian letters.

    texts: strings without nulls. Returns the texts, and which of them changed.
    """
    return _replace(texts, _INVISIBLE.pattern, lambda text: _INVISIBLE.sub(_keep_needed, text))


def _keep_needed(match: re.Match[str]) -> str:
    """Return what remains of a run of invisible characters."""
    text, run = match.string, match[0]
    before, after = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
    joiner = next((character for character in run if character in _JOINERS), "")
    if _SELECTORS.match(run) and before.isalpha():
        return run[0]
    if before == _FLAG and all("\U000e0020" <= character <= "\U000e007f" for character in run):
        return run
    if joiner and _JOINED.match(before) and _JOINED.match(after):
        return joiner
    if _EMOJI.match(before) and ((joiner == "\u200d" and _EMOJI.match(after)) or after == "\u20e3"):
        return ("\ufe0f" if "\ufe0f" in run else "") + joiner
    return ""


def _replace(texts: pa.Array, pattern: str, change: Callable[[str], str]) -> tuple[pa.Array, Mask]:
    """Change the texts that match an RE2 pattern."""
    changed = np.zeros(len(texts), bool)
    rows = np.flatnonzero(_matching(texts, pattern))
    if not len(rows):
        return texts, changed
    before = texts.take(pa.array(rows)).to_pylist()
    after = [change(text) for text in before]
    changed[rows] = [first != second for first, second in zip(before, after, strict=True)]
    mask = np.zeros(len(texts), bool)
    mask[rows] = True
    return pc.replace_with_mask(texts, pa.array(mask), pa.array(after, texts.type)), changed


REPLACEMENT: Final = "\ufffd"
_CONTROL = "paraforge-control"


def _as_byte(error: UnicodeError) -> tuple[bytes, int]:
    """Return the byte of a control character, which decoders leave if a code page has no character for it."""
    assert isinstance(error, UnicodeEncodeError)
    character = error.object[error.start]
    if not "\x80" <= character <= "\x9f":
        raise error
    return bytes([ord(character)]), error.start + 1


codecs.register_error(_CONTROL, _as_byte)
# How the first bytes and the other bytes of UTF-8 look when read in one of these encodings.
_PAGES = ("cp1252", "cp1250", "cp1251")
_FURTHER = {bytes([byte]).decode(page, "replace") for page in _PAGES for byte in range(0x80, 0xC0)}
_FURTHER_CLASS = f"[\x80-\x9f{''.join(sorted(_FURTHER - {REPLACEMENT}))}]"
_LEADS = "\u00c2-\u00f4\u0102-\u0171\u0412-\u0444"
_CANDIDATE = f"[{_LEADS}]{_FURTHER_CLASS}"
_SIGN_CLASS = _FURTHER_CLASS.translate({ord(one): None for one in _FURTHER if one.isalpha()})
# Certain signs are misread curly quotes and dashes, and a capital between a small letter and a symbol:
# ``velkÃ½``.
_SURE = re.compile(
    f"(?:\u00e2\u20ac|\u0432\u0402){_FURTHER_CLASS}|(?<=[a-z])[\u00c3-\u00c5\u0102\u0139]{_SIGN_CLASS}"
)
# Characters that can normally follow a capital letter at the end of a word or text.
_SIGNS = (
    "\u2019\u201d\u201c\u2018\u201a\u201e\u2026\u2013\u2014\u00bb\u00ab\u203a\u2039"
    "\u2122\u00ae\u00b0\u00b4\u00b7\u00a0"
)
_FEWEST_CYRILLIC = 3


def is_damaged(texts: pa.Array) -> Mask:
    """Return which texts have certainly lost characters: those with U+FFFD, and UTF-8 that was read in
    another encoding (cp1252, cp1250, cp1251) and written again.

    texts: strings without nulls.
    """
    damaged: Mask = pc.match_substring(texts, REPLACEMENT).to_numpy(zero_copy_only=False).copy()
    for row in np.flatnonzero(_matching(texts, _CANDIDATE) & ~damaged):
        damaged[row] = _is_misread(texts[int(row)].as_py())
    return damaged


def _is_misread(text: str) -> bool:
    if _SURE.search(text):
        return True
    for page in _PAGES:
        try:
            meant = text.encode(page, _CONTROL).decode("utf-8")
        except UnicodeError:
            continue
        if len({character for character in meant if character > "\x7f"}) >= (
            _FEWEST_CYRILLIC if page == "cp1251" else 2
        ):
            return True
        pieces = re.finditer(_CANDIDATE, text)
        return page != "cp1251" and any(not _may_be_meant(text, piece) for piece in pieces)
    return False


def _may_be_meant(text: str, piece: re.Match[str]) -> bool:
    """Return whether two letters may be correct: ``píšťala``, and ``HYVÄ…``, which is not a misread ą."""
    before, after = text[: piece.start()][-1:], text[piece.end() :][:1]
    if piece[0][0].islower():
        return True
    return piece[0][1] in _SIGNS and not before.islower() and not after.islower()


def restore_letters(texts: pa.Array) -> tuple[pa.Array, Mask]:
    """Decode misread texts again, and replace U+FFFD by an apostrophe in English contractions. What cannot be
    repaired stays unchanged.

    texts: strings without nulls. Returns the texts, and which of them changed.
    """
    return _replace(texts, f"{REPLACEMENT}|{_CANDIDATE}", _restore)


_LOST_APOSTROPHE = re.compile(f"(?<=[A-Za-z]){REPLACEMENT}(?=(?:t|s|re|ve|ll|d|m)\\b)")


def _restore(text: str) -> str:
    text = _LOST_APOSTROPHE.sub("\u2019", text)
    if not _is_misread(text):
        return text
    return _read_again(text) or _SURE.sub(lambda match: _read_again(match[0]) or match[0], text)


def _read_again(text: str) -> str | None:
    """Decode a text that is UTF-8 misread in another encoding; None if it was misread in none of them."""
    for page in _PAGES:
        with suppress(UnicodeError):
            return text.encode(page, _CONTROL).decode("utf-8")
    return None


REPAIRS: Final = {
    "entities": decode_entities,
    "invisible characters": remove_invisible,
    "damaged letters": restore_letters,
}
"""Repairs of texts that are only scored, in this order."""


_LOST = r"\p{Ll}\?+\p{Ll}"
_ADDRESS = r"://|www\.|[?&][\w.-]+="
# "He said ""no"", and left.", as a field of CSV is written
_QUOTED = r'^"(?:[^"]|"")*""(?:[^"]|"")*"$'
_TAG = r"</?[A-Za-z][A-Za-z0-9]{0,15}(?:\s[^<>]{0,200})?/?>"


def has_lost_letters(texts: pa.Array) -> Mask:
    """Return which texts have question marks inside words, which programs write for unknown letters."""
    return _matching(texts, _LOST) & ~_matching(texts, _ADDRESS)


def has_markup(texts: pa.Array) -> Mask:
    """Return which texts contain a tag: ``<b>``, ``</seg>``, ``<f0>``."""
    return _matching(texts, _TAG)


def has_doubled_quotes(texts: pa.Array) -> Mask:
    """Return which texts are quoted as a field of CSV, with quotation marks inside."""
    return _matching(texts, _QUOTED)


def _matching(texts: pa.Array, pattern: str) -> Mask:
    return np.asarray(pc.match_substring_regex(texts, pattern).to_numpy(zero_copy_only=False))
