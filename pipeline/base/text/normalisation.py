"""Forms of a text: without what breaks line-oriented tools, and as look-ups of near-duplicates and
decontamination compare it, letters and digits alone, lower-cased.

U+0085, U+2028 and U+2029 are text: nothing here splits lines at them.
"""

import re
import unicodedata
from functools import cache
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# Patterns for RE2 and for Python: the characters themselves, as each spells those above U+007F differently.
BREAKS = "[\t\n\x0b\x0c\r]+"
CONTROLS = "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]"

# Texts for which it is not worth while to look for those of ASCII alone.
_FEW = 1000


def without_controls(text: str) -> str:
    """A text of one line: breaks and tabs become a space, control characters nothing."""
    return re.sub(CONTROLS, "", re.sub(BREAKS, " ", text))


def normalise(texts: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Reduce texts to their words: NFKC, lower case, every run of other characters one space.

    ``"It’s  5 o'clock!"`` gives ``"it s 5 o clock"``. Nulls stay null; a text without a letter or digit
    gives ``""``.
    """
    if isinstance(texts, pa.ChunkedArray):
        return pa.chunked_array([normalise(chunk) for chunk in texts.chunks], texts.type)
    if len(texts) < _FEW or texts.type not in (pa.string(), pa.large_string()):
        return _words(texts)
    from paraforge.base.text.ascii_words import ascii_words  # takes half a second

    plain = pc.fill_null(pc.string_is_ascii(texts), False).to_numpy(zero_copy_only=False)
    found = ascii_words(texts.filter(pa.array(plain)))
    if plain.all():
        return found
    others = _words(texts.filter(pa.array(~plain)))
    place = np.where(plain, np.cumsum(plain), plain.sum() + np.cumsum(~plain)) - 1
    return pa.concat_arrays([found, others]).take(pa.array(place))


def _words(texts: pa.Array) -> pa.Array:
    lowered = pc.utf8_lower(normalise_unicode(texts, "NFKC"))
    # Combining marks belong to their letter where NFKC has no composed form.
    words = pc.replace_substring_regex(lowered, pattern=r"[^\pL\pN\pM]+", replacement=" ")
    return pc.utf8_trim_whitespace(words)


Form = Literal["NFC", "NFKC"]


@cache
def _arrow_composes() -> bool:
    """Whether Arrow composes: before release 26 its NFC and NFKC gave the decomposed forms."""
    texts = pa.array(["e\u0301", "\u00e9"], pa.string())
    return all(pc.utf8_normalize(texts, form).to_pylist() == ["\u00e9", "\u00e9"] for form in ("NFC", "NFKC"))


def normalise_unicode(texts: pa.Array | pa.ChunkedArray, form: Form) -> pa.Array | pa.ChunkedArray:
    """Each text in a normalisation form; nulls stay null."""
    if _arrow_composes():
        return pc.utf8_normalize(texts, form)
    if isinstance(texts, pa.ChunkedArray):
        return pa.chunked_array([normalise_unicode(chunk, form) for chunk in texts.chunks], texts.type)
    normal = [None if text is None else unicodedata.normalize(form, text) for text in texts.to_pylist()]
    return pa.array(normal, texts.type)
