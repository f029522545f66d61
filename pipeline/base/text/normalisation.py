"""Text as near-duplicate and decontamination look-ups compare it: letters and digits alone, lower-cased."""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc


def normalise(texts: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Reduce texts to their words: NFKC, lower case, every run of other characters one space.

    ``"It’s  5 o'clock!"`` gives ``"it s 5 o clock"``. Nulls stay null; a text without a letter or digit
    gives ``""``.
    """
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
